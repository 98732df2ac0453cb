"""The classes of problems and what is to be reached in each: our time over the best peer's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A class of problems.

    `mean` and `worst` are the most that the geometric mean and the largest ratio may be, for suboptimality 1e-3 and
    1e-6; None where there is no target.
    """

    title: str
    mean: tuple[float | None, float | None]
    worst: tuple[float | None, float | None] = (None, None)

    def of(self, accuracy: float) -> tuple[float | None, float | None]:
        """(mean, worst) for an accuracy; no targets for others than 1e-3 and 1e-6."""
        place = {1e-3: 0, 1e-6: 1}.get(accuracy)
        return (None, None) if place is None else (self.mean[place], self.worst[place])


KINDS: dict[str, Kind] = {
    "hinge-low": Kind("Hinge, d <= 1500", (0.4, 0.4), (1.0, 1.0)),
    "hinge-high": Kind("Hinge, high d", (0.6, 0.6), (1.0, 1.0)),
    "logistic": Kind("Logistic", (0.6, 0.5), (1.0, 1.0)),
    "squared-hinge": Kind("Squared hinge", (0.5, 0.4), (1.0, 1.0)),
    "absolute": Kind("Absolute deviation, quantile, epsilon-insensitive", (0.5, 0.5)),
    "regression": Kind("Huber, Poisson, least squares", (0.6, 0.6)),
    "l1": Kind("L1 + logistic, lasso, L1 + hinge", (0.6, 0.6)),
    "multiclass": Kind("Multiclass hinge, softmax", (0.6, 0.7)),
    "ranking": Kind("ROC area, RankSVM", (0.2, 0.2)),
    "f-beta": Kind("F-beta", (0.03, None)),
    "chain": Kind("Chain CRF, M3N", (0.6, 0.6)),
    "bundle": Kind("Line-search bundle against the bundle programs", (0.3, 0.3)),
}
"""By the name that `Problem.kind` has."""
