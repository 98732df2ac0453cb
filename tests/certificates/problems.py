"""A random problem by seed and number: data, loss, regularizer, intercept, scaling, and the solvers to be run on it."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.problem import provides
from bmrm.problem.loss import HasParameters
from bmrm.regularizers import REGULARIZERS
from tests.certificates import features, penalties, plugins, targets

REPEATED = ("roc_area", "partial_roc_area", "ordinal", "ordinal_thresholds", "rank_hinge")
"""Losses whose weights are numbers of copies, which the slow twins take as such."""
SINGLE = ("regression", "novelty", "multivariate", "multilabel")
"""Tasks for which one row is a problem."""


@dataclass(frozen=True)
class Run:
    """A solver and how it is started."""

    solver: str
    options: dict[str, Any]
    start: str = ""
    """From a "normal" random point, one "far" away, or one "near" the optimum, not from 0."""
    threads: int = 1
    door: str = "fit"
    """How a user would run it: "fit", an "estimator", a "config", or a config on two "ranks"."""


@dataclass(frozen=True, eq=False)
class Problem:
    """What is minimised, and by whom.

    `exact` are the features as float64 numbers, `plain` the targets as the slow twins take them, `traits` words that
    say what is odd.
    """

    name: str
    loss: Any
    regularizer: Any
    bias: str
    scale: str
    X: Any
    exact: np.ndarray
    y: Any
    plain: list
    weights: np.ndarray | None
    groups: np.ndarray | None
    traits: list[str]
    runs: list[Run] = field(default_factory=list)
    scattered: bool = False
    """Whether the rows are cut into chunks of a few, and shared out among threads."""
    offset: np.ndarray | None = None
    """Added to the scores, and shaped like them; None for nothing."""
    unit: float | None = None
    """What the package's weights are times those of the formulas, all 1 where these have none; None as they are."""

    @property
    def given_weights(self):
        """The sample weights as the package gets them."""
        if self.unit is None:
            return self.weights
        return self.unit * (np.ones(len(self.exact)) if self.weights is None else self.weights)

    def dataset(self):
        """The rows as the package gets them."""
        return Dataset.from_arrays(self.X, self.y, self.given_weights, self.groups, offset=self.offset)

    @property
    def title(self):
        """A line that says what it is."""
        rows, columns = self.exact.shape
        said = f"{self.loss} + {self.regularizer}, bias {self.bias}, scale {self.scale}, {rows} x {columns}"
        return said + "".join(f", {trait}" for trait in self.traits)


WIDEST = 60
"""Features of a cone program at most."""


def loss_of(seed, index):
    """The loss of a problem, drawn before all else."""
    return plugins.draw_loss(np.random.default_rng([seed, index]))


def draw(seed, index):
    """Problem `index` of `seed`: always the same."""
    loss = loss_of(seed, index)
    rng = np.random.default_rng([seed, index, 1])
    groups = _groups(rng, loss)
    rows = _rows(rng, loss) if groups is None else len(groups)
    weights = _weights(rng, loss, rows, groups)
    columns = features.shape_of(rng, rows, wide=rng.random() < 0.06)
    columns = min(columns, 4) if loss.task == "sequence" else columns
    X, kind = features.plain_features(rng, rows, columns)
    X, odd = features.made_odd(rng, X)
    spread = np.maximum(np.abs(X).max(axis=0), 1e-300)
    hidden = (X / spread) @ rng.normal(size=columns) * 2.0
    present = np.ones(rows) if weights is None else weights
    y, plain = targets.DRAWS[loss.task](rng, hidden, loss, present, groups)
    X, units = features.scaled(rng, X)
    X, exact, storage = features.stored(rng, X)
    traits = [kind, *odd, *units, *storage, *(["weights"] if weights is not None else [])]
    bias = str(rng.choice(["none", "regularized", "free"], p=[0.3, 0.3, 0.4]))
    if getattr(loss, "no_free_intercept", "") and rng.random() < 0.9:
        bias = "regularized" if rng.random() < 0.5 else "none"
    scale = str(rng.choice(["none", "standardize", "max_abs", "unit_norm"], p=[0.55, 0.2, 0.15, 0.1]))
    regularizer = plugins.draw_regularizer(rng)
    return Problem(
        name=f"{seed}/{index}",
        loss=loss,
        regularizer=regularizer,
        bias=bias,
        scale=scale,
        X=X,
        exact=exact,
        y=y,
        plain=plain,
        weights=weights,
        groups=groups,
        traits=traits,
        runs=_runs(rng, loss, regularizer),
        scattered=bool(rng.random() < 0.1),
    )


DOORS = {"estimator": 0.05, "config": 0.01, "ranks": 0.003}
"""The share of the runs that may go through each door besides `fit`, which takes 0.1 to 2 s more."""


def varied(seed, index, later=True):
    """Problem `index` of `seed` with weights of any unit, starts near and far, and every door; always the same.

    Apart from `draw`, by which problems have been found that stay what they are; so do others without what is drawn
    since later: regularizers of blocks, offsets, centers and paths.
    """
    problem, rng = draw(seed, index), np.random.default_rng([seed, index, 2])
    unit, weights, traits = _unit(rng, problem), problem.weights, []
    if unit is not None:
        traits = [f"weights times {unit:.0e}"]
        if weights is not None and problem.loss.name not in REPEATED and problem.groups is None and rng.random() < 0.2:
            weights, unit = np.where(weights > 0.0, 10.0 ** rng.uniform(-40, 40, size=len(weights)), 0.0), 1.0
            traits = ["weights of all sizes"]
    regularizer, runs, offset = problem.regularizer, problem.runs, None
    if later:
        regularizer, runs = _blocks(np.random.default_rng([seed, index, 3]), problem)
        offset = _offset(np.random.default_rng([seed, index, 4]), problem)
        regularizer = _centred(np.random.default_rng([seed, index, 5]), problem, regularizer)
    runs = [_varied_run(rng, run) for run in runs]
    if getattr(regularizer, "center", None) is not None:
        runs, traits = [replace(run, start="") for run in runs], [*traits, "center"]
    traits += [] if offset is None else ["offset"]
    if later:
        runs = [*runs, *_paths(np.random.default_rng([seed, index, 6]), regularizer)]
    given = {"unit": unit, "weights": weights, "traits": [*problem.traits, *traits], "runs": runs, "offset": offset}
    return replace(problem, regularizer=regularizer, **given)


def _paths(rng, regularizer):
    """In one of ten problems a path that ends with its lambda."""
    if rng.random() < 0.9 or not getattr(regularizer, "lam", 0.0) > 0.0:
        return []
    options = {"tolerance": 10.0 ** -int(rng.integers(1, 10)), "max_iterations": 60}
    return [Run("auto", options, start="", threads=1, door="path")]


def _blocks(rng, problem):
    """In three of ten problems a regularizer of blocks, with runs of its own; else what the problem has."""
    if rng.random() < 0.7 or problem.exact.shape[1] > WIDEST:
        return problem.regularizer, problem.runs
    name, options = penalties.draw(rng, problem.exact.shape[1])
    regularizer = REGULARIZERS.make(name, options)
    runs = _runs(rng, problem.loss, regularizer)
    for run in runs:
        most = 60 if run.solver in ("bundle", "line_search_bundle", "auto") else 400  # a cone program each
        run.options["max_iterations"] = min(run.options["max_iterations"], most)
    return regularizer, runs


def _centred(rng, problem, regularizer):
    """In a quarter of the problems with l2 a center of the weights."""
    learns_more = problem.loss.task == "sequence" or provides(problem.loss, HasParameters)
    if regularizer.name != "l2" or learns_more or rng.random() < 0.75:
        return regularizer
    spread = 1.0 / np.maximum(np.abs(problem.exact).max(axis=0), 1e-300)
    center = rng.normal(size=len(spread)) * np.clip(spread, 1e-12, 1e12) * float(rng.choice([1e-3, 1.0, 1.0, 30.0]))
    return replace(regularizer, center=tuple(center.tolist()))


def _offset(rng, problem):
    """Numbers for every score of a row, small, large or mostly 0, or None."""
    if rng.random() < 0.8 or problem.loss.task == "sequence":
        return None
    data = Dataset.from_arrays(problem.X, problem.y, problem.weights, problem.groups)
    prepared = problem.loss.prepare(data.targets, problem.loss.summarise(data.targets))
    shape = (len(problem.exact), prepared.scores_per_row) if prepared.scores_per_row > 1 else len(problem.exact)
    numbers = rng.normal(size=shape)
    kind = str(rng.choice(["plain", "large", "few"]))
    return {"plain": numbers, "large": 30.0 * numbers, "few": numbers * (rng.random(shape) < 0.2)}[kind]


def _unit(rng, problem):
    """None, one of populations or probabilities, or anything that float64 holds."""
    if not problem.loss.weighted or rng.random() < 0.5:
        return None
    return float(10.0 ** (rng.uniform(-20, 12) if rng.random() < 0.5 else rng.uniform(-290, 290)))


def _varied_run(rng, run):
    start, door = run.start, "fit"
    if rng.random() < 0.25:
        start = str(rng.choice(["near", "far"]))
    elif not start:
        names, shares = list(DOORS), list(DOORS.values())
        door = str(rng.choice(["fit", *names], p=[1.0 - sum(shares), *shares]))
    return replace(run, start=start, door=door)


def _runs(rng, loss, regularizer):
    names = [None] * int(rng.integers(1, 4)) + ["auto"] * int(rng.random() < 0.4)
    drawn = [plugins.draw_solver(rng, loss, regularizer, name) for name in names]
    if regularizer.name in plugins.FIRST and regularizer.engine == "cvxopt":  # slow with many planes
        for _, options in drawn:
            options["max_iterations"] = min(options["max_iterations"], 30)
    return [
        Run(name, options, start="normal" if rng.random() < 0.1 else "", threads=2 if rng.random() < 0.1 else 1)
        for name, options in drawn
    ]


def _rows(rng, loss):
    if loss.task in SINGLE and rng.random() < 0.04:
        return 1
    least = max(6, getattr(loss, "k", 0))
    if loss.task == "ontology":
        least = 9
    return int(rng.integers(least, 41))


def _groups(rng, loss):
    """Sentences of up to 4 tokens that follow one another, or queries of up to 5 rows, anywhere; else None."""
    if loss.decomposes != "groups":
        return None
    longest = 4 if loss.task == "sequence" else 5
    sizes = [int(rng.integers(2, longest + 1)), *rng.integers(1, longest + 1, size=int(rng.integers(2, 7)))]
    names = rng.permutation(50)[: len(sizes)]
    groups = np.repeat(names, sizes)
    return rng.permutation(groups) if loss.scattered_groups and rng.random() < 0.3 else groups


def _weights(rng, loss, rows, groups):
    """Sample weights that the loss takes, some 0, or None."""
    if not loss.weighted or rng.random() < 0.6 or rows < 6:
        return None
    if loss.name in REPEATED:
        weights = rng.integers(0, 3, size=rows).astype(float)
        first = np.flatnonzero(groups == groups[0])[:2] if groups is not None else np.arange(5)
        if groups is not None:
            first = np.flatnonzero(groups == np.unique(groups)[np.argmax(np.unique(groups, return_counts=True)[1])])[:2]
        weights[first] = 1.0
        return weights
    kind = rng.choice(["whole", "real", "extreme"])
    weights = {
        "whole": rng.integers(0, 4, size=rows).astype(float),
        "real": rng.exponential(size=rows) * (rng.random(rows) < 0.8),
        "extreme": 10.0 ** rng.uniform(-6, 6, size=rows) * (rng.random(rows) < 0.8),
    }[str(kind)]
    least = {"ontology": 7}.get(loss.task, 5)
    weights[:least] = np.maximum(weights[:least], 1e-3)
    if loss.task == "sequence":
        weights = np.maximum(weights, 1e-3)[np.searchsorted(np.unique(groups), groups)]
        if rng.random() < 0.5 and len(np.unique(groups)) > 3:
            weights[groups == groups[-1]] = 0.0
    return weights
