"""What could a proof that a candidate cannot win save in a cross-validation? At most this, the winner being known.

By strong convexity ||w - w*|| <= sqrt(2 gap / lambda), so that a score x.w is within ||x|| sqrt(2 gap / lambda) of that
at the minimum, and a measure of held-out rows lies between two bounds. A candidate is left at the first iteration where
its upper bound, the mean over the folds, is below the lower bound of the winner at its end. A race with these bounds
has to find the winner, too, and leaves candidates later. Free intercepts have no such bound: they are regularized here.

    python -m benchmarks.proved_choices
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_classification
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

import bmrm
from bmrm.data.reading import read

LAMBDAS = np.geomspace(1e-5, 1e-1, 5)
FOLDS = 3
TOLERANCES = 1e-3, 1e-6
MEASURES = "accuracy", "auc", "log_loss"
STEP = 10.0**-0.25
"""Between two gaps at which candidates are looked at."""


@dataclass(frozen=True)
class Seen:
    """An iteration of a training: passes so far, relative gap, bounds of each measure, the larger the better."""

    passes: float
    gap: float
    bounds: dict[str, tuple[float, float]]


def sets() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Eight sets of two classes."""
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast_cancer", StandardScaler().fit_transform(X), y
    X, y = load_digits(return_X_y=True)
    yield "digits, odd", X / 16.0, y % 2
    yield "digits, 8", X / 16.0, (y == 8).astype(int)
    X, y = load_wine(return_X_y=True)
    yield "wine, 1", StandardScaler().fit_transform(X), (y == 1).astype(int)
    X, y = load_iris(return_X_y=True)
    yield "iris, 1", StandardScaler().fit_transform(X), (y == 1).astype(int)
    yield "noisy", *make_classification(2000, 50, n_informative=10, flip_y=0.1, random_state=0)
    yield "wide", *make_classification(300, 200, n_informative=10, random_state=1)
    links = read("synthetic:links?rows=3000&features=300&groups=60")
    yield "links", links.X.to_dense(), links.targets.y.astype(int)  # type: ignore[union-attr]


def bounds(f: np.ndarray, y: np.ndarray, radius: np.ndarray) -> dict[str, tuple[float, float]]:
    """Of each measure at the minimum, where scores are within these radii."""
    if not np.isfinite(radius).all():
        return dict.fromkeys(MEASURES, (-math.inf, math.inf))
    sign = np.where(y == 1, 1.0, -1.0)
    low, high = sign * f - radius, sign * f + radius
    return {
        "accuracy": (float(np.mean(low > 0)), float(np.mean(high > 0))),
        "auc": (roc_auc_score(y, sign * low), roc_auc_score(y, sign * high)),
        "log_loss": (-float(np.mean(np.logaddexp(0.0, -low))), -float(np.mean(np.logaddexp(0.0, -high)))),
    }


def training(X: np.ndarray, y: np.ndarray, held: np.ndarray, y_held: np.ndarray, lam: float) -> list[Seen]:
    """All iterations of a training."""
    rows = np.column_stack((held, np.ones(len(held))))
    sizes, found = np.linalg.norm(rows, axis=1), []

    def see(passes: float, objective: float, lower_bound: float, w: np.ndarray) -> None:
        gap = max(objective - lower_bound, 0.0)
        found.append(Seen(passes, gap / abs(objective), bounds(rows @ w, y_held, sizes * math.sqrt(2.0 * gap / lam))))

    def callback(line: bmrm.Iteration) -> None:
        if line.w is not None:
            see(line.passes, line.objective, line.lower_bound, line.w)

    model = bmrm.fit(X, y, loss="logistic", bias="regularized", lam=lam, tolerance=TOLERANCES[-1], callback=callback)
    s = model.solution
    see(s.passes, s.objective, s.lower_bound, s.w)
    return found


def saved(trainings: dict[tuple[int, float], list[Seen]], tolerance: float, measure: str) -> float:
    """Passes of all trainings to the tolerance over those that are left once candidates are left."""

    def at(lam: float, gap: float) -> list[Seen]:
        lines = [trainings[k, lam] for k in range(FOLDS)]
        return [next((one for one in line if one.gap <= gap), line[-1]) for line in lines]

    ends = {lam: at(lam, tolerance) for lam in LAMBDAS}
    lowest = {lam: float(np.mean([one.bounds[measure][0] for one in ends[lam]])) for lam in LAMBDAS}
    winner = max(lowest, key=lambda lam: lowest[lam])
    spent, gaps = 0.0, STEP ** np.arange(round(math.log(tolerance) / math.log(STEP)))
    for lam in LAMBDAS:
        stages = [at(lam, gap) for gap in gaps] if lam != winner else []
        out = (s for s in stages if np.mean([one.bounds[measure][1] for one in s]) < lowest[winner])
        spent += sum(one.passes for one in next(out, ends[lam]))
    return sum(one.passes for line in ends.values() for one in line) / spent


def main() -> None:
    """Print a line for each set."""
    head = [f"{measure} {tolerance:g}" for tolerance in TOLERANCES for measure in MEASURES]
    print("| set | " + " | ".join(head) + " |")
    print("|---" * (len(head) + 1) + "|")
    for name, X, y in sets():
        trainings = {}
        for k, (train, held) in enumerate(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y)):
            for lam in LAMBDAS:
                trainings[k, lam] = training(X[train], y[train], X[held], y[held], float(lam))
        cells = [f"{saved(trainings, t, measure):.2f}" for t in TOLERANCES for measure in MEASURES]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
