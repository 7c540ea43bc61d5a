"""Figures as static SVG, drawn by hand: the same values give the same bytes, on every machine. Pure."""
