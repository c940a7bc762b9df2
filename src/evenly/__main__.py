"""`python -m evenly` and the console script `evenly` are the same program."""

import sys

from evenly.cli import main

if __name__ == "__main__":
    sys.exit(main())
