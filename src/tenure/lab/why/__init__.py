"""Why something stands in a window as it does: see explain.py."""
