"""How well scores predict targets: measures by name, over scikit-learn's. Losses name those that suit them.

A measure is a function of `Scored` under `@measure`, in one of the files of this folder.
"""

from bmrm.metrics import classes, label_sets, numbers, rankings, sequences  # noqa: F401  (they register measures)
from bmrm.metrics.core import MEASURES, Measure, Scored, evaluate, measure

__all__ = ["MEASURES", "Measure", "Scored", "evaluate", "measure"]
