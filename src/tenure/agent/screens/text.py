"""A text on the screen that is as tall as its newest words."""

from textual.visual import VisualType
from textual.widgets import Static


class Text(Static):
    """A `Static` that is measured anew whenever it changes.

    Textual (8.2) remembers a widget's height by a count that it raises once for all changes up to the widget's next idle moment. A second change, behind
    a layout that some other widget had asked for meanwhile, is then drawn in the height of the first, and stays so; likewise one while it is mounted.
    """

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        """Other words."""
        self._layout_updates += 1
        self.clear_cached_dimensions()
        super().update(content, layout=layout)
