"""The blocks of a page, run in the order of the page, as its reader would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.docs.given import bring
from tests.pages import COMMANDS, Block, blocks_of, given

OTHERS = {"docs/install.md": "installs from the package index; the tests of the wheel follow it"}
"""Pages none of whose blocks runs here."""


def runs(block: Block) -> bool:
    """Whether the block is run: a source of the package that a page shows is tested where it is."""
    if block.reason is not None or block.page in OTHERS:
        return False
    return block.language in COMMANDS or (block.language == "python" and not block.text.startswith('"""'))


def run_page(page: str, folder: Path) -> None:
    """Run the page in an empty folder; what its commands print is what it shows."""
    for name in given(page):
        bring(name, folder)
    for block in blocks_of(page):
        if block.title is not None:
            (folder / block.title).write_text(block.text)
        if runs(block) and block.language == "python":
            ran(python(block, folder), folder, block)
        elif runs(block):
            for command, shown in block.commands:
                printed = ran(["bash", "-e", "-o", "pipefail", "-c", command], folder, block)
                assert says(printed, shown), (str(block), command, printed)


def python(block: Block, folder: Path) -> list[str]:
    """The words that run a Python block."""
    path = folder / (block.title or "block.py")
    path.write_text(block.text)
    tests = ["-m", "pytest", "-q"] if path.name.startswith("test_") else []
    return [sys.executable, "-W", "error", *tests, path.name]


def ran(words: list[str], folder: Path, block: Block) -> str:
    """What the command prints, on both streams; it succeeds."""
    beside = Path(sys.executable).parent
    changes = {"PATH": f"{beside}{os.pathsep}{os.environ['PATH']}", "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "120"}
    done = subprocess.run(
        words,
        cwd=folder,
        env=os.environ | changes,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,  # a cold cache of kernels on a busy machine
    )
    assert done.returncode == 0, (str(block), words, done.stdout)
    return done.stdout


def says(printed: str, shown: str) -> bool:
    """Whether what is shown is printed, blanks apart; `...` stands for anything."""
    parts = [re.escape(" ".join(part.split())) for part in shown.split("...")]
    return re.search(".*".join(parts), " ".join(printed.split())) is not None
