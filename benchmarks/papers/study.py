"""A study: the cells of one table or figure, what is run in a cell, and what the rows say of the claim."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.papers.claims import CLAIMS, Claim

Row = dict[str, Any]
"""Values by column: text, numbers or truth values."""
SIZES = ("tiny", "quick", "full")
"""A cell or two on rows that come with the package; some of the cells of the study; all of them."""
REPRODUCED, REFUTED, IN_PART, OPEN = "reproduced", "refuted", "reproduced in part", "open"


@dataclass(frozen=True)
class Finding:
    """What the rows say of one part of a claim.

    Attributes
    ----------
    holds : None where there are no rows that settle it.
    number : what decided.
    """

    holds: bool | None
    number: str


def finding(rows: Sized, holds: object, number: str) -> Finding:
    """Whether a part holds, judged by rows; not settled where there are none."""
    return Finding(bool(holds), number) if len(rows) else Finding(None, "not run")


@dataclass(frozen=True)
class Study:
    """One table or figure of a paper.

    Attributes
    ----------
    name : that of its claim, of its file, of the CSV and of the picture.
    cells : from one of `SIZES`, the cells: settings that identify what is run, the same columns in all. Those of
        `quick` are some of those of `full`, so that a quick run can be gone on with; those of `tiny` need no files.
    run : from a cell and a seed, its rows, without the columns of the cell.
    findings : from all rows, what they say of each part of the claim.
    table : from all rows, the columns and rows of the table of the page.
    plot : from all rows, the picture, written to a path.
    why : what explains the findings, a paragraph written when they were known.
    lacks : data and programs of the paper that are not here.
    misprints : of the paper, found on the way.
    decides : the part whose number stands in the verdict; empty for the first that does not hold, else the first.
    page : the page of its own; empty where the common page has all of it.
    alone : whether no other cell may run meanwhile: its times are of the wall clock.
    """

    name: str
    cells: Callable[[str], Sequence[Row]]
    run: Callable[[Row, int], Sequence[Row]]
    findings: Callable[[pd.DataFrame], Mapping[str, Finding]]
    table: Callable[[pd.DataFrame], tuple[Sequence[str], Sequence[Sequence[object]]]]
    plot: Callable[[pd.DataFrame, Path], None]
    why: str = ""
    lacks: str = ""
    misprints: tuple[str, ...] = ()
    decides: str = ""
    page: str = ""
    alone: bool = False

    @property
    def claim(self) -> Claim:
        """What the paper says, and the rules."""
        return CLAIMS[self.name]


def verdict(findings: Mapping[str, Finding]) -> str:
    """Of all parts that are settled: all hold, none holds, or some do."""
    settled = [one.holds for one in findings.values() if one.holds is not None]
    if not settled:
        return OPEN
    return REPRODUCED if all(settled) else IN_PART if any(settled) else REFUTED


def studies() -> dict[str, Study]:
    """Those that have a file, in the order of the claims."""
    from benchmarks.papers import studies as folder

    names = {module.name for module in pkgutil.iter_modules(folder.__path__)}
    return {name: importlib.import_module(f"{folder.__name__}.{name}").STUDY for name in CLAIMS if name in names}
