import unittest

from app.settings import load


class SettingsTest(unittest.TestCase):
    def test_known_keys_are_read(self):
        self.assertEqual(load("[app]\nname = a\nverbose = yes\n"), {"name": "a", "verbose": "yes"})


if __name__ == "__main__":
    unittest.main()
