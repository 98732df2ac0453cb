"""All combinations of values of fields, such as `{regularizer.lambda: [1e-4, 1e-3], loss.epsilon: [0.1, 0.2]}`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bmrm.registry import parameter
from bmrm.search import register
from bmrm.search._core import candidates
from bmrm.search._core.candidates import Values, checked_fields
from bmrm.search._core.searching import Searching


@register("grid", needs="a measure that fits the loss", source="custom")
@dataclass(frozen=True, kw_only=True)
class Grid(Searching):
    """Train every combination of values of fields, and keep the best on held-out rows.

    Values that differ in lambda alone are walked from the largest down, on rows that are prepared once. Judged on the
    validation data, else on folds; the chosen combination is then trained on all rows.

    Parameters
    ----------
    fields : the fields, each with a list of values. In a config they may stand beside the options: `search:
        {regularizer.lambda: [1.0e-4, 1.0e-3], folds: 10}`.
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

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "fields", checked_fields(self.fields))

    def tried(self) -> list[Values]:
        """All combinations, the last field varying first."""
        return list(candidates.grid(self.fields))
