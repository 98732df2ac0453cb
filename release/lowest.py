"""`python -m release.lowest`: the lower bounds of `pyproject.toml` as constraints of pip.

`make test-lowest` makes an environment that has exactly these versions and runs the quick tests in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from packaging.requirements import Requirement

from release.project import project

WITHOUT = ("docs", "bench")
"""Extras that the tests do without."""


def constraints(about: dict[str, Any]) -> dict[str, str]:
    """The lower bound of every package that has one: `name>=1.2` gives {"name": "1.2"}.

    Parameters
    ----------
    about : the table `project` of `pyproject.toml`.

    Raises
    ------
    ValueError : a package has two lower bounds; only one of them would be tested.
    """
    found: dict[str, str] = {}
    for requirement in _requirements(about):
        for bound in requirement.specifier:
            if bound.operator == ">=" and found.setdefault(requirement.name, bound.version) != bound.version:
                raise ValueError(f"{requirement.name}: lower bounds {found[requirement.name]} and {bound.version}")
    return found


def _requirements(about: dict[str, Any]) -> Iterator[Requirement]:
    yield from map(Requirement, about["dependencies"])
    for name, extra in about["optional-dependencies"].items():
        if name not in WITHOUT:
            yield from map(Requirement, extra)


if __name__ == "__main__":
    print("\n".join(f"{name}=={version}" for name, version in constraints(project()).items()))
