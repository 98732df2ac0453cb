"""Losses with rescaled margins and slacks: solvers that take them against a quadratic program over all outputs."""

import itertools

import cvxopt
import numpy as np
import pytest

import bmrm
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import IncompatibleError, InputError, MoreauEnvelope, Status, Targets, ability
from bmrm.problem.abilities import DualBlocks
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS
from tests.conformance import twins_rows
from tests.targets import CLASSES, RESCALED, groups_for, losses, targets_for

LAM, ROWS, FEATURES = 0.05, 24, 3
LOSSES_OF = [loss for loss in losses() if loss.name in RESCALED and getattr(loss, "transitions", "") != "observed"]
DUAL = ("dual_coordinate", "semismooth_newton")
SOLVING = [
    entry.name
    for entry in SOLVERS.all()
    if "kinked loss" not in entry.facts.get("refuses", ()) and entry.name not in DUAL
]


def data(loss):
    rng = np.random.default_rng(1)
    y = targets_for(loss, rows=ROWS)
    return rng.normal(size=(ROWS, FEATURES)) + (y == y[0])[:, None], y, groups_for(loss, rows=ROWS)


def outputs(loss, X, y, groups):
    """For each row or sentence: Delta of every wrong output, and w's factors in its score less the true one's."""
    return {"multiclass": _of_classes, "ontology": _of_nodes, "sequence": _of_labelings}[loss.task](loss, X, y, groups)


def _of_classes(loss, X, y, groups):
    unit = np.eye(CLASSES)
    for x, own in zip(X, y.astype(int), strict=True):
        others = [k for k in range(CLASSES) if k != own]
        yield [(twins_rows.cost(loss, own, k), np.outer(x, unit[k] - unit[own]).ravel()) for k in others]


def _of_nodes(loss, X, y, groups):
    names, candidates = twins_rows.classes(loss)
    on_path = {name: np.isin(names, twins_rows.path(loss, name)).astype(float) for name in candidates}
    for x, own in zip(X, y, strict=True):
        others = [name for name in candidates if name != own]
        yield [
            (twins_rows.node_cost(loss, own, name), np.outer(x, on_path[name] - on_path[own]).ravel())
            for name in others
        ]


def _of_labelings(loss, X, y, groups):
    def features(rows, labeling):
        pairs = np.zeros((CLASSES, CLASSES))
        np.add.at(pairs, (labeling[:-1], labeling[1:]), 1.0)
        return np.concatenate(((X[rows].T @ np.eye(CLASSES)[labeling]).ravel(), pairs.ravel()))

    for name in dict.fromkeys(groups.tolist()):
        rows = np.flatnonzero(groups == name)
        truth = y[rows].astype(int)
        every = [np.array(one) for one in itertools.product(range(CLASSES), repeat=len(rows))]
        wrong = [one for one in every if np.any(one != truth)]
        yield [(float(np.sum(one != truth)), features(rows, one) - features(rows, truth)) for one in wrong]


def violations(loss, terms):
    """For each term offsets and rows, whose sum with w is Delta^beta (margin + excess)."""
    for term in terms:
        cost, rows = np.array([delta for delta, _ in term]), np.array([row for _, row in term])
        rates = cost**loss.beta
        yield rates * (1.0 if loss.margin == "one" else cost), rates[:, None] * rows


def optimum(pieces, free=0):
    """The minimum of LAM/2 |w|^2 + mean of the largest violations, as a quadratic program; the last `free` w cost 0."""
    rows, count = np.vstack([rows for _, rows in pieces]), len(pieces)
    if free:  # in a basis, because there are directions of the constants that change nothing
        _, sizes, basis = np.linalg.svd(rows[:, -free:])
        kept = rows[:, -free:] @ basis[: np.count_nonzero(sizes > 1e-9)].T
        rows, free = np.hstack((rows[:, :-free], kept)), kept.shape[1]
    dim = rows.shape[1]
    slack = [np.tile(-np.eye(count)[i], (len(offsets), 1)) for i, (offsets, _) in enumerate(pieces)]
    G = np.block([[rows, np.vstack(slack)], [np.zeros((count, dim)), -np.eye(count)]])
    h = np.concatenate([*(-offsets for offsets, _ in pieces), np.zeros(count)])
    P = np.diag([LAM] * (dim - free) + [0.0] * (free + count))
    q = np.concatenate([np.zeros(dim), np.full(count, 1.0 / count)])
    options = {"show_progress": False, "abstol": 1e-11, "reltol": 1e-11, "feastol": 1e-11}
    found = cvxopt.solvers.qp(*(cvxopt.matrix(each) for each in (P, q, G, h)), options=options)
    return found["primal objective"]


def objective(pieces, w):
    """J of some weights, from the formula."""
    return 0.5 * LAM * w @ w + np.mean([max(0.0, (offsets + rows @ w).max()) for offsets, rows in pieces])


@pytest.mark.parametrize("loss", LOSSES_OF, ids=str)
def test_every_solver_that_takes_them_is_certified_truly(loss):
    X, y, groups = data(loss)
    pieces = list(violations(loss, outputs(loss, X, y, groups)))
    truth = optimum(pieces)
    for name in SOLVING:
        tolerance = SOLVERS.get(name).facts.get("accuracy", 1e-6)
        whole = {"sample": None} if name == "pegasos" and loss.task == "sequence" else {}  # samples are of rows
        solver = SOLVERS.make(name, {"tolerance": tolerance, "max_iterations": 20000, **whole})
        solution = solver.minimize(LinearRisk(Dataset.from_arrays(X, y, groups=groups), loss), L2(LAM))
        assert solution.objective == pytest.approx(objective(pieces, solution.w), rel=1e-12), name
        assert all(line.lower_bound <= truth * (1.0 + 1e-8) for line in solution.history), name
        assert solution.objective >= truth * (1.0 - 1e-8), name
        if "kinked loss" not in SOLVERS.get(name).facts.get("stalls", ()):
            assert solution.status in (Status.CONVERGED, Status.OWN_RULE), name
            assert solution.objective <= truth * (1.0 + 2.0 * tolerance), name


@pytest.mark.parametrize("loss", LOSSES_OF, ids=str)
def test_solvers_of_the_dual_say_that_they_do_not_take_them(loss):
    X, y, groups = data(loss)
    risk = LinearRisk(Dataset.from_arrays(X, y, groups=groups), loss)
    assert ability(risk, DualBlocks) is None
    assert ability(risk, MoreauEnvelope) is None
    for name in DUAL:
        with pytest.raises(IncompatibleError, match=name):
            SOLVERS.make(name).minimize(risk, L2(LAM))


@pytest.mark.parametrize("loss", [loss for loss in LOSSES_OF if loss.beta not in (0.0, 1.0)], ids=str)
def test_free_intercepts_and_saved_models(loss, tmp_path):
    X, y, groups = data(loss)
    scores = len(loss.tree.nodes) if loss.task == "ontology" else CLASSES
    pieces = list(violations(loss, outputs(loss, np.column_stack((X, np.ones(ROWS))), y, groups)))
    order = np.arange(pieces[0][1].shape[1])
    own = (order >= FEATURES * scores) & (order < (FEATURES + 1) * scores)  # of the constant; parameters come later
    moved = [(offsets, np.hstack((rows[:, ~own], rows[:, own]))) for offsets, rows in pieces]
    model = bmrm.fit(X, y, groups=groups, loss=loss, regularizer=L2(LAM), bias="free", tolerance=1e-6)
    truth = optimum(moved, free=scores)
    assert model.solution.status is Status.CONVERGED
    assert model.solution.lower_bound <= truth * (1.0 + 1e-8)
    assert truth * (1.0 - 1e-8) <= model.solution.objective <= truth * (1.0 + 2e-6)
    model.save(tmp_path / "model.npz")
    again = bmrm.load_model(tmp_path / "model.npz")
    assert again.loss == loss
    np.testing.assert_array_equal(again.predict(X, groups=groups), model.predict(X, groups=groups))


def value_and_slope(name, options):
    loss = LOSSES.make(name, options)
    y, groups = targets_for(loss), groups_for(loss)
    prepared = loss.prepare(Targets(y, None, groups), loss.summarise(Targets(y, None, groups)))
    size = len(y) * prepared.scores_per_row
    f = np.random.default_rng(2).normal(size=size + (CLASSES**2 if groups is not None else 0))
    return prepared.value_and_slope(f if groups is not None else f.reshape(len(y), -1))


COST = RESCALED["scaled_multiclass_hinge"][0]["cost"]
TREE = {"edges": next(loss for loss in LOSSES_OF if loss.task == "ontology").edges}
STAR = {"edges": tuple((float(k), 9.0) for k in range(CLASSES))}
AS_PRINTED = {"margin": "cost", "beta": 1.0}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            ("scaled_multiclass_hinge", {"cost": COST, "margin": "cost", "beta": 0.0}),
            ("multiclass_hinge", {"cost": COST}),
        ),
        (("scaled_multiclass_hinge", {"cost": COST, "margin": "one", "beta": 0.0}), ("multiclass_hinge", {})),
        (("chain_scaled_margin", {"margin": "cost", "beta": 0.0}), ("chain_margin", {})),
    ],
)
def test_without_a_power_they_are_other_losses(one, other):
    (value, slope), (expected, of_other) = value_and_slope(*one), value_and_slope(*other)
    assert value == pytest.approx(expected, rel=1e-13)
    np.testing.assert_array_equal(slope, of_other)


@pytest.mark.parametrize("options", [AS_PRINTED, {"margin": "one", "beta": 0.5}, {"margin": "cost", "beta": 2.0}])
def test_a_flat_tree_with_costs_is_a_loss_of_classes(options):
    f = np.random.default_rng(3).normal(size=(12, CLASSES + 1))
    targets = Targets(np.arange(12.0) % CLASSES)
    tree = LOSSES.make("ontology_hinge", STAR | {"cost": COST} | options)
    flat = LOSSES.make("scaled_multiclass_hinge", {"cost": COST} | options)
    value, slope = tree.prepare(targets, tree.summarise(targets)).value_and_slope(f)
    expected, of_classes = flat.prepare(targets, flat.summarise(targets)).value_and_slope(f[:, :CLASSES].copy())
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(slope[:, :CLASSES], of_classes, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("scaled_multiclass_hinge", {"margin": "two"}, "margin is 'two', expected one of one, cost"),
        ("chain_scaled_margin", {"beta": -1.0}, "beta is -1.0, expected a number >= 0"),
        ("chain_scaled_margin", {"beta": np.inf}, "beta is inf, expected a number >= 0"),
        ("ontology_hinge", TREE | {"beta": 1e4}, "ontology_hinge: beta is 10000, too large a power of costs up to 10"),
        ("scaled_multiclass_hinge", {"cost": COST, "beta": 1e4}, "beta is 10000, too large a power of costs up to 3"),
        ("ontology_hinge", TREE | {"cost": COST, "candidates": "nodes"}, r"cost has shape \(3, 3\), expected \(8, 8\)"),
        ("ontology_hinge", TREE | {"cost": ((0.0, 1.0, 2.0),)}, r"cost has shape \(1, 3\), expected \(3, 3\)"),
        ("ontology_hinge", TREE | {"cost": "none"}, "ontology_hinge: cost is no matrix of numbers"),
        ("ontology_hinge", TREE | {"cost": np.ones((3, 3))}, "ontology_hinge: cost must be finite"),
        ("multiclass_hinge", {"beta": 1.0}, "loss 'multiclass_hinge' has no option 'beta'"),
    ],
)
def test_options_that_mean_nothing_are_refused(name, options, message):
    with pytest.raises(InputError, match=message):
        LOSSES.make(name, options)


def test_a_power_that_is_too_large_for_a_sentence_is_refused():
    loss = LOSSES.make("chain_scaled_margin", {"beta": 300.0})
    targets = Targets(np.arange(30.0) % 2, None, np.zeros(30, np.int64))
    with pytest.raises(InputError, match="chain_scaled_margin: beta is 300, too large a power of costs up to 30"):
        loss.prepare(targets, loss.summarise(targets))


def test_a_config_takes_a_cost_file_for_a_tree(tmp_path):
    from bmrm.app.config.config import load_settings

    (tmp_path / "cost.txt").write_text("\n".join(" ".join(map(str, row)) for row in COST))
    edges = "[[a, r], [b, r], [c, r]]"
    loss = f"{{name: ontology_hinge, edges: {edges}, cost: {tmp_path / 'cost.txt'}, margin: one, beta: 1}}"
    config = tmp_path / "job.yaml"
    config.write_text(f"data: {{train: a.svm}}\nregularizer: {{lambda: 1}}\nloss: {loss}\n")
    settings = load_settings(config)
    made = LOSSES.make("ontology_hinge", {key: value for key, value in settings.loss.items() if key != "name"})
    assert (made.cost, made.margin, made.beta) == (COST, "one", 1.0)
