"""What single losses promise beyond the laws that all of them keep (tests/conformance)."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmrm.losses import LOSSES
from bmrm.losses.base import MarginLoss
from bmrm.losses.epsilon_insensitive import EpsilonInsensitive
from bmrm.losses.hinge import Hinge
from bmrm.losses.least_squares import LeastSquares
from bmrm.losses.logistic import Logistic
from bmrm.losses.multiclass_hinge import MulticlassHinge
from bmrm.losses.quantile import Quantile
from bmrm.losses.roc_area import RocArea
from bmrm.losses.softmax import Softmax
from bmrm.problem import InputError, Targets


def prepared(loss, y, weights=None):
    targets = Targets(np.asarray(y), weights)
    return loss.prepare(targets, loss.summarise(targets))


def value(loss, y, f):
    return prepared(loss, y).value_and_slope(np.asarray(f, float))[0]


@pytest.mark.parametrize(
    ("y", "labels"),
    [
        ([0, 1, 1], (0.0, 1.0)),
        ([True, False, True], (0.0, 1.0)),
        ([-1.0, 1.0, -1.0], (-1.0, 1.0)),
        (["spam", "ham", "spam"], ("ham", "spam")),
        (np.array(["b", "a", "a"], object), ("a", "b")),
    ],
)
def test_the_last_label_in_sort_order_is_positive(y, labels):
    loss, y = Hinge(), np.asarray(y)
    summary = loss.summarise(Targets(y))
    assert summary.labels == labels
    assert summary.counts == (int(np.sum(y == labels[0])), int(np.sum(y == labels[1])))
    f = np.where(y == labels[1], 2.0, -2.0)
    assert loss.prepare(Targets(y), summary).value_and_slope(f)[0] == 0.0
    assert loss.predict(f, labels).tolist() == y.tolist()


@given(st.lists(st.tuples(st.sampled_from([-2.0, 0.0, 1.0, 7.5]), st.sampled_from([0.0, 0.5])), max_size=12))
def test_labels_of_rows_with_weight_are_counted(rows):
    labels, weights = (np.array([row[k] for row in rows], float) for k in (0, 1))
    summary = Hinge().summarise(Targets(labels, weights))
    counted = Counter(label for label, weight in rows if weight)
    assert (summary.labels, summary.counts) == (tuple(sorted(counted)), tuple(counted[one] for one in sorted(counted)))


def test_ranks_may_lack_labels_that_others_have():
    loss = Hinge()
    parts = [Targets(np.array([1.0, 1.0])), Targets(np.array([])), Targets(np.array([3.0]))]
    summary = loss.summarise(parts[0]).merge(loss.summarise(parts[1])).merge(loss.summarise(parts[2]))
    assert (summary.rows, summary.weight, summary.labels, summary.counts) == (3, 3.0, (1.0, 3.0), (2, 1))
    assert [loss.prepare(part, summary).mass for part in parts] == [2.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        (Hinge(), [2.0, 2.0], "hinge: only one class: 2, expected two classes"),
        (Hinge(), [], "hinge: no labelled rows"),
        (Hinge(), list("abcdef") + list("gh"), "8 labels: 'a', 'b', 'c', 'd', 'e', ...; expected two classes"),
        (Hinge(), [0.0, np.nan], "hinge: the label of row 1 is nan"),
        (Hinge(), [[0.0], [1.0]], "hinge: expected one label per row"),
        (Softmax(), ["x", "x"], "softmax: only one class: 'x', expected at least two"),
        (LeastSquares(), ["x", "y"], "least_squares: the targets are text"),
        (LeastSquares(), [1.0, np.inf], "least_squares: the target of row 1 is inf"),
        (LeastSquares(), [[1.0, 2.0]], r"least_squares: the targets have shape \(1, 2\)"),
    ],
)
def test_targets_outside_the_domain(loss, y, message):
    with pytest.raises(InputError, match=message):
        prepared(loss, y)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_weights_outside_the_domain(weight):
    for loss, y in ((Hinge(), [0, 1, 0]), (LeastSquares(), [1.0, 2.0, 3.0])):
        with pytest.raises(InputError, match=f"{loss.name}: the weight of row 1 is {weight:g}"):
            prepared(loss, y, np.array([1.0, weight, 1.0]))


def test_a_label_that_the_training_data_lack():
    summary = Hinge().summarise(Targets(np.array(["a", "b"])))
    with pytest.raises(InputError, match="hinge: the label 'c' is not among 'a', 'b'"):
        Hinge().prepare(Targets(np.array(["a", "c"])), summary)
    with pytest.raises(InputError, match=r"hinge: the label 1.0 is not among 'a', 'b'"):
        Hinge().prepare(Targets(np.array([1.0, 2.0])), summary)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Quantile(0.0), "Quantile: tau is 0.0, expected a number > 0 and < 1"),
        (lambda: Quantile(1.0), "tau is 1.0"),
        (lambda: EpsilonInsensitive(-0.1), "epsilon is -0.1, expected a number >= 0"),
        (lambda: MulticlassHinge(((0.0, 1.0),)), "cost"),
        (lambda: MulticlassHinge(((0.0, -1.0), (1.0, 0.0))), "cost"),
        (lambda: MulticlassHinge(((1.0, 1.0), (1.0, 0.0))), "cost"),
        (lambda: MulticlassHinge(((0.0, "x"), (1.0, 0.0))), "cost"),
        (lambda: LOSSES.make("quantile", {"taw": 0.5}), "taw.*tau"),
        (lambda: LOSSES.make("hing"), "hing.*hinge"),
    ],
)
def test_parameters_out_of_range(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_a_cost_matrix_for_other_classes():
    loss = MulticlassHinge(((0.0, 1.0), (1.0, 0.0)))
    with pytest.raises(InputError, match=r"cost.*2.*3"):
        prepared(loss, [0.0, 1.0, 2.0])


def test_cost_matrix_from_lists_is_hashable_and_used():
    loss = MulticlassHinge([[0, 5], [1, 0]])
    assert hash(loss) == hash(MulticlassHinge(((0.0, 5.0), (1.0, 0.0))))
    assert value(loss, ["a", "b"], [[0.0, 0.0], [0.0, 0.0]]) == 6.0


def test_softmax_of_two_classes_is_logistic():
    rng = np.random.default_rng(0)
    y, f = np.arange(30) % 2, rng.normal(size=(30, 2)) * 5
    assert value(Softmax(), y, f) == pytest.approx(value(Logistic(), y, f[:, 1] - f[:, 0]), rel=1e-13)


@pytest.mark.parametrize("margin", [20.0, 36.0, 40.0, 100.0, 700.0])
@pytest.mark.parametrize("rows", [2, 700])
def test_small_logistic_losses_keep_their_digits(margin, rows):
    y = np.arange(rows) % 2
    f = np.where(y == 1, margin, -margin)
    expected = rows * np.log1p(np.exp(-margin))
    assert value(Logistic(), y, f) == pytest.approx(expected, rel=1e-12, abs=1e-300)
    table = np.column_stack([-f / 2, f / 2])
    assert value(Softmax(), y, table) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("margin", [20.0, 36.0, 40.0, 700.0])
def test_small_losses_of_a_tree_keep_their_digits(margin):
    """Two leaves below one node, the score of the label ahead by the margin; no other sum of a path is near."""
    loss = LOSSES.make("ontology_logistic", {"edges": (("a", "r"), ("b", "r"), ("c", "q"))})
    f = np.zeros((1, 5))  # a, b, c, q, r
    f[0, :3] = margin / 2, -margin / 2, -1e4
    targets = Targets(np.array(["a"]))
    value, slope = loss.prepare(targets, loss.summarise(targets)).value_and_slope(f)
    share = 1.0 / (1.0 + np.exp(margin))
    assert value == pytest.approx(np.log1p(np.exp(-margin)), rel=1e-12)
    np.testing.assert_allclose(slope, [[-share, share, 0.0, 0.0, 0.0]], rtol=1e-12, atol=0.0)


def test_quantile_is_the_pinball_loss_of_scikit_learn():
    from sklearn.metrics import mean_pinball_loss

    rng = np.random.default_rng(1)
    y, f = rng.normal(size=40), rng.normal(size=40)
    assert value(Quantile(0.8), y, f) / 40 == pytest.approx(mean_pinball_loss(y, f, alpha=0.8), rel=1e-13)


@given(
    st.lists(st.tuples(st.booleans(), st.integers(-6, 6)), min_size=2, max_size=25), st.sampled_from([0.5, 1.0, 3.7])
)
def test_roc_area_counts_every_pair_once(rows, unit):
    """Ties and kinks everywhere: scores are whole multiples of a unit."""
    y, f = np.array([float(row[0]) for row in rows]), np.array([row[1] * unit for row in rows])
    if len(set(y.tolist())) < 2:
        return
    pairs = [(p, n) for p in np.flatnonzero(y == 1) for n in np.flatnonzero(y == 0)]
    expected, slope = 0.0, np.zeros(len(y))
    for p, n in pairs:
        short = 1.0 - (f[p] - f[n])
        expected += max(0.0, short)
        if short > 1e-9:
            slope[p] -= 1.0
            slope[n] += 1.0
    loss = prepared(RocArea(), y)
    found, found_slope = loss.value_and_slope(f)
    assert loss.mass == len(pairs)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-9)
    assert found_slope.sum() == 0.0
    if unit != 3.7:
        np.testing.assert_array_equal(found_slope, slope)


def test_roc_area_is_one_minus_the_area_for_scores_far_apart():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(2)
    y, order = np.arange(200) % 2, rng.permutation(200).astype(float)
    slope = prepared(RocArea(), y).value_and_slope(1000.0 * order)[1]
    wrong = -slope[y == 1].sum() / prepared(RocArea(), y).mass
    assert wrong == pytest.approx(1.0 - roc_auc_score(y, order), abs=1e-12)


def test_a_loss_from_a_notebook():
    @dataclass(frozen=True)
    class Ramped(MarginLoss):
        """max(0, h - y f), without a name, a kernel or a registration."""

        h: float = 0.5

        def value(self, f, y):
            return np.maximum(0.0, self.h - y * f)

        def slope(self, f, y):
            return np.where(y * f < self.h, -y, 0.0)

    assert value(Ramped(2.0), [0, 1], [1.0, 1.0]) == 4.0
    with pytest.raises(InputError, match="Ramped: only one class"):
        prepared(Ramped(), [1, 1])


def test_every_loss_says_what_it_is():
    for entry in LOSSES.all():
        loss = entry.cls
        assert entry.headline.endswith("."), entry.name
        assert loss.formula, entry.name
        assert loss.source, entry.name
        assert loss.metrics, entry.name
        assert loss.decomposes in ("rows", "groups", "no")
