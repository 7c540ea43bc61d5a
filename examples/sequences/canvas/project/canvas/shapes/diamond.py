"""Diamond: A square that stands on its corner."""

from canvas.shapes.base import Shape, register, number


@register("diamond")
class Diamond(Shape):
    """A square that stands on its corner."""

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
        return abs(2 * u - 1) + abs(2 * v - 1) <= 1

    def svg(self):
        """The element as SVG."""
        left, top = number(self.x), number(self.y)
        width, height = number(self.width), number(self.height)
        return (
            f'<path d="M {number(self.x + self.width / 2)} {top} l {number(self.width / 2)} {number(self.height / 2)} l {number(-self.width / 2)} {number(self.height / 2)} l {number(-self.width / 2)} {number(-self.height / 2)} Z" stroke="{self.colour}" stroke-width="{number(self.stroke)}" fill="none"/>'
        )

    def to_json(self):
        """As it is stored in a file."""
        return {
            "type": "diamond",
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
