"""From `docs/` to the folder that the builder reads."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from bmrm.app.model_file import package_version
from pages.figures import loss_figures
from pages.formulas import typeset
from pages.gallery import gallery
from pages.reference import described
from pages.tables import TABLES
from pages.text import outside_code

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "docs"
SNIPPET = re.compile(r'^--8<-- "(.+)"$', re.MULTILINE)
REFERENCE = re.compile(r"^::: (\S+)$", re.MULTILINE)
MARKER = re.compile(r"^<!-- (table|figures): ([\w-]+) -->$", re.MULTILINE)


def write_pages(folder: Path) -> Iterator[str]:
    """Write all pages into a folder, whose older content is removed; yields what was written."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("__pycache__", "gallery"))
    pages = sorted(folder.rglob("*.md"))
    for path in pages:
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
    yield f"{len(pages)} pages in {folder}"


def written(text: str) -> str:
    """A page with everything in it that its markers name.

    Raises
    ------
    KeyError
        For a marker that names nothing.
    FileNotFoundError
        For a file that is not there.
    """
    text = SNIPPET.sub(lambda found: (ROOT / found[1]).read_text(encoding="utf-8").rstrip("\n"), text)
    text = typeset(text)
    text = outside_code(lambda part: part.replace("<!-- version -->", package_version()), text)
    text = REFERENCE.sub(lambda found: described(found[1]), text)
    return MARKER.sub(lambda found: PARTS[found[1]][found[2]](), text)


PARTS: dict[str, dict[str, Callable[[], str]]] = {
    "table": TABLES,
    "figures": {"losses": loss_figures, "gallery": gallery},
}
