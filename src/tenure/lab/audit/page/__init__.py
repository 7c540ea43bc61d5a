"""The page that `tenure audit --html` writes: one file that works offline."""

from tenure.lab.audit.page.document import page

__all__ = ["page"]
