"""What a guarded rank judges of points and sums, in one process."""

from types import SimpleNamespace

import numpy as np
import pytest

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.mpi.guard import RefusedError
from bmrm.mpi.watch import PATIENCE, Watch
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))


def watch(loss="hinge", y=None, min_rows=5, groups=None, omega=None, **options):
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0) if y is None else y
    risk = LinearRisk(Dataset.from_arrays(X, y, groups=groups), LOSSES.make(loss), threads=1, **options)
    found = Watch(SimpleNamespace(share=SimpleNamespace(risk=risk)), min_rows)
    found.begin(L2(0.1) if omega is None else omega, found.zero())
    return found


def slopes(*shares):
    found = np.zeros(60)
    found[: len(shares)] = shares
    return found


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        (slopes(), None),
        (slopes(1, -1, 1, -1, 1), None),
        (slopes(1, 1, 1, 1), "made of 4 rows, expected at least 5"),
        (slopes(1), "made of 1 row, expected at least 5"),
        (slopes(1, 1, 1, 1, 1e-4), "made of 4 rows"),
        (slopes(9, 1, 1, 1, 1, 1), "a single row would make 64% of the answer"),
        (slopes(5, 1, 1, 1, 1, 1), None),
        (1e-300 * slopes(1, 1, 1, 1), "made of 4 rows"),
        (np.full(60, 1e300), None),
        (np.full(60, np.inf), None),
    ],
)
def test_a_sum_is_made_of_many_rows(numbers, said):
    if said is None:
        watch().many(numbers)
        return
    with pytest.raises(RefusedError, match=said):
        watch().many(numbers)


def test_a_product_counts_where_both_are():
    with pytest.raises(RefusedError, match="made of 2 rows"):
        watch().many(slopes(1, 1, 1, 1, 1, 1), slopes(1, 1))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("w", "refused"),
    [
        ([0.0, 0.0, 0.0, 0.0], False),
        ([0.0, 2.0, 0.0, 0.0], True),
        ([1e-12, 2.0, 0.0, 1e-12], True),
        ([1e-6, 2.0, 0.0, 1e-6], False),
        ([1.0, 1.0, -1.0, 1.0], False),
    ],
)
def test_a_point_isolates_no_feature(w, refused, bias):
    given = np.array([*w, 7.0] if bias else w)
    for omega, judged in ((L2(0.1), refused), (L1(0.1), False)):
        if judged:
            with pytest.raises(RefusedError, match="isolate a feature"):
                watch(bias=bias, omega=omega).weights(given)
        else:
            watch(bias=bias, omega=omega).weights(given)


@pytest.mark.parametrize("w", [np.full(4, np.nan), np.full(4, np.inf), np.zeros(5), np.zeros(4, int), None, 3.0])
def test_what_is_no_point_is_refused(w):
    with pytest.raises(RefusedError, match=r"not finite|no weights"):
        watch().weights(w)


def again(found, part):
    for _ in range(2 * PATIENCE):
        found.falls(part())


def test_parts_above_the_start_must_come_down():
    found = watch()
    for _ in range(10 * PATIENCE):  # at J(0) and below all is well
        found.falls(1.0)
    for k in range(3 * PATIENCE):  # lower and lower
        found.falls(1e6 * 0.9 ** (k / 10))
    found.falls(0.5)
    with pytest.raises(RefusedError, match=f"at {PATIENCE + 1} points, one after another"):
        again(found, lambda: 2.0 + RNG.random())


def test_overflow_is_no_severe_rise_but_counts():
    found = watch()
    with pytest.raises(RefusedError, match="one after another"):
        again(found, lambda: np.inf)
    with pytest.raises(RefusedError, match="does not fall as expected: this rank's part of it is 1e\\+10"):
        watch().falls(1e10)


@pytest.mark.parametrize(
    ("loss", "y", "groups"),
    [
        ("softmax", np.arange(60) % 3, None),
        ("chain_crf", np.arange(60) % 3, np.arange(60) // 5),
        ("ndcg", np.arange(60) % 3 * 1.0, np.arange(60) // 5),
        ("poisson", np.arange(60) % 3 * 1.0, None),
    ],
)
def test_losses_of_several_scores_groups_and_parameters_are_judged_by_rows(loss, y, groups):
    found = watch(loss, y, groups=groups)
    risk = found.risk
    w = np.linspace(-0.1, 0.1, risk.dim)
    value, slope = risk.phi.value_and_slope(risk.map.matvec(w))
    found.evaluated(w, value, slope)
    few = slope.copy()
    risk.layout.table(few)[3:] = 0.0
    with pytest.raises(RefusedError, match=r"made of [23] rows"):
        found.many(few)
