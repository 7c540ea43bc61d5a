"""The application: python3 -m app prints the report."""

import sys

from app.report import write

ROWS = ({"name": "apples", "count": 3}, {"name": "pears", "count": 5})

if __name__ == "__main__":
    write(ROWS, sys.stdout)
