"""Successive halving: all candidates get few passes, the better part of them more, and so on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bmrm.metrics.core import chosen
from bmrm.registry import parameter
from bmrm.search import register
from bmrm.search._core import candidates
from bmrm.search._core.candidates import Candidate, Values, checked_fields
from bmrm.search._core.searching import Searching
from bmrm.search._core.trials import Trial, Trials, mean


@register("halving", needs="a measure that fits the loss", source="Jamieson & Talwalkar 2016")
@dataclass(frozen=True, kw_only=True)
class Halving(Searching):
    """Train all combinations of values for a few passes, then the better part of them on, until few are left.

    A training of a round goes on from that of the last one; the last round trains to the tolerance. Judged on the
    validation data, else on folds; the chosen combination is then trained on all rows. What is dropped early may have
    been the best.

    Parameters
    ----------
    fields : the fields, each with a list of values.
    factor : of the candidates of a round one in so many is left, and gets so many times the passes.
    passes : of each training of the first round, over its rows.
    folds : parts that are left out in turn where there are no validation data; or a file with the fold of each row.
    split : how rows are divided: stratified, random, grouped, time, or auto.
    repeats : times that they are divided anew.
    measure : that chooses; null = the first of the loss.
    choose : best, or one_standard_error for the largest lambda within one standard error of the best.
    seed : of the folds; null = that of the config, 0 from Python.

    Raises
    ------
    InputError
        No fields, no values, unknown fields.
    """

    fields: Mapping[str, Any] = parameter(doc="fields with values", example={"regularizer.lambda": [1e-3, 1e-2]})
    factor: int = parameter(3, least=2, doc="one candidate in so many is left", example=2)
    passes: float = parameter(10.0, above=0.0, below=math.inf, doc="of a training of the first round", example=5.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "fields", checked_fields(self.fields))

    def tried(self) -> list[Values]:
        """All combinations, the last field varying first."""
        return list(candidates.grid(self.fields))

    def trials(self, trials: Trials, candidates: Sequence[Candidate]) -> list[Trial]:
        """Collective: rounds; those that were dropped keep what they were judged by, and are not chosen."""
        left, budget, number = list(range(len(candidates))), self.passes, 1
        found: dict[int, Trial] = {}
        while True:
            last = len(left) <= self.factor
            some = trials.further([candidates[k] for k in left], None if last else budget)
            found |= {k: replace(one, rounds=number) for k, one in zip(left, some)}
            if last:
                break
            kept = self._better(left, found) if some else None
            left = trials.group.broadcast(kept)
            budget, number = budget * self.factor, number + 1
        lines = [found[k] for k in sorted(found)]
        return [one if one.rounds == number else replace(one, dropped=True) for one in lines]

    def _better(self, left: Sequence[int], found: dict[int, Trial]) -> list[int]:
        measure = self.measure or next(iter(found[left[0]].by_fold))
        sign = chosen(measure)[0].sign

        def rank(k: int) -> tuple[float, float, int]:
            value = mean(found[k].by_fold[measure])
            return (math.inf if value is None else -sign * value, -found[k].lam, k)

        return sorted(sorted(left, key=rank)[: math.ceil(len(left) / self.factor)])
