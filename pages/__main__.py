"""`python -m pages [FOLDER]`."""

import sys
from pathlib import Path

from pages.write import write_pages

if __name__ == "__main__":
    for line in write_pages(Path(*sys.argv[1:2] or ["build/docs"])):
        print(line)
