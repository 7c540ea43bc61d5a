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
