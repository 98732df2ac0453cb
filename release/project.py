"""What `pyproject.toml` says."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]


def project(root: Path = ROOT) -> dict[str, Any]:
    """The table `project`."""
    table: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def pythons(about: dict[str, Any]) -> list[str]:
    """The versions of Python that the classifiers name, such as "3.10"."""
    last = (classifier.rpartition(" :: ")[2] for classifier in about["classifiers"] if ":: Python ::" in classifier)
    return [version for version in last if "." in version]
