"""`python -m mpi_examples.roc_area.tune`: AUC on rows held out, lambda chosen on others, beside plain hinge."""

from __future__ import annotations

from sklearn.metrics import roc_auc_score

from bmrm.app.model import Model
from bmrm.data.dataset import Dataset
from mpi_examples.prepare import shared_data
from mpi_examples.roc_area.data import load
from mpi_examples.tuning import Contender, compare, options_of_splits, trainer

CONTENDERS = (
    Contender("`roc_area`", trainer("roc_area")),
    Contender("`hinge`", trainer("hinge")),
    Contender("`hinge`, free intercept", trainer("hinge", bias="free")),
)


def auc(model: Model, rows: Dataset) -> float:
    """The area under the ROC curve."""
    return float(roc_auc_score(rows.targets.y, model.decision_function(rows)))


def main(arguments: list[str] | None = None) -> None:
    """Print a line per loss."""
    given = options_of_splits("roc_area", __doc__).parse_args(arguments)
    data, said = load(shared_data(given.without_shared))
    print(f"{said}: {data.rows} rows, AUC, {given.splits} splits")
    compare(data, CONTENDERS, auc, given)


if __name__ == "__main__":
    main()
