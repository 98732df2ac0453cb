"""Whether rows may go from rank to rank, why, and what is done with that: said before any is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

OF_RANK = "{rank"
"""Placeholder in a path by which each rank has a file of its own."""


@dataclass(frozen=True)
class Sharing:
    """Of one run.

    Attributes
    ----------
    allowed : whether rows may go to other ranks.
    why : what says so.
    dealt : whether they are dealt out after reading.
    chosen : whether `auto` chooses who solves; with slices all do.
    guarded : whether their owners hold back all but sums.
    movable : whether they could go if that were allowed.
    """

    allowed: bool
    why: str
    dealt: bool
    chosen: bool
    guarded: bool = False
    movable: bool = True

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Sharing:
        """As `Settings.plain()` has it."""
        given, train = settings["data"]["share_rows"], settings["data"]["train"]
        own, guarded = [source for source in train if OF_RANK in source], settings["data"].get("guard") is not None
        if guarded:
            allowed, why = False, "data.guard holds back all but sums over them"
        elif given is not None:
            allowed, why = bool(given), f"data.share_rows is {str(bool(given)).lower()}"
        elif own:
            allowed, why = False, f"{own[0]} is another file on each rank"
        else:
            allowed, why = True, "every rank can read data.train"
        chosen = settings["solver"]["name"] == "auto" and not settings["mpi"]["slices"]
        return cls(allowed, why, allowed and settings["search"] is None, chosen, guarded)

    def of_rows(self, resident: bool) -> Sharing:
        """For rows that were read; those that are larger than memory (not `resident`) stay."""
        if resident or not self.allowed:
            return self
        return replace(self, allowed=False, why="they are larger than memory", dealt=False, movable=False)

    def in_words(self) -> str:
        """For the beginning of a run."""
        if not self.allowed:
            if self.guarded:
                what = "; no scores on rank 0, so no measures"
            else:
                what = "; `data.share_rows: true` lets them move" if self.movable else ""
            return (
                f"rows stay on their ranks, since {self.why}: no start from a sample, no small problem solved on"
                f" rank 0{what}"
            )
        done = ["they are dealt out by chance"] if self.dealt else ["rank 0 may take a sample of them to start from"]
        if self.chosen:
            done.append("rank 0 solves alone, with all of them, where `auto` finds that faster")
        return (
            f"rows may move between ranks, since {self.why}: {', and '.join(done)};"
            " `data.share_rows: false` keeps them where they are read"
        )

    def plain(self, dealt: bool, alone: bool) -> dict[str, Any]:
        """For summary.json: with whether rows were dealt out, and whether rank 0 has solved with all of them."""
        return {"allowed": self.allowed, "why": self.why, "dealt_out": dealt, "rank_0_alone": alone}
