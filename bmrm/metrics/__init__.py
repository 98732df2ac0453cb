"""How well scores predict targets: measures by name, over scikit-learn's. Losses name those that suit them.

A measure is a function of `ScoredRows` under `@measure`, in one of the files of this folder; it fits the losses of its
tasks.
"""

from bmrm.metrics import classes, numbers, rankings, sequences  # noqa: F401  (they register measures)
from bmrm.metrics.core import (
    MEASURES,
    TASKS,
    Measure,
    Number,
    ScoredRows,
    check_metrics,
    evaluate,
    fitting,
    measure,
    value_of,
)

__all__ = [
    "MEASURES",
    "TASKS",
    "Measure",
    "Number",
    "ScoredRows",
    "check_metrics",
    "evaluate",
    "fitting",
    "measure",
    "value_of",
]
