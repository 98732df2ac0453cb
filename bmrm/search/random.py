"""Values of fields that are drawn by chance, from lists and ranges."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bmrm.problem import InputError, shown
from bmrm.registry import parameter
from bmrm.search import register
from bmrm.search._core.candidates import Values, checked_fields
from bmrm.search._core.searching import Searching

RANGE = {"from", "to", "log"}


@register("random", needs="a measure that fits the loss", source="Bergstra & Bengio 2012")
@dataclass(frozen=True, kw_only=True)
class Random(Searching):
    """Train combinations of values of fields that are drawn by chance, and keep the best on held-out rows.

    Judged on the validation data, else on folds; the chosen combination is then trained on all rows.

    Parameters
    ----------
    fields : the fields, each with a list of values, or a range of numbers `{from: 1.0e-5, to: 1.0, log: true}`.
    count : combinations that are drawn.
    folds : parts that are left out in turn where there are no validation data; or a file with the fold of each row.
    split : how rows are divided: stratified, random, grouped, time, or auto.
    repeats : times that they are divided anew.
    measure : that chooses; null = the first of the loss.
    choose : best, or one_standard_error for the largest lambda within one standard error of the best.
    seed : of the folds and the draws; null = that of the config, 0 from Python.

    Raises
    ------
    InputError
        No fields, no values, unknown fields, a range without its ends.
    """

    fields: Mapping[str, Any] = parameter(
        doc="fields with lists of values or ranges", example={"regularizer.lambda": {"from": 1e-4, "to": 1e-1}}
    )
    count: int = parameter(20, least=1, doc="combinations that are drawn", example=3)

    def __post_init__(self) -> None:
        super().__post_init__()
        found = checked_fields(self.fields, lists=False)
        for name, values in found.items():
            if isinstance(values, Mapping):
                _check_range(name, values)
        object.__setattr__(self, "fields", found)

    def tried(self) -> list[Values]:
        """The combinations that are drawn; equal ones once."""
        draw = np.random.default_rng(self.seed or 0)
        found: dict[str, Values] = {}
        for _ in range(self.count):
            values = {name: _drawn(values, draw) for name, values in self.fields.items()}
            found.setdefault(repr(values), values)
        return list(found.values())


def _check_range(name: str, given: Mapping[str, Any]) -> None:
    ends = [given.get("from"), given.get("to")]
    numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) and math.isfinite(one) for one in ends)
    log = given.get("log", True)
    least = 0.0 if log else -math.inf
    if set(given) - RANGE or not numbers or not isinstance(log, bool) or not least < ends[0] < ends[1]:  # type: ignore[operator]
        raise InputError(
            f"search: {name} is {shown(dict(given))}, expected {{from: NUMBER, to: NUMBER, log: true}}, the first "
            "smaller, and above 0 for log"
        )


def _drawn(values: Any, draw: np.random.Generator) -> Any:
    if not isinstance(values, Mapping):
        return values[int(draw.integers(len(values)))]
    low, high = float(values["from"]), float(values["to"])
    if values.get("log", True):
        return float(math.exp(draw.uniform(math.log(low), math.log(high))))
    return float(draw.uniform(low, high))
