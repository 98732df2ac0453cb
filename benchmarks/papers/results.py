"""Rows of studies in CSV files: a cell whose rows are there is not run again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from benchmarks.papers.study import Row, Study

KEPT = Path(__file__).resolve().parents[1] / "results" / "papers"
"""What the pages are made from."""
SEED, SECONDS = "seed", "cell_seconds"
"""Columns that every file has besides those of the cell and of its results: the seed, and what the cell took."""


@dataclass(frozen=True)
class Results:
    """The file of one study.

    Attributes
    ----------
    study : whose rows.
    folder : where the file is; both are made by the first rows.
    """

    study: Study
    folder: Path

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / f"{self.study.name}.csv"

    def frame(self, seed: int | None = None) -> pd.DataFrame:
        """All rows, or those of a seed; empty where there is no file."""
        if not self.path.exists():
            return pd.DataFrame()
        rows = pd.read_csv(self.path, keep_default_na=False, na_values=["nan"])
        return rows if seed is None else rows[rows[SEED] == seed].reset_index(drop=True)

    def done(self, seed: int) -> set[str]:
        """The cells that have rows of this seed, as `identity` writes them."""
        rows = self.frame(seed)
        if rows.empty:
            return set()
        keys = list(self.study.cells("full")[0])
        return {identity(dict(zip(keys, values))) for values in rows[keys].drop_duplicates().itertuples(index=False)}

    def add(self, cell: Row, seed: int, rows: Sequence[Row], seconds: float) -> None:
        """Append the rows of a cell, all or none."""
        new = pd.DataFrame([{**cell, SEED: seed, **row, SECONDS: round(seconds, 2)} for row in rows])
        old = self.frame()
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        (pd.concat([old, new], ignore_index=True) if len(old) else new).to_csv(
            part, index=False, float_format="%.7g", na_rep="nan"
        )
        os.replace(part, self.path)


def identity(cell: Row) -> str:
    """What tells a cell from others, the same before it is written and after it is read."""
    return " ".join(f"{key}={_text(value)}" for key, value in cell.items())


def _text(value: object) -> str:
    if isinstance(value, str | bool):
        return str(value)
    return f"{float(value):.7g}"  # type: ignore[arg-type]
