"""The peers, a file per family; `@peer` makes an object of the class and puts it into the registry."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TypeVar

from benchmarks.race.competitor import Competitor

P = TypeVar("P")
PEERS: dict[str, Competitor] = {}
"""By name, filled by `peers()`."""


def enter(competitor: Competitor) -> None:
    """Make it known under its name."""
    if competitor.name in PEERS:
        raise ValueError(f"two peers are called {competitor.name!r}")
    PEERS[competitor.name] = competitor


def peers() -> dict[str, Competitor]:
    """All peers of all files, whether they can run here or not."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return PEERS


class Folder:
    """A new folder for files, removed with the object (or by whoever ends the process, see `worker`)."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="race-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def not_installed(module: str) -> str:
    """Why a Python peer is missing; empty where it can be imported."""
    try:
        found = importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        found = False
    return "" if found else f"Python package {module.split('.')[0]} is not installed"
