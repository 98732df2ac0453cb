"""A lambda relative to the data: `lambda: {scale: mean_norm_squared, over: m, times: 1}`; by default 1 / m.

The PROBE paper (Smith, Kim & Wilbur 2012) takes lambda = X / m, X the square of the mean Euclidean norm of the rows;
Komarek's thesis (2004) penalises sums over rows, so that its rrlambda is `{scale: none, over: m, times: rrlambda}`
for IRLS and twice that for CG-MLE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.mpi.group import Group
from bmrm.problem import InputError, shown
from bmrm.registry import Range, nearest
from bmrm.risk.products import Columns, row_norms

SCALES: Mapping[str, Callable[[float], float]] = {
    "mean_norm_squared": lambda mean_norm: mean_norm**2,
    "none": lambda mean_norm: 1.0,
}
"""Value of `scale` as a function of the mean norm of the rows, scaled as configured, without a constant feature."""
DEFAULTS: Mapping[str, Any] = {"scale": "mean_norm_squared", "over": "m", "times": 1.0}
ONE_OVER_M: Mapping[str, Any] = {"scale": "none", "over": "rows", "times": 1.0}
"""The rule for `lambda: null`: 1 / m, m the rows of positive weight."""
POSITIVE = Range(above=0.0, below=float("inf"))
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "description": "lambda = times * scale / over, taken from the training rows",
    "properties": {
        "scale": {"enum": list(SCALES), "default": DEFAULTS["scale"]},
        "over": {"anyOf": [{"const": "m"}, {"type": "number", "exclusiveMinimum": 0}], "default": DEFAULTS["over"]},
        "times": {"type": "number", "exclusiveMinimum": 0, "default": DEFAULTS["times"]},
    },
    "additionalProperties": False,
}
"""JSON schema of a rule."""


def checked_rule(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The rule with every option; ValueError with what was expected."""
    for key in raw:
        if key not in DEFAULTS:
            raise ValueError(f"a number, or {{scale, over, times}}, not {key!r}{nearest(str(key), DEFAULTS)}")
    rule = dict(DEFAULTS) | dict(raw)
    if not isinstance(rule["scale"], str) or rule["scale"] not in SCALES:
        raise ValueError(f"scale to be one of {', '.join(SCALES)}{nearest(str(rule['scale']), SCALES)}")
    if rule["over"] != "m" and not _positive(rule["over"]):
        raise ValueError("over to be m (the number of rows) or a number > 0")
    if not _positive(rule["times"]):
        raise ValueError("times to be a number > 0")
    return rule


def _positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value in POSITIVE


def lambda_of(rule: Mapping[str, Any], data: Dataset, columns: Columns, group: Group) -> float:
    """Collective: the lambda of a checked rule for the rows of all ranks; sample weights count as repetition.

    In `ONE_OVER_M` they do not: rows of positive weight count as one.
    """
    weights = np.ones(data.rows) if data.targets.weights is None else np.asarray(data.targets.weights, np.float64)
    norms = np.zeros(data.rows) if rule["scale"] == "none" else row_norms(data.X, columns)
    total, rows, present = group.sum(np.array([weights @ norms, weights.sum(), np.count_nonzero(weights)]))
    if not rows > 0.0:
        raise InputError("regularizer.lambda: there are no rows to take it from")
    value = float(rule["times"]) * SCALES[rule["scale"]](float(total / rows))
    value /= {"m": float(rows), "rows": float(present)}.get(rule["over"]) or float(rule["over"])
    if not value > 0.0:
        raise InputError("regularizer.lambda: all rows are 0, so that lambda would be 0; give a number")
    return value


def in_words(rule: Any, value: Any = None) -> Any:
    """A lambda for people: `0.00175747 (1 / m)` for a rule, with the number where it is known; numbers as they are."""
    if rule is not None and not isinstance(rule, Mapping):
        return rule
    try:
        rule = ONE_OVER_M if rule is None else checked_rule(rule)
    except ValueError:  # of a file that something else has written
        return shown(dict(rule))
    times, scale, over = rule["times"], rule["scale"], rule["over"]
    factors = [*([] if times == 1 else [f"{times:g}"]), *([] if scale == "none" else [scale])]
    words = f"{' '.join(factors) or 1} / {'m' if isinstance(over, str) else f'{over:g}'}"
    return f"{value:.6g} ({words})" if isinstance(value, (int, float)) else words


def spoken(config: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """A resolved config for people: where lambda follows from the rows, its value and the rule in words."""
    section = config.get("regularizer")
    if not isinstance(section, Mapping) or "lambda" not in section:
        return dict(config)
    return {**config, "regularizer": {**section, "lambda": in_words(section["lambda"], value)}}
