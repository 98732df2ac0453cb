"""The losses of rows: limits and relations between them, their domains, what they refuse and predict."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmrm.app.config.config import load_settings
from bmrm.app.fit import fit
from bmrm.app.model import load_model
from bmrm.data.dataset import Dataset
from bmrm.data.labels import LabelSets
from bmrm.losses import LOSSES
from bmrm.losses.base import OneScoreLoss
from bmrm.losses.multivariate_least_squares import MultivariateLeastSquares
from bmrm.problem import IncompatibleError, InputError, Targets
from bmrm.regularizers.l2 import L2
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from tests.conformance.loss_cases import case_of
from tests.targets import default_instance, targets_for

ONE_SCORE = [entry for entry in LOSSES.all() if issubclass(entry.cls, OneScoreLoss)]
OVERFLOW = {"exponential", "poisson", "gamma", "tweedie"}
TREE = (("a", "root"), ("b", "root"), ("c", "a"), ("d", "a"), ("e", "b"))


def prepared(name, y, weights=None, **options):
    loss = LOSSES.make(name, options)
    targets = Targets(np.asarray(y) if not isinstance(y, LabelSets) else y, weights)
    return loss.prepare(targets, loss.summarise(targets))


def value(name, y, f, **options):
    return prepared(name, y, **options).value_and_slope(np.asarray(f, float))[0]


# -- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", ONE_SCORE, ids=lambda entry: entry.name)
def test_scores_of_a_thousand_cost_a_finite_number_or_infinity(entry):
    loss = default_instance(entry)
    case = case_of(loss)
    for score in (1000.0, -1000.0):
        total, slope = case.prepare().value_and_slope(np.full(case.rows, score))
        assert not np.isnan(total)
        assert np.isfinite(slope).all()
        assert np.isfinite(total) or loss.name in OVERFLOW
    assert loss.name not in {"exponential", "poisson", "gamma"} or not np.isfinite(
        max(case.prepare().value_and_slope(np.full(case.rows, score))[0] for score in (1000.0, -1000.0))
    )


@pytest.mark.parametrize(("name", "score"), [("exponential", -720.0), ("poisson", 720.0), ("gamma", -720.0)])
def test_an_overflow_is_plus_infinity_and_points_away_from_it(name, score):
    loss = default_instance(LOSSES.get(name))
    y = np.array([1.0, -1.0]) if name == "exponential" else np.array([1.0, 3.0])
    one = loss.prepare(Targets(y), loss.summarise(Targets(y)))
    total, slope = one.value_and_slope(np.array([score, 0.0]))
    assert total == np.inf
    assert np.sign(slope[0]) == np.sign(score)
    step = np.array([np.sign(score), 0.0])
    values, derivatives = one.along(np.array([score, 0.0]), step)(np.array([0.0, -100.0]))
    assert values[0] == np.inf
    assert derivatives[0] > 0.0
    assert np.isfinite(values[1])


def test_a_row_of_weight_zero_hides_an_overflow():
    for name, score in (("poisson", 1000.0), ("gamma", -1000.0), ("tweedie", -3000.0), ("exponential", 1000.0)):
        y = np.array([1.0, -1.0, -1.0]) if name == "exponential" else np.array([1.0, 3.0, 2.0])
        one = prepared(name, y, np.array([2.0, 0.0, 1.0]))
        f = np.array([0.5, score, 0.1])
        total, slope = one.value_and_slope(f)
        assert np.isfinite(total)
        assert slope[1] == 0.0
        assert np.isfinite(one.along(f, np.ones(3))(np.zeros(1))[0][0])


scores = st.lists(st.floats(-50, 50), min_size=6, max_size=6).map(np.array)
labels = np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0])
numbers = np.array([0.0, 1.0, -2.0, 0.5, 3.0, -1.0])


@given(scores)
def test_losses_that_are_others_in_disguise(f):
    def same(one, other):
        assert one == pytest.approx(other, rel=1e-12, abs=1e-12)

    same(value("cost_sensitive_hinge", labels, f), value("hinge", labels, f))
    same(value("expectile", numbers, f, tau=0.5), value("least_squares", numbers, f))
    same(value("least_absolute_deviation", numbers, f), 2.0 * value("quantile", numbers, f, tau=0.5))
    same(value("squared_epsilon_insensitive", numbers, f, epsilon=0.0), value("least_squares", numbers, f))
    same(value("huber", numbers, f, delta=1000.0), value("least_squares", numbers, f))
    table = f.reshape(2, 3)
    same(
        value("scaled_multiclass_hinge", [0.0, 2.0], f.reshape(3, 2)[:2]),
        value("multiclass_hinge", [0.0, 2.0], f.reshape(3, 2)[:2]),
    )
    same(value("multivariate_least_squares", numbers.reshape(2, 3), table), value("least_squares", numbers, f))
    pairs = np.column_stack((f, -f))
    same(value("weston_watkins", labels, pairs), value("multiclass_hinge", labels, pairs))
    assert 0.0 <= value("huber_hinge", labels, f, h=0.2) - value("hinge", labels, f) + 1e-12 <= 6 * 0.2 / 4.0 + 1e-9


def test_poisson_and_gamma_are_the_ends_of_tweedie():
    y, f = np.array([1.0, 2.0, 0.5]), np.array([0.3, -0.2, 0.9])
    # up to what depends on y alone, the slopes agree in the limit
    for power, name in ((1.0 + 1e-9, "poisson"), (2.0 - 1e-9, "gamma")):
        near = prepared("tweedie", y, power=power).value_and_slope(f)[1]
        np.testing.assert_allclose(near, prepared(name, y).value_and_slope(f)[1], rtol=1e-6)


@pytest.mark.parametrize("name", ["poisson", "gamma", "tweedie"])
def test_the_infimum_is_reached_where_the_mean_is_the_target(name):
    y = np.array([0.5, 1.0, 7.0])
    one = prepared(name, y, np.array([1.0, 2.0, 0.5]))
    assert one.value_and_slope(np.log(y))[0] == pytest.approx(one.infimum, rel=1e-12)


def test_the_half_unit_deviance_is_the_loss_above_its_floor():
    from sklearn.metrics import mean_gamma_deviance, mean_poisson_deviance, mean_tweedie_deviance

    y, f = np.array([0.5, 1.0, 7.0]), np.array([0.3, -0.2, 0.9])
    judges = {
        "poisson": mean_poisson_deviance,
        "gamma": mean_gamma_deviance,
        "tweedie": lambda y, mean: mean_tweedie_deviance(y, mean, power=1.5),
    }
    for name, judge in judges.items():
        one = prepared(name, y)
        half = (one.value_and_slope(f)[0] - one.infimum) / 3.0
        assert half == pytest.approx(0.5 * judge(y, np.exp(f)), rel=1e-10)


# -- domains -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "bad", "wanted"), [("poisson", -1.0, ">= 0"), ("tweedie", -0.5, ">= 0"), ("gamma", 0.0, "> 0")]
)
def test_counts_outside_the_domain_are_named(name, bad, wanted):
    with pytest.raises(InputError, match=f"{name}: the target of row 1 is {bad:g}, expected a number {wanted}"):
        prepared(name, [1.0, bad])
    assert np.isfinite(prepared(name, [1.0, bad], np.array([1.0, 0.0])).value_and_slope(np.zeros(2))[0])


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("tweedie", {"power": 1.0}, "power is 1.0, expected a number > 1 and < 2"),
        ("huber", {"delta": 0.0}, "delta is 0.0"),
        ("huber_hinge", {"h": -1.0}, "h is -1.0"),
        ("cost_sensitive_hinge", {"cost_positive": 0.0}, "cost_positive is 0.0"),
        ("novelty", {"rho": 0.0}, "rho is 0.0"),
        ("multivariate_least_squares", {"M": ((1.0, 2.0), (2.0, 1.0))}, "eigenvalue -1"),
        ("multivariate_least_squares", {"M": ((1.0, 2.0), (0.0, 1.0))}, "symmetric"),
        ("multivariate_least_squares", {"M": ((1.0, 2.0),)}, r"shape \(1, 2\)"),
        ("scaled_multiclass_hinge", {"cost": ((0.0, -1.0), (1.0, 0.0))}, "scaled_multiclass_hinge: cost must be"),
        ("ontology_hinge", {"edges": ()}, "no edges"),
        ("ontology_hinge", {"edges": (("a", "b"), ("b", "a"))}, "'a' is its own ancestor"),
        ("ontology_hinge", {"edges": (("a", "b"), ("a", "c"))}, "'a' has two parents, 'b' and 'c'"),
        ("ontology_hinge", {"edges": (("a", "b", "c"),)}, "edge 'a b c', expected a child and its parent"),
        ("ontology_hinge", {"edges": TREE, "candidates": "leafs"}, "candidates is 'leafs'"),
        ("ontology_logistic", {}, "edges"),
    ],
)
def test_parameters_outside_their_range(name, options, message):
    with pytest.raises(InputError, match=message):
        LOSSES.make(name, options)


def test_targets_that_do_not_fit_the_parameters():
    M = ((1.0, 0.0), (0.0, 1.0))
    with pytest.raises(InputError, match="M is for 2 targets, the data have 3 per row"):
        prepared("multivariate_least_squares", np.ones((4, 3)), M=M)
    with pytest.raises(InputError, match="cost is for 2 classes, the data have 3"):
        prepared("scaled_multiclass_hinge", [0.0, 1.0, 2.0], cost=((0.0, 1.0), (1.0, 0.0)))
    with pytest.raises(InputError, match="the label 'a' is no leaf of the tree; take candidates: nodes"):
        prepared("ontology_hinge", ["c", "a"], edges=TREE)
    with pytest.raises(InputError, match="the label 'z' is not among"):
        prepared("ontology_hinge", ["c", "z"], edges=TREE)
    assert prepared("ontology_hinge", ["c", "a"], edges=TREE, candidates="nodes").rows == 2


# -- several scores ------------------------------------------------------------------------------


def test_distances_in_a_tree_and_in_several():
    tree = LOSSES.make("ontology_hinge", {"edges": TREE}).tree
    place = {name: k for k, name in enumerate(tree.nodes)}
    apart = tree.distances()
    assert apart[place["c"], place["d"]] == 2
    assert apart[place["c"], place["e"]] == 4
    assert apart[place["root"], place["e"]] == 2
    two = LOSSES.make("ontology_hinge", {"edges": (("a", "x"), ("b", "y"))}).tree
    # through the root that has no name
    assert two.distances()[0, 1] == 4


def test_names_of_nodes_are_numbers_where_all_are():
    loss = LOSSES.make("ontology_logistic", {"edges": (("1", "0"), ("2", 0), (3, "0"))})
    assert loss.tree.nodes == (0.0, 1.0, 2.0, 3.0)
    assert LOSSES.make("ontology_logistic", {"edges": ((1, "x"), (2, "x"))}).tree.nodes == ("1", "2", "x")


def test_a_deep_tree_costs_no_recursion():
    edges = tuple((float(k), float(k - 1)) for k in range(1, 3001))
    loss = LOSSES.make("ontology_hinge", {"edges": edges, "candidates": "nodes"})
    y = np.array([3000.0, 0.0])
    total = loss.prepare(Targets(y), loss.summarise(Targets(y))).value_and_slope(np.zeros((2, 3001)))[0]
    assert total == 6000.0


def test_multilabel_rows_with_no_label_or_all_cost_nothing():
    y = LabelSets.from_rows([[], [0, 1, 2], [1]])
    for averaged in (False, True):
        total, slope = prepared("multilabel_hinge", y, averaged=averaged).value_and_slope(np.eye(3))
        assert total == (1.0 - 0.0 + 1.0 if not averaged else 1.5)
        assert not slope[:2].any()


# -- intercepts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["novelty", "perceptron", "squared_perceptron"])
def test_a_free_intercept_that_leaves_nothing_to_learn_is_refused(name):
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2
    with pytest.raises(IncompatibleError, match=f"{name}: a free intercept has no meaning"):
        fit(X, y, loss=name, regularizer=L2(0.1), bias="free")


def test_a_risk_that_an_intercept_alone_satisfies_is_refused():
    data = Dataset.from_arrays(np.eye(3), [1.0, 2.0, 3.0])
    with pytest.raises(IncompatibleError, match="an intercept alone"):
        FreeIntercept(LinearRisk(data, LOSSES.make("novelty")))
    nothing = Dataset.from_arrays(np.eye(3), [0.0, 0.0, 0.0])
    with pytest.raises(IncompatibleError, match="an intercept alone"):
        FreeIntercept(LinearRisk(nothing, LOSSES.make("poisson")))


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize(
    "name", [entry.name for entry in LOSSES.all() if entry.cls.decomposes == "rows" and not entry.cls.no_free_intercept]
)
def test_every_loss_of_rows_trains_with_every_intercept(name, bias, tmp_path):
    loss = default_instance(LOSSES.get(name))
    y = targets_for(loss, rows=60)
    X = np.random.default_rng(1).normal(size=(60, 3))
    model = fit(X, y, loss=loss, regularizer=L2(0.1), bias=bias, tolerance=1e-6)
    assert model.solution.converged
    model.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert again.loss == loss
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    measures = again.evaluate(X, y)
    assert set(measures) == set(loss.metrics)
    assert all(number is not None for number in measures.values())


# -- predictions and files -----------------------------------------------------------------------


def test_predictions():
    f = np.array([[0.1, 0.5, -1.0], [2.0, 0.0, 3.0]])
    assert LOSSES.make("novelty").predict(np.array([0.5, 1.0]), ()).tolist() == [-1.0, 1.0]
    assert LOSSES.make("poisson").predict(np.array([0.0]), ()).tolist() == [1.0]
    assert LOSSES.make("multilabel_hinge").predict(f, (10.0, 20.0, 30.0)).tolist() == [[1, 1, 0], [1, 0, 1]]
    tree = LOSSES.make("ontology_hinge", {"edges": TREE})
    # nodes a b c d e root: the sum along root-a-d is the largest though e has the best score of its own
    path = np.array([[2.0, -5.0, 0.0, 1.0, 3.0, 0.0]])
    assert tree.predict(path, tree.tree.nodes).tolist() == ["d"]


def test_novelty_does_not_look_at_targets():
    X = np.abs(np.random.default_rng(0).normal(size=(20, 3)))
    text = fit(X, np.array(["a", "b"] * 10), loss="novelty", regularizer=L2(0.1))
    numbers = fit(X, np.zeros(20), loss="novelty", regularizer=L2(0.1))
    np.testing.assert_array_equal(text.weights, numbers.weights)


def test_a_tree_and_a_cost_matrix_from_files(tmp_path):
    (tmp_path / "tree.txt").write_text("01 root\n02 root\n01/01 01\n")
    (tmp_path / "cost.txt").write_text("0, 1\n2, 0\n")
    (tmp_path / "three.txt").write_text("01 root more\n")
    config = tmp_path / "job.yaml"
    start = "schema: 2\ndata: {train: a.svm, bias: none}\nregularizer: {name: l2, lambda: 0.5}\n"
    config.write_text(start + f"loss: {{name: ontology_hinge, edges: {tmp_path / 'tree.txt'}}}\n")
    plain = json.loads(json.dumps(load_settings(config).plain()))
    assert plain["loss"]["edges"] == [["01", "root"], ["02", "root"], ["01/01", "01"]]
    config.write_text(start + f"loss: {{name: scaled_multiclass_hinge, cost: {tmp_path / 'cost.txt'}}}\n")
    assert load_settings(config).loss["cost"] == ((0.0, 1.0), (2.0, 0.0))
    for text, message in (
        (f"{{name: ontology_hinge, edges: {tmp_path}/no.txt}}", "line 4: loss.edges .* a file of them .No such file"),
        ("ontology_hinge", "line 4: loss.edges is missing"),
        (f"{{name: ontology_hinge, edges: {tmp_path}/three.txt}}", "edge '01 root more', expected a child"),
    ):
        config.write_text(start + f"loss: {text}\n")
        with pytest.raises(InputError, match=message):
            load_settings(config)


@pytest.mark.parametrize("weights", [None, np.full(20, 1e6)], ids=["plain", "weighted"])
def test_squares_beyond_float64_are_infinite_without_a_warning(weights):
    random = np.random.default_rng(0)
    M = ((2.0, -1.0, 0.0), (-1.0, 2.0, 0.5), (0.0, 0.5, 1.0))
    for loss in (MultivariateLeastSquares(), MultivariateLeastSquares(M)):
        targets = Targets(random.normal(size=(20, 3)), weights)
        prepared = loss.prepare(targets, loss.summarise(targets))
        for size in (1e152, 1e160, 1e300):
            value, slope = prepared.value_and_slope(size * random.uniform(-1.0, 1.0, (20, 3)))
            assert value == np.inf or size == 1e152
            assert np.isfinite(slope).all()
