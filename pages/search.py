"""`python -m pages.search [SITE]`: the index of a built site also as a script, which pages that are files can load."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def write_search(site: Path) -> Path:
    """`search.js` from `search.json`, for `docs/js/search-from-files.js`; returns its path.

    Raises
    ------
    FileNotFoundError
        Where the builder has written no index.
    """
    index = json.loads((site / "search.json").read_text(encoding="utf-8"))
    script = site / "search.js"
    script.write_text(f"var __index = {json.dumps(index)};\n", encoding="utf-8")
    return script


if __name__ == "__main__":
    print(write_search(Path(*sys.argv[1:2] or ["site"])))
