"""The judge agrees with bmrm's own objective, which is computed in quite another way."""

import numpy as np
import pytest

from benchmarks.race.judge import objective, pairs_sum
from benchmarks.race.ours import regularizer_of
from benchmarks.race.problem import Problem, Task
from benchmarks.race.sets import with_targets
from bmrm.data.dataset import Dataset
from bmrm.data.matrix import Csr
from bmrm.losses import LOSSES
from bmrm.problem import Targets
from bmrm.risk.linear import LinearRisk

pytestmark = pytest.mark.nightly

ONE_SCORE = {
    "hinge": {},
    "squared_hinge": {},
    "logistic": {},
    "roc_area": {},
    "f_beta": {"beta": 2.0},
    "least_squares": {},
    "least_absolute_deviation": {},
    "quantile": {"tau": 0.8},
    "epsilon_insensitive": {"epsilon": 0.3},
    "squared_epsilon_insensitive": {"epsilon": 0.3},
    "huber": {"delta": 0.4},
    "poisson": {},
}
BINARY = ("hinge", "squared_hinge", "logistic", "roc_area", "f_beta")


def data_of(loss: str, rng: np.random.Generator) -> Dataset:
    X = rng.standard_normal((60, 5))
    if loss in BINARY:
        return with_targets(X, np.where(X[:, 0] + rng.standard_normal(60) > 0.3, 1.0, -1.0))
    if loss == "poisson":
        return with_targets(X, rng.poisson(2.0, 60).astype(float))
    if loss in ("multiclass_hinge", "softmax"):
        return with_targets(X, rng.integers(4, size=60).astype(float))
    if loss == "rank_hinge":
        return with_targets(X, rng.integers(3, size=60).astype(float), np.repeat(np.arange(6), 10))
    if loss.startswith("chain"):
        groups = np.repeat(np.arange(13), [1, 2, 3, 4, 5, 6, 7, 8, 9, 5, 4, 3, 3])
        labels = np.array(["B", "I", "O"])[rng.integers(3, size=60)]
        return Dataset(X, Targets(labels, None, groups))
    return with_targets(X, X[:, 1] + rng.standard_normal(60))


CASES = [*ONE_SCORE, "multiclass_hinge", "softmax", "rank_hinge", "chain_crf", "chain_margin"]


@pytest.mark.parametrize("loss", CASES)
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.1), (0.2, 0.0), (0.1, 0.3)])
def test_objective_is_ours(loss: str, l1: float, l2: float) -> None:
    rng = np.random.default_rng(3)
    data = data_of(loss, rng)
    options = ONE_SCORE.get(loss, {})
    task = Task(Problem("hinge-low", "none", loss, l1=l1, l2=l2, options=options), data)
    risk = LinearRisk(data, LOSSES.make(loss, options))
    for _ in range(3):
        w = rng.standard_normal(risk.dim)
        ours = regularizer_of(task).value(w) + risk.value_and_subgradient(w)[0]
        assert objective(task, w) == pytest.approx(ours, rel=1e-12)


def test_sparse_and_dense_data_have_the_same_objective() -> None:
    rng = np.random.default_rng(0)
    data = data_of("hinge", rng)
    sparse = with_targets(Csr.from_scipy(__import__("scipy.sparse").sparse.csr_matrix(data.X)), data.targets.y)
    problem = Problem("hinge-low", "none", "hinge", l2=0.1)
    w = rng.standard_normal(5)
    assert objective(Task(problem, sparse), w) == pytest.approx(objective(Task(problem, data), w), rel=1e-14)


def test_pairs_by_prefix_sums() -> None:
    rng = np.random.default_rng(1)
    high, low = rng.integers(4, size=9) / 2.0, rng.integers(4, size=7) / 2.0
    slow = sum(max(0.0, 1.0 - (a - b)) for a in high for b in low)
    assert pairs_sum(high, low) == pytest.approx(slow)


def test_weights_that_are_not_finite_are_worth_nothing() -> None:
    data = data_of("hinge", np.random.default_rng(0))
    assert objective(Task(Problem("hinge-low", "none", "hinge", l2=0.1), data), np.full(5, np.nan)) == np.inf
