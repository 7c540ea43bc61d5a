"""What earns a seat in the window before the first word: read once, capped, and the same bytes all session long."""
