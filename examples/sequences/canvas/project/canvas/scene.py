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
