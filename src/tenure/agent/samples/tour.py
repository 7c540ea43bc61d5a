"""A tour: six tasks in one session on real files, for a demo without a key (an edge: it writes a folder).

`tour.json` is the script; this is the folder that it works in, what it is asked, and the small window in which episodes open, close and leave. The
library beside the little project is Python's own, copied, so that there is something to read.
"""

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tenure.engine.lifecycle.budget import Budget

SCRIPT: Final = Path(__file__).with_name("tour.json")
BUDGET: Final = Budget(ceiling=13_000, floor=5_000)
POLICY: Final = "cwl"  # whose commits name episodes
TASKS: Final = (
    "Where are settings read, and what happens with a key that nobody knows, or with a section that comes twice?",
    "Make unknown keys an error, with a test.",
    "Does the report guess its delimiter?",
    "Let the caller choose the delimiter, and test it.",
    "Let the command line choose it too.",
    "Now make a section that comes twice our own error, with the section's name and the line.",
)
MORE: Final = "Do all tests pass?"  # what the script can be asked besides, by whoever goes on with the session
LIBRARY: Final = ("argparse", "configparser", "csv")

_FILES: Final = {
    "app/__init__.py": "",
    "app/settings.py": '''\
"""Settings of the application, from a file such as app.ini."""

import configparser

KNOWN = ("name", "folder", "verbose")


def load(text):
    """The settings in a text."""
    parser = configparser.ConfigParser()
    parser.read_string(text)
    section = dict(parser["app"])
    return {key: section[key] for key in KNOWN if key in section}
''',
    "app/report.py": '''\
"""The report, as a table."""

import csv

COLUMNS = ("name", "count")


def write(rows, stream):
    """Write rows, which are dictionaries, under a heading."""
    writer = csv.writer(stream)
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([row[column] for column in COLUMNS])
''',
    "app/__main__.py": '''\
"""The application: python3 -m app prints the report."""

import sys

from app.report import write

ROWS = ({"name": "apples", "count": 3}, {"name": "pears", "count": 5})

if __name__ == "__main__":
    write(ROWS, sys.stdout)
''',
    "tests/__init__.py": "",
    "tests/test_settings.py": """\
import unittest

from app.settings import load


class SettingsTest(unittest.TestCase):
    def test_known_keys_are_read(self):
        self.assertEqual(load("[app]\\nname = a\\nverbose = yes\\n"), {"name": "a", "verbose": "yes"})


if __name__ == "__main__":
    unittest.main()
""",
    "README.md": "# A little application\n\nTests: `python3 -m unittest`.\n",
    "AGENTS.md": "Code is in app/, tests in tests/. library/ is only there to be read.\n",
}


def lay_out(folder: Path) -> None:
    """Write the project into an empty folder."""
    for name, text in _FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "library").mkdir()
    for name in LIBRARY:
        found = find_spec(name)
        if found is not None and found.origin is not None:
            shutil.copyfile(found.origin, folder / "library" / f"{name}.py")
