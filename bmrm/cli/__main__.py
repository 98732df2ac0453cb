"""`python -m bmrm.cli`: the `bmrm` command."""

import sys

from bmrm.cli import main

if __name__ == "__main__":
    sys.exit(main())
