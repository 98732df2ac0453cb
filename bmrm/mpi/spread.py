"""How rows and work are spread over the ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bmrm.mpi.group import Group

UNEVEN = 0.2
"""Excess of the most loaded rank over the mean above which it is reported."""
SHORT = 0.5
"""Mean seconds of computation below which differences of ranks are chance and not reported."""
FEW = 10_000
"""Mean entries of a rank below which messages dominate a pass and differences are not reported."""


@dataclass(frozen=True)
class Spread:
    """On rank 0, of each rank.

    Attributes
    ----------
    rows, entries : of the training data.
    seconds : that it has computed; empty before the solver.
    """

    rows: Sequence[int]
    entries: Sequence[int]
    seconds: Sequence[float] = ()

    def in_words(self) -> str:
        """From the least to the most."""
        parts = [f"rows {_range(self.rows)}", f"entries {_range(self.entries)}"]
        return ", ".join(parts) + " each"

    def warning(self, alone: bool = False) -> str | None:
        """The rank that the others wait for, where it has or computes more than `UNEVEN` above the mean.

        None where rank 0 solved `alone`: the others were not meant to compute.
        """
        if alone:
            return None
        if self.seconds:
            return _uneven(self.seconds, SHORT, "computes for {most:.3g} s, {share:.0%} more than the mean")
        return _uneven(self.entries, FEW, "has {most:,} entries, {share:.0%} more than the mean")

    def plain(self) -> dict[str, Any]:
        """For summary.json."""
        return {"rows": list(self.rows), "entries": list(self.entries), "seconds": list(self.seconds)}


def spread(rows: int, entries: int, group: Group, seconds: float | None = None) -> Spread | None:
    """Collective: of what each rank has, and computed; None but on rank 0."""
    found = group.gather([rows, entries, seconds])
    if found is None:
        return None
    times = [] if seconds is None else [float(each[2]) for each in found]
    return Spread([int(each[0]) for each in found], [int(each[1]) for each in found], times)


def _range(numbers: Sequence[int]) -> str:
    least, most = min(numbers), max(numbers)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _uneven(numbers: Sequence[float], enough: float, words: str) -> str | None:
    most, mean = max(numbers), sum(numbers) / len(numbers)
    if mean < enough or most <= (1.0 + UNEVEN) * mean:
        return None
    rank = list(numbers).index(most)
    return f"rank {rank} {words.format(most=most, share=most / mean - 1.0)}: the others wait for it"
