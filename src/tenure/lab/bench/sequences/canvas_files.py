"""The little drawing program of the sequence `canvas`: shapes, palettes, a scene with history, export. Pure data."""

from collections.abc import Mapping
from typing import Final

_SHAPE: Final = '''\
"""{title}: {about}"""

from canvas.shapes.base import Shape, register, number


@register("{name}")
class {title}(Shape):
    """{about}"""

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
        return {inside}

    def svg(self):
        """The element as SVG."""
        left, top = number(self.x), number(self.y)
        width, height = number(self.width), number(self.height)
        return (
            f'{svg}'
        )

    def to_json(self):
        """As it is stored in a file."""
        return {{
            "type": "{name}",
            "x": self.x,
            "y": self.y,
            "width": self.width,
            "height": self.height,
            "colour": self.colour,
            "stroke": self.stroke,
        }}

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
'''

_PAINT: Final = 'stroke="{self.colour}" stroke-width="{number(self.stroke)}" fill="none"'
_SHAPES: Final = (
    ("rectangle", "Rectangle", "A box with square corners.", "0 <= u <= 1 and 0 <= v <= 1", "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" "),
    ("ellipse", "Ellipse", "The ellipse that fills its box.", "(2 * u - 1) ** 2 + (2 * v - 1) ** 2 <= 1", "<ellipse cx=\"{number(self.x + self.width / 2)}\" cy=\"{number(self.y + self.height / 2)}\" rx=\"{number(self.width / 2)}\" ry=\"{number(self.height / 2)}\" "),
    ("diamond", "Diamond", "A square that stands on its corner.", "abs(2 * u - 1) + abs(2 * v - 1) <= 1", "<path d=\"M {number(self.x + self.width / 2)} {top} l {number(self.width / 2)} {number(self.height / 2)} l {number(-self.width / 2)} {number(self.height / 2)} l {number(-self.width / 2)} {number(-self.height / 2)} Z\" "),
    ("line", "Line", "A straight line from corner to corner.", "abs(u - v) <= 0.1", "<path d=\"M {left} {top} l {width} {height}\" "),
    ("triangle", "Triangle", "A triangle with its tip at the top.", "abs(2 * u - 1) <= v <= 1", "<path d=\"M {number(self.x + self.width / 2)} {top} l {number(self.width / 2)} {height} l {number(-self.width)} 0 Z\" "),
)  # fmt: skip

_BASE: Final = '''\
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
'''

_PICKERS: Final = '''\
"""How a colour is chosen. A picker says which colour lies at a point of it, and where a colour lies."""

import colorsys

PICKERS = {}


def picker(name):
    """Make a picker known by a name, under which the toolbar offers it."""

    def known(cls):
        PICKERS[name] = cls
        return cls

    return known


def hexadecimal(red, green, blue):
    """A colour of three shares from 0 to 1 as #rrggbb."""
    return "#" + "".join(f"{round(max(0.0, min(1.0, share)) * 255):02x}" for share in (red, green, blue))


def shares(colour):
    """The three shares of a colour such as #1e90ff."""
    if len(colour) != 7 or not colour.startswith("#"):
        raise ValueError(f"{colour!r} is no colour such as #1e90ff")
    return tuple(int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))


@picker("swatches")
class Swatches:
    """Fixed colours in rows of five squares."""

    SIDE = 24
    COLOURS = ("#1e1e1e", "#e03131", "#2f9e44", "#1971c2", "#f08c00", "#846358", "#ffffff", "#ffc9c9", "#b2f2bb", "#a5d8ff")

    def colour_at(self, x, y):
        """The colour at a point; None where there is none."""
        column, row = int(x // self.SIDE), int(y // self.SIDE)
        place = row * 5 + column
        return self.COLOURS[place] if 0 <= column < 5 and 0 <= place < len(self.COLOURS) else None

    def position_of(self, colour):
        """The middle of a colour's square; None for a colour that is not there."""
        if colour not in self.COLOURS:
            return None
        row, column = divmod(self.COLOURS.index(colour), 5)
        return ((column + 0.5) * self.SIDE, (row + 0.5) * self.SIDE)


@picker("slider")
class Slider:
    """One row of hues, at full saturation."""

    LENGTH = 360

    def colour_at(self, x, y):
        if not (0 <= x < self.LENGTH and 0 <= y < 24):
            return None
        return hexadecimal(*colorsys.hsv_to_rgb(x / self.LENGTH, 1.0, 1.0))

    def position_of(self, colour):
        hue, saturation, value = colorsys.rgb_to_hsv(*shares(colour))
        return (hue * self.LENGTH, 12) if saturation == value == 1 else None
'''

_SCENE: Final = '''\
"""The shapes on a canvas, in the order in which they are drawn, and what was done to them."""

from canvas.shapes import SHAPES


class Scene:
    """Shapes, the undermost first, with a history."""

    def __init__(self):
        self.shapes = []
        self.done = []
        self.undone = []

    def add(self, shape):
        """Put a shape on top."""
        self._keep()
        self.shapes.append(shape)
        return shape

    def remove(self, shape):
        """Take a shape away."""
        if shape not in self.shapes:
            raise ValueError("that shape is not on this canvas")
        self._keep()
        self.shapes.remove(shape)

    def at(self, x, y):
        """The topmost shape at a point; None where there is none."""
        return next((shape for shape in reversed(self.shapes) if shape.contains(x, y)), None)

    def undo(self):
        """Take back what was done last; False when there is nothing."""
        if not self.done:
            return False
        self.undone.append(list(self.shapes))
        self.shapes = self.done.pop()
        return True

    def redo(self):
        """Do again what was taken back last; False when there is nothing."""
        if not self.undone:
            return False
        self.done.append(list(self.shapes))
        self.shapes = self.undone.pop()
        return True

    def to_json(self):
        """All shapes as a file holds them."""
        return [shape.to_json() for shape in self.shapes]

    @classmethod
    def from_json(cls, stored):
        """A scene without a history."""
        scene = cls()
        for each in stored:
            if each["type"] not in SHAPES:
                raise ValueError(f"no shape is called {each['type']!r}")
            scene.shapes.append(SHAPES[each["type"]].from_json(each))
        return scene

    def _keep(self):
        self.done.append(list(self.shapes))
        self.undone.clear()
'''

_APP: Final = '''\
"""The program: one scene, the tools of the toolbar, files."""

import json

from canvas.pickers import PICKERS
from canvas.scene import Scene
from canvas.shapes import SHAPES

VERSION = 1


class App:
    """What a window shows. Everything that is done goes to the scene."""

    def __init__(self):
        self.scene = Scene()
        self.colour = "#1e1e1e"

    def toolbar(self):
        """The names of the shapes that can be drawn, and of the pickers that colours can be chosen with."""
        return {"shapes": sorted(SHAPES), "pickers": sorted(PICKERS)}

    def draw(self, name, x, y, width, height, **more):
        """Draw a shape in the present colour."""
        return self.scene.add(SHAPES[name](x, y, width, height, colour=self.colour, **more))

    def undo(self):
        return self.scene.undo()

    def redo(self):
        return self.scene.redo()

    def svg(self):
        """The canvas as an SVG document."""
        body = "".join(shape.svg() for shape in self.scene.shapes)
        return f'<svg xmlns="http://www.w3.org/2000/svg">{body}</svg>'

    def save(self):
        """The document as text."""
        return json.dumps({"version": VERSION, "shapes": self.scene.to_json()})

    @classmethod
    def load(cls, text):
        """A document from what `save` gave."""
        stored = json.loads(text)
        if stored.get("version", 0) > VERSION:
            raise ValueError(f"version {stored['version']} is newer than this program, which knows {VERSION}")
        app = cls()
        app.scene = Scene.from_json(stored["shapes"])
        return app
'''

_TEST: Final = """\
import unittest

from canvas.app import App
from canvas.pickers import PICKERS


class CanvasTest(unittest.TestCase):
    def test_what_is_drawn_is_found_where_it_stands(self):
        app = App()
        shape = app.draw("rectangle", 10, 10, 20, 20)
        self.assertIs(app.scene.at(15, 15), shape)
        self.assertIsNone(app.scene.at(50, 50))

    def test_a_document_is_loaded_as_it_was_saved(self):
        app = App()
        app.draw("ellipse", 0, 0, 10, 20)
        self.assertEqual(App.load(app.save()).svg(), app.svg())

    def test_what_was_done_can_be_undone(self):
        app = App()
        app.draw("diamond", 0, 0, 10, 10)
        self.assertTrue(app.undo())
        self.assertEqual(app.scene.shapes, [])

    def test_pickers_agree_with_themselves(self):
        swatches = PICKERS["swatches"]()
        self.assertEqual(swatches.colour_at(*swatches.position_of("#1971c2")), "#1971c2")


if __name__ == "__main__":
    unittest.main()
"""

FILES: Final[Mapping[str, str]] = {
    "README.md": "# canvas\n\nA little drawing program. Tests: `python3 -m unittest discover -s tests -t .`\n",
    "AGENTS.md": "Code is in canvas/, a shape a file in canvas/shapes/. Nothing but the standard library.\n",
    "canvas/__init__.py": "",
    "canvas/app.py": _APP,
    "canvas/pickers.py": _PICKERS,
    "canvas/scene.py": _SCENE,
    "canvas/shapes/__init__.py": (
        '"""All shapes, by name."""\n\nfrom canvas.shapes.base import SHAPES\n'
        + "".join(f"from canvas.shapes import {name}\n" for name, *_ in _SHAPES)
        + '\n__all__ = ["SHAPES"]\n'
    ),
    "canvas/shapes/base.py": _BASE,
    **{
        f"canvas/shapes/{name}.py": _SHAPE.format(name=name, title=title, about=about, inside=inside, svg=svg + _PAINT + "/>")
        for name, title, about, inside, svg in _SHAPES
    },
    "tests/__init__.py": "",
    "tests/test_canvas.py": _TEST,
}
