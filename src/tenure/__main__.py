"""`python -m tenure`: the same as the program `tenure`."""

import sys

from tenure.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
