"""The sequence `canvas`: a colour wheel, a callout, pages. It stands for the paper's tasks on Excalidraw, which depend on each other loosely."""

from typing import Final

from tenure.lab.bench.sequences.canvas_files import FILES
from tenure.lab.bench.sequences.sequence import Sequence, Step, begin, call, end, says

_WHEEL_CHECK: Final = """\
from canvas.app import App
from canvas.pickers import PICKERS

wheel = PICKERS["wheel"]()
assert "wheel" in App().toolbar()["pickers"]
assert wheel.colour_at(100, 100) == "#ffffff", "the middle is white"
assert wheel.colour_at(200, 100) == "#ff0000", "red is on the right"
assert wheel.colour_at(100, 0) == wheel.colour_at(100.0, 0.0) and wheel.colour_at(100, 0) != "#ff0000"
assert wheel.colour_at(201, 100) is None and wheel.colour_at(0, 0) is None, "outside there is nothing"
for colour in ("#ff0000", "#80ff00", "#ffffff", "#00ffff"):
    x, y = wheel.position_of(colour)
    assert wheel.colour_at(x, y) == colour, (colour, wheel.colour_at(x, y))
assert wheel.position_of("#1e1e1e") is None, "dark colours are not on the wheel"
"""

_CALLOUT_CHECK: Final = """\
from canvas.app import App
from canvas.scene import Scene

app = App()
assert "callout" in app.toolbar()["shapes"]
app.colour = "#e03131"
shape = app.draw("callout", 10, 10, 100, 50, tip=(30, 120))
assert shape.bounds() == (9, 9, 111, 121), shape.bounds()
assert shape.contains(50, 30), "the box"
assert shape.contains(55, 70), "the tail, below the box"
assert not shape.contains(100, 100), "beside the tail"
assert app.scene.at(50, 30) is shape
assert "30 120" in shape.svg() and "#e03131" in shape.svg(), shape.svg()
again = App.load(app.save())
assert again.svg() == app.svg()
assert again.scene.shapes[0].tip == (30, 120)
app.undo()
assert app.scene.shapes == []
"""

_PAGES_CHECK: Final = """\
import json

from canvas.app import App

app = App()
assert len(app.pages) == 1 and app.page == 0
app.draw("rectangle", 0, 0, 10, 10)
assert app.add_page() == 1 and app.page == 1, "a new page is shown"
assert app.scene.shapes == [], "pages are independent"
app.draw("callout", 0, 0, 10, 10, tip=(5, 20))
app.undo()
assert app.scene.shapes == []
app.switch(0)
assert len(app.scene.shapes) == 1, "undo is each page's own"
assert app.undo() and app.scene.shapes == [] and app.redo()
app.switch(1)
app.redo()
again = App.load(app.save())
assert len(again.pages) == 2 and len(again.pages[0].shapes) == 1 and again.pages[1].shapes[0].name == "callout"
assert again.page == 1
old = App.load(json.dumps({"version": 1, "shapes": [{"type": "line", "x": 0, "y": 0, "width": 5, "height": 5}]}))
assert len(old.pages) == 1 and old.scene.shapes[0].name == "line", "files of version 1 still load"
app.remove_page(1)
assert len(app.pages) == 1 and app.page == 0
try:
    app.remove_page(0)
except ValueError:
    pass
else:
    raise AssertionError("the last page stays")
try:
    app.switch(7)
except ValueError:
    pass
else:
    raise AssertionError("there is no page 7")
"""

STEPS: Final = (
    Step(
        name="colour-wheel",
        words=(
            "Add a colour wheel picker, known as `wheel`: a circle of radius 100 in a square of 200. The angle is the hue, red on the right, counted"
            " clockwise as y grows downwards; the distance from the middle is the saturation; the value is always 1. `colour_at(x, y)` gives None outside"
            " the circle, `position_of(colour)` the place of a colour, and None for a colour whose value is not 1. Add a test."
        ),
        check=_WHEEL_CHECK,
    ),
    Step(
        name="callout",
        words=(
            "Add a callout shape, known as `callout`: a box with a tail, a triangle from the middle third of the box's lower edge to a point `tip=(x, y)`"
            " below it. Bounds take in the tip; the box and the tail both count as the shape; it is drawn, saved and loaded like the others, tip included."
            " Add a test."
        ),
        check=_CALLOUT_CHECK,
    ),
    Step(
        name="pages",
        words=(
            "Add pages: several independent canvases in one document, each with its own history. `App.pages` lists their scenes, `App.page` is the number"
            " of the one shown and `App.scene` that scene; `add_page()` adds one, shows it and gives its number, `switch(n)` shows another,"
            " `remove_page(n)` removes one but never the last (ValueError, as for a number that is not there). Files keep all pages and which was shown,"
            " as version 2; files of version 1 still load. The callout must survive in a page too. Add a test."
        ),
        check=_PAGES_CHECK,
    ),
)

_WHEEL: Final = '''

@picker("wheel")
class Wheel:
    """All hues around, white in the middle; the value is 1 everywhere."""

    RADIUS = 100

    def colour_at(self, x, y):
        """The colour at a point; None outside the circle."""
        across, down = x - self.RADIUS, y - self.RADIUS
        distance = math.hypot(across, down) / self.RADIUS
        if distance > 1 + 1e-9:
            return None
        return hexadecimal(*colorsys.hsv_to_rgb(math.atan2(down, across) / math.tau % 1, min(1.0, distance), 1.0))

    def position_of(self, colour):
        """Where a colour lies; None for one that is darker."""
        hue, saturation, value = colorsys.rgb_to_hsv(*shares(colour))
        if value != 1:
            return None
        angle = hue * math.tau
        return (self.RADIUS * (1 + saturation * math.cos(angle)), self.RADIUS * (1 + saturation * math.sin(angle)))
'''

_CALLOUT: Final = '''\
"""Callout: A box with a tail that points somewhere."""

from canvas.shapes.base import Shape, number, register


@register("callout")
class Callout(Shape):
    """A box with a tail that points somewhere."""

    def __init__(self, x, y, width, height, colour="#1e1e1e", stroke=2, tip=None):
        super().__init__(x, y, width, height, colour, stroke)
        self.tip = tuple(tip) if tip is not None else (x + width / 2, y + height * 1.5)

    def bounds(self):
        """Left, top, right and bottom, half the stroke and the tip included."""
        half = self.stroke / 2
        return (
            min(self.x, self.tip[0]) - half,
            min(self.y, self.tip[1]) - half,
            max(self.x + self.width, self.tip[0]) + half,
            max(self.y + self.height, self.tip[1]) + half,
        )

    def contains(self, x, y):
        """Whether a point lies in the box or in the tail."""
        if not self.near(x, y):
            return False
        if self.x <= x <= self.x + self.width and self.y <= y <= self.y + self.height:
            return True
        bottom = self.y + self.height
        if self.tip[1] <= bottom or not bottom <= y <= self.tip[1]:
            return False
        share = (y - bottom) / (self.tip[1] - bottom)
        left, right = self.x + self.width / 3, self.x + 2 * self.width / 3
        return left + (self.tip[0] - left) * share <= x <= right + (self.tip[0] - right) * share

    def svg(self):
        """The element as SVG."""
        bottom = self.y + self.height
        corners = (
            (self.x, self.y),
            (self.x + self.width, self.y),
            (self.x + self.width, bottom),
            (self.x + 2 * self.width / 3, bottom),
            self.tip,
            (self.x + self.width / 3, bottom),
            (self.x, bottom),
        )
        path = " L ".join(f"{number(x)} {number(y)}" for x, y in corners)
        return f'<path d="M {path} Z" stroke="{self.colour}" stroke-width="{number(self.stroke)}" fill="none"/>'

    def to_json(self):
        """As it is stored in a file."""
        return {
            "type": "callout",
            "x": self.x,
            "y": self.y,
            "width": self.width,
            "height": self.height,
            "colour": self.colour,
            "stroke": self.stroke,
            "tip": list(self.tip),
        }

    @classmethod
    def from_json(cls, stored):
        """From what `to_json` gave."""
        return cls(
            stored["x"],
            stored["y"],
            stored["width"],
            stored["height"],
            stored.get("colour", "#1e1e1e"),
            stored.get("stroke", 2),
            stored.get("tip"),
        )
'''

_PAGED: Final = '''\
    def __init__(self):
        self.pages = [Scene()]
        self.page = 0
        self.colour = "#1e1e1e"

    @property
    def scene(self):
        """The scene of the page that is shown."""
        return self.pages[self.page]

    def add_page(self):
        """Add an empty page behind the others and show it; its number."""
        self.pages.append(Scene())
        self.page = len(self.pages) - 1
        return self.page

    def switch(self, number):
        """Show another page."""
        self._require(number)
        self.page = number

    def remove_page(self, number):
        """Remove a page; the last one stays."""
        self._require(number)
        if len(self.pages) == 1:
            raise ValueError("the last page stays")
        del self.pages[number]
        if self.page > number or self.page == len(self.pages):
            self.page -= 1

    def _require(self, number):
        if not 0 <= number < len(self.pages):
            raise ValueError(f"there is no page {number}")
'''

_SAVED: Final = """\
        return json.dumps({"version": VERSION, "page": self.page, "pages": [scene.to_json() for scene in self.pages]})
"""

_LOADED: Final = """\
        app = cls()
        pages = stored["pages"] if stored.get("version", 0) >= 2 else [stored["shapes"]]
        app.pages = [Scene.from_json(shapes) for shapes in pages]
        app.page = stored.get("page", 0)
        return app
"""

_TEST: Final = "python3 -m unittest discover -q -s tests -t ."


def _test(name: str, body: str) -> dict[str, object]:
    new = f"    def {name}(self):\n{body}\n\nif __name__"
    return call("edit", path="tests/test_canvas.py", old="\nif __name__", new=new)


_REPLIES: Final = (
    says("I look at how pickers are made.", begin("locate-pickers"), call("grep", pattern="PICKERS|picker", path=".")),
    says("", call("read", path="canvas/pickers.py"), call("read", path="tests/test_canvas.py")),
    says(
        "",
        end(
            "Pickers are classes in canvas/pickers.py registered by @picker(name) into PICKERS, with colour_at(x, y) and position_of(colour); hexadecimal()"
            " and shares() convert. Tests: tests/test_canvas.py, run by python3 -m unittest discover -s tests -t ."
        ),
        begin("add-wheel", "locate-pickers"),
        call("edit", path="canvas/pickers.py", old="import colorsys\n", new="import colorsys\nimport math\n"),
    ),
    says(
        "",
        call(
            "edit",
            path="canvas/pickers.py",
            old="        return (hue * self.LENGTH, 12) if saturation == value == 1 else None\n",
            new="        return (hue * self.LENGTH, 12) if saturation == value == 1 else None\n" + _WHEEL,
        ),
        _test("test_the_middle_of_the_wheel_is_white", '        self.assertEqual(PICKERS["wheel"]().colour_at(100, 100), "#ffffff")\n'),
    ),
    says("", call("bash", command=_TEST)),
    says("", end()),
    says("The colour wheel is there as `wheel`, in canvas/pickers.py, with a test; all tests pass."),
    says("I read how shapes are made.", begin("locate-shapes"), call("ls", path="canvas/shapes"), call("read", path="canvas/shapes/base.py")),
    says("", call("read", path="canvas/shapes/rectangle.py"), call("read", path="canvas/shapes/__init__.py"), call("read", path="canvas/shapes/triangle.py")),
    says("", call("read", path="canvas/scene.py"), call("read", path="canvas/app.py"), call("read", path="canvas/shapes/ellipse.py")),
    says(
        "",
        end(
            "A shape is a class in canvas/shapes/NAME.py under @register(name), with bounds, contains, svg, to_json and from_json; canvas/shapes/__init__.py"
            " imports each module. App.draw passes further keywords to the constructor; Scene.from_json looks up SHAPES by type."
        ),
        begin("add-callout", "locate-shapes"),
        call("write", path="canvas/shapes/callout.py", content=_CALLOUT),
    ),
    says(
        "",
        call(
            "edit",
            path="canvas/shapes/__init__.py",
            old="from canvas.shapes import rectangle\n",
            new="from canvas.shapes import callout\nfrom canvas.shapes import rectangle\n",
        ),
        _test(
            "test_a_callout_takes_in_its_tip",
            '        shape = App().draw("callout", 0, 0, 30, 10, tip=(15, 40))\n        self.assertEqual(shape.bounds()[3], 41)\n',
        ),
    ),
    says("", call("bash", command=_TEST)),
    says("", end()),
    says("The callout is there, with its tail, in canvas/shapes/callout.py; all tests pass."),
    says("Pages change the program and its files.", begin("locate-documents"), call("grep", pattern="scene|Scene", path="canvas/app.py")),
    says("", call("read", path="canvas/app.py"), call("read", path="canvas/scene.py")),
    says(
        "",
        end(
            "canvas/app.py: App holds one scene; save writes version and shapes, load refuses a newer VERSION. Each Scene has its own history (done, undone)."
        ),
        begin("add-pages", "locate-documents", "locate-shapes"),
        call("edit", path="canvas/app.py", old="    def __init__(self):\n        self.scene = Scene()\n        self.colour = \"#1e1e1e\"\n", new=_PAGED),
    ),
    says(
        "",
        call("edit", path="canvas/app.py", old="VERSION = 1\n", new="VERSION = 2\n"),
        call(
            "edit",
            path="canvas/app.py",
            old='        return json.dumps({"version": VERSION, "shapes": self.scene.to_json()})\n',
            new=_SAVED,
        ),
        call(
            "edit",
            path="canvas/app.py",
            old='        app = cls()\n        app.scene = Scene.from_json(stored["shapes"])\n        return app\n',
            new=_LOADED,
        ),
        _test(
            "test_pages_are_independent",
            "        app = App()\n        app.draw(\"line\", 0, 0, 1, 1)\n        app.add_page()\n        self.assertEqual(app.scene.shapes, [])\n",
        ),
    ),
    says("", call("bash", command=_TEST)),
    says("", end()),
    says("A document has pages now, and files of version 1 still load; all tests pass."),
)  # fmt: skip

CANVAS: Final = Sequence(
    name="canvas",
    stands_for="Excalidraw: a colour wheel picker; a callout shape; pages (several independent canvases)",
    files=FILES,
    steps=STEPS,
    replies=_REPLIES,
    ceiling=12_000,
)
