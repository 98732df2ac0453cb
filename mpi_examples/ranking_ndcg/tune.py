"""`python -m mpi_examples.ranking_ndcg.tune`: NDCG@10 of `ndcg`, `rank_hinge` and lightgbm's lambdarank.

How `ndcg` weighs its pairs is chosen on folds of the training queries, each left out in turn, before any other query
is looked at: that is the first line, other joint scores are there to show what the choice matters. Lambda, and the size
of lambdarank's trees and their number, are chosen on the validation queries. The test queries are only measured. The
last lines take lambda from the folds as well, so that the validation queries have no part in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.data.reading import read
from bmrm.metrics import ranked
from mpi_examples.prepare import prepare, shared_data
from mpi_examples.ranking_ndcg import lambdarank
from mpi_examples.tuning import Array, Contender, choose, options, print_table, trainer

Loss = dict[str, Any]
JOINT_SCORES: tuple[Loss, ...] = tuple({"name": "ndcg", "joint": joint} for joint in ("pairs", "pair_mean", "pair_sum"))
AVERAGES: tuple[Loss, ...] = tuple({"name": "rank_hinge", "average": average} for average in ("pairs", "queries"))
RANKS: Loss = {"name": "ndcg", "joint": "ranks"}
LAMBDAS = tuple(10.0**-k for k in range(-6, 7))
TOLERANCE = 1e-4
FOLDS = 5


@dataclass(frozen=True)
class Line:
    """What is measured of one choice; `test` and `test_ranks` are per query."""

    name: str
    setting: str
    validation: float
    test: Array
    test_ranks: Array


def ndcg_at_10(model: Any, rows: Dataset) -> float:
    """Mean over the queries that have a relevant row."""
    return float(np.mean(by_query(model, rows, lambda y, f: ranked.ndcg(y, f, 10))))


def by_query(model: Any, rows: Dataset, measure: ranked.Measure) -> Array:
    """The measure for each query where it is defined."""
    y, f = np.asarray(rows.targets.y, np.float64), model.decision_function(rows)
    groups = np.asarray(rows.targets.groups)
    values = [measure(y[groups == k], f[groups == k]) for k in np.unique(groups)]
    return np.array([value for value in values if value is not None])


def parts_of(train: Dataset, repeats: int) -> Iterator[tuple[Dataset, Dataset]]:
    """All but one fold of the queries, and that fold; `repeats` times in other folds."""
    groups = np.asarray(train.targets.groups)
    names, query = np.unique(groups, return_inverse=True)
    for seed in range(repeats):
        fold = (np.random.default_rng(seed).permutation(names.size) % FOLDS)[query]
        for k in range(FOLDS):
            yield train.select(np.flatnonzero(fold != k)), train.select(np.flatnonzero(fold == k))


def on_folds(train: Dataset, loss: Loss, repeats: int, lambdas: Sequence[float]) -> tuple[float, float]:
    """The lambda of the largest NDCG@10 on folds left out, and that figure."""
    learn = trainer(loss, TOLERANCE)
    figures = [
        [ndcg_at_10(learn(rows, left_out, lam), left_out) for lam in lambdas]
        for rows, left_out in parts_of(train, repeats)
    ]
    means = np.mean(figures, axis=0)
    return lambdas[int(np.argmax(means))], float(means.max())


def measured(name: str, setting: str, model: Any, validation: Dataset, test: Dataset) -> Line:
    """The figures of one model."""
    return Line(
        name,
        setting,
        ndcg_at_10(model, validation),
        by_query(model, test, lambda y, f: ranked.ndcg(y, f, 10)),
        by_query(model, test, ranked.reciprocal_rank),
    )


def title(loss: Loss) -> str:
    """As a config has it."""
    option = ", ".join(f"`{key}: {value}`" for key, value in loss.items() if key != "name")
    return f"`{loss['name']}`, {option}"


def main(arguments: list[str] | None = None) -> None:
    """Print the figures on folds, then those of validation and test queries."""
    parser = options("ranking_ndcg", __doc__, LAMBDAS)
    parser.add_argument("--repeats", type=int, default=3, help="how often the training queries are parted into folds")
    given = parser.parse_args(arguments)
    print(prepare("ranking_ndcg", shared_data(given.without_shared)))
    folder = Path("runs/data/ranking_ndcg")
    train, validation, test = (read(folder / f"{part}.npz") for part in ("train", "validation", "test"))

    figures = {title(loss): on_folds(train, loss, given.repeats, given.lambdas) for loss in (*JOINT_SCORES, *AVERAGES)}
    best = max(JOINT_SCORES, key=lambda loss: figures[title(loss)][1])
    others = [loss for loss in JOINT_SCORES if loss is not best]
    tried = [[name, f"lambda {lam:.0e}", f"{value:.4f}"] for name, (lam, value) in figures.items()]
    lines: list[Line] = []
    for loss in (best, *AVERAGES, *others, RANKS):
        choice = choose(Contender(title(loss), trainer(loss, TOLERANCE)), given.lambdas, train, validation, ndcg_at_10)
        lines.append(measured(title(loss), f"lambda {choice.lam:.0e}", choice.model, validation, test))
    by_folds = []
    for loss in (best, *AVERAGES, *others):
        lam = figures[title(loss)][0]
        model = trainer(loss, TOLERANCE)(train, validation, lam)
        by_folds.append(measured(title(loss), f"lambda {lam:.0e}, by folds", model, validation, test))

    title_of_trees, without = "lightgbm `lambdarank`", ""
    try:
        trees = lambdarank.by_validation(train, validation, ndcg_at_10)
        lines.append(measured(title_of_trees, said_of(trees), trees, validation, test))
        trees, value = lambdarank.by_folds(train, parts_of(train, given.repeats), ndcg_at_10)
        tried.append([title_of_trees, said_of(trees), f"{value:.4f}"])
        by_folds.append(measured(title_of_trees, f"{said_of(trees)}, by folds", trees, validation, test))
    except ImportError:
        without = "lightgbm is not installed (extra `dev`): no lambdarank"
    print_table(("loss", "best", f"NDCG@10 on folds of training queries, {given.repeats} x {FOLDS}"), tried)
    print()
    report([*lines, *by_folds])
    if without:
        print(without)


def said_of(trees: lambdarank.Boosted) -> str:
    """The size of a forest."""
    return f"{trees.leaves} leaves, {trees.trees} trees"


def report(lines: Sequence[Line]) -> None:
    """A table; the first line is held against each other, with standard errors over the test queries."""
    rows, first = [], lines[0]
    for line in lines:
        ahead = first.test - line.test
        error = ahead.std(ddof=1) / np.sqrt(ahead.size)
        rows.append(
            [
                line.name,
                line.setting,
                f"{line.validation:.4f}",
                f"{line.test.mean():.4f}",
                "" if line is first else f"{ahead.mean():+.4f} ± {error:.4f}",
                f"{line.test_ranks.mean():.3f}",
            ]
        )
    against = f"the first line ahead on the same {first.test.size} queries"
    print_table(("loss", "chosen", "validation NDCG@10", "test NDCG@10", against, "test MRR"), rows)


if __name__ == "__main__":
    main()
