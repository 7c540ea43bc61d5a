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
