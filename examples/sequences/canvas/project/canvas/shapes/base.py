"""What all shapes have in common, and by which name a file knows them."""

SHAPES = {}


def register(name):
    """Make a shape known by a name; files and the toolbar look it up in SHAPES."""

    def known(cls):
        if name in SHAPES:
            raise ValueError(f"two shapes are called {name}")
        cls.name = name
        SHAPES[name] = cls
        return cls

    return known


def number(value):
    """A coordinate as SVG has it: at most two decimals, none that say nothing."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


class Shape:
    """Something that stands on a canvas. x and y are its upper left corner."""

    name = ""

    def __init__(self, x, y, width, height, colour, stroke):
        if width < 0 or height < 0:
            raise ValueError("a shape is not wider than nothing")
        self.x, self.y, self.width, self.height = x, y, width, height
        self.colour, self.stroke = colour, stroke

    def near(self, x, y):
        """Whether a point lies in the bounds, which is asked first since it is cheap."""
        left, top, right, bottom = self.bounds()
        return left <= x <= right and top <= y <= bottom

    def bounds(self):
        raise NotImplementedError

    def contains(self, x, y):
        raise NotImplementedError

    def svg(self):
        raise NotImplementedError

    def to_json(self):
        raise NotImplementedError
