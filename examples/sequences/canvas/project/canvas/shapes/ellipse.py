"""Ellipse: The ellipse that fills its box."""

from canvas.shapes.base import Shape, register, number


@register("ellipse")
class Ellipse(Shape):
    """The ellipse that fills its box."""

    def __init__(self, x, y, width, height, colour="#1e1e1e", stroke=2):
        super().__init__(x, y, width, height, colour, stroke)

    def bounds(self):
        """Left, top, right and bottom, half the stroke included."""
        half = self.stroke / 2
        return (self.x - half, self.y - half, self.x + self.width + half, self.y + self.height + half)

    def contains(self, x, y):
        """Whether a point lies in the shape; the edge belongs to it."""
        if not self.near(x, y):
            return False
        u = (x - self.x) / self.width if self.width else 0.5
        v = (y - self.y) / self.height if self.height else 0.5
        return (2 * u - 1) ** 2 + (2 * v - 1) ** 2 <= 1

    def svg(self):
        """The element as SVG."""
        left, top = number(self.x), number(self.y)
        width, height = number(self.width), number(self.height)
        return (
            f'<ellipse cx="{number(self.x + self.width / 2)}" cy="{number(self.y + self.height / 2)}" rx="{number(self.width / 2)}" ry="{number(self.height / 2)}" stroke="{self.colour}" stroke-width="{number(self.stroke)}" fill="none"/>'
        )

    def to_json(self):
        """As it is stored in a file."""
        return {
            "type": "ellipse",
            "x": self.x,
            "y": self.y,
            "width": self.width,
            "height": self.height,
            "colour": self.colour,
            "stroke": self.stroke,
        }

    @classmethod
    def from_json(cls, stored):
        """From what `to_json` gave. Unknown keys are left alone."""
        return cls(
            stored["x"],
            stored["y"],
            stored["width"],
            stored["height"],
            stored.get("colour", "#1e1e1e"),
            stored.get("stroke", 2),
        )
