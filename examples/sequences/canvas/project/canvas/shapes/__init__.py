"""All shapes, by name."""

from canvas.shapes.base import SHAPES
from canvas.shapes import rectangle
from canvas.shapes import ellipse
from canvas.shapes import diamond
from canvas.shapes import line
from canvas.shapes import triangle

__all__ = ["SHAPES"]
