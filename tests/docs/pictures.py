"""`python -m tests.docs.pictures [PAGE ...]`: run pages and keep the pictures that their blocks make.

By hand, after a change that a picture would show. A page names the file that it makes in a comment above the picture
(`<!-- made by this page: FILE -->`).
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from tests.docs.running import run_page
from tests.pages import ROOT, pictures


def main(pages: list[str]) -> None:
    """Run each page that has such pictures, and copy them to where the page shows them."""
    for page in pages or [str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").glob("*.md"))]:
        if not pictures(page):
            continue
        with tempfile.TemporaryDirectory() as folder:
            run_page(page, Path(folder))
            for made, kept in pictures(page):
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(Path(folder) / made, kept)
                print(kept.relative_to(ROOT), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
