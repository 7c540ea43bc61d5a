"""The page that `tenure audit --html` writes: one file that works offline. Promise: what is claimed can be looked up, down to the very place."""

from tenure.lab.audit.page.document import page

__all__ = ["page"]
