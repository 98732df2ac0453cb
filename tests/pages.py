"""Code blocks of the pages, for the tests that run them."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def blocks(page, language):
    """The blocks of this language in a page, its path counted from the root of the repository."""
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)
