"""group_l2, sparse_group and row_group_l2: minima of a cone program written apart, names, files, and bad groups."""

import cvxopt
import numpy as np
import pytest

import bmrm
from bmrm.problem import Status
from bmrm.regularizers.group_l2 import GroupL2
from bmrm.regularizers.row_group_l2 import RowGroupL2
from bmrm.regularizers.sparse_group import SparseGroup

GROUPS = ((0, 1, 2), (3, 4), (8, 5, 6))
LAM = 0.15


def data(seed=5, rows=120):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 10)) + random.normal(size=(rows, 1))
    return X, X[:, :3] @ [1.0, -1.0, 0.5] + X[:, 9] + 0.5 * random.normal(size=rows)


def minimum(X, y, loss, groups, l1, free):
    """min of the mean |z| or z^2/2, z = Xw + b - y, + l1 ||w||_1 + sum of t_g, ||w_g|| <= t_g; a cone program.

    `groups` are pairs of features and strength.
    """
    (m, d), count = X.shape, len(groups)
    design = np.column_stack([X, np.ones(m)])
    # w, b, t, u >= |w|, r >= |residual|
    n = d + 1 + count + d + m
    t, u, r = d + 1, d + 1 + count, d + 1 + count + d
    P, q = np.zeros((n, n)), np.zeros(n)
    q[t:u], q[u:r] = [strength for _, strength in groups], l1
    if loss == "least_squares":
        P[: d + 1, : d + 1], q[: d + 1] = design.T @ design / m, -design.T @ y / m
        q[r:] = 1.0
    else:
        q[r:] = 1.0 / m
    rows, right = [], []
    for sign in (1.0, -1.0):
        part = np.zeros((d, n))
        part[:, :d], part[:, u:r] = sign * np.eye(d), -np.eye(d)
        rows, right = [*rows, part], [*right, np.zeros(d)]
        part = np.zeros((m, n))
        part[:, r:] = -np.eye(m)
        if loss != "least_squares":
            part[:, : d + 1] = sign * design
        rows, right = [*rows, part], [*right, sign * y if loss != "least_squares" else np.zeros(m)]
    linear = sum(map(len, rows))
    for k, (group, _) in enumerate(groups):
        part = np.zeros((1 + len(group), n))
        part[0, t + k] = -1.0
        part[1 + np.arange(len(group)), group] = -1.0
        rows, right = [*rows, part], [*right, np.zeros(1 + len(group))]
    equal = np.eye(1, n, d) if not free else np.zeros((0, n))
    dims = {"l": linear, "q": [1 + len(group) for group, _ in groups], "s": []}
    options = {"show_progress": False, "abstol": 1e-11, "reltol": 1e-11, "feastol": 1e-11}
    program = map(cvxopt.matrix, (P, q, np.vstack(rows), np.concatenate(right)))
    equality = map(cvxopt.matrix, (equal, np.zeros(len(equal))))
    found = cvxopt.solvers.coneqp(*program, dims, *equality, options=options)
    constant = float(y @ y) / (2 * m) if loss == "least_squares" else 0.0
    return found["primal objective"] + constant


CASES = {
    "group_l2": (GroupL2(LAM, groups=GROUPS), 0.0, [(g, LAM * len(g) ** 0.5) for g in (*GROUPS, (7,), (9,))]),
    "weights": (
        GroupL2(LAM, groups=GROUPS, weights=(1.0, 3.0, 0.0)),
        0.0,
        [(GROUPS[0], LAM), (GROUPS[1], 3.0 * LAM), ((7,), LAM), ((9,), LAM)],
    ),
    "sparse_group": (
        SparseGroup(LAM, groups=GROUPS, l1_ratio=0.4),
        0.4 * LAM,
        [(g, 0.6 * LAM * len(g) ** 0.5) for g in (*GROUPS, (7,), (9,))],
    ),
    "features": (GroupL2(LAM), 0.0, [((j,), LAM) for j in range(10)]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("loss", ["least_squares", "least_absolute_deviation"])
def test_it_is_the_minimum_of_the_cone_program(case, bias, loss):
    X, y = data()
    regularizer, l1, strengths = CASES[case]
    truth = minimum(X, y, loss, strengths, l1, bias == "free")
    for solver in ("auto", "bundle") if case != "weights" else ("bundle",):
        model = bmrm.fit(X, y, loss=loss, regularizer=regularizer, solver=solver, bias=bias, tolerance=1e-7)
        assert model.solution.status.name == "CONVERGED", model.solution.message
        assert model.solution.lower_bound <= truth * (1 + 1e-9)
        assert model.solution.objective == pytest.approx(truth, rel=2e-7)
        assert model.weights[9] != 0.0


def test_groups_leave_together_and_sparse_groups_leave_features_besides():
    X, y = data()
    fit = {"loss": "least_squares", "tolerance": 1e-9}
    weights = bmrm.fit(X, y, regularizer=GroupL2(LAM, groups=GROUPS), **fit).weights
    assert [bool(weights[list(group)].any()) for group in GROUPS] == [True, False, False]
    assert weights[:3].all()
    assert weights[[7, 9]].tolist() == [0.0, weights[9]]
    X = X + 0.0
    X[:, 2] = np.random.default_rng(0).normal(size=len(X))
    weights = bmrm.fit(X, y, regularizer=SparseGroup(LAM, groups=GROUPS, l1_ratio=0.8), **fit).weights
    assert (weights != 0.0)[:3].tolist() == [True, True, False]


@pytest.mark.parametrize("solver", ["proximal_gradient", "bundle"])
def test_a_feature_is_in_for_all_classes_or_for_none(solver):
    X, score = data()
    y = np.digitize(score, [-1.0, 0.0, 1.0])
    loss = "softmax" if solver == "proximal_gradient" else "multiclass_hinge"
    model = bmrm.fit(X, y, loss=loss, regularizer=RowGroupL2(0.05), solver=solver, tolerance=1e-5)
    assert model.solution.status.name == "CONVERGED"
    used = model.weights.reshape(10, 4) != 0.0
    assert np.array_equal(used.any(axis=1), used.all(axis=1))
    assert not used.all()
    same = bmrm.fit(X, y, loss=loss, regularizer=GroupL2(0.05), solver=solver, tolerance=1e-5)
    assert np.array_equal(same.weights, model.weights)


def test_with_one_score_rows_are_the_lasso():
    X, y = data()
    rows, lasso = (
        bmrm.fit(X, y, loss="least_squares", regularizer=omega, tolerance=1e-9)
        for omega in (RowGroupL2(LAM), bmrm.L1(LAM))
    )
    assert rows.solution.objective == pytest.approx(lasso.solution.objective, rel=2e-9)
    assert np.array_equal(rows.weights != 0.0, lasso.weights != 0.0)


def frame():
    pandas = pytest.importorskip("pandas")
    X, y = data()
    names = ["age", "income", "town=Oslo", "town=Bergen", "town=Bodo", "a", "b", "c", "d", "e"]
    return pandas.DataFrame(X, columns=names), y


def test_groups_by_name_prefix_and_file(tmp_path):
    X, y = frame()
    fit = {"loss": "least_squares", "tolerance": 1e-8}
    numbers = bmrm.fit(X, y, regularizer=GroupL2(LAM, groups=((0, 1), (2, 3, 4), (5, 6))), **fit)
    named = GroupL2(LAM, groups=(("age", "income"), "town=*", ("a", 6)))
    assert np.array_equal(bmrm.fit(X, y, regularizer=named, **fit).weights, numbers.weights)
    path = tmp_path / "groups.txt"
    path.write_text("age, income\n\ntown=*\na 6\n")
    of_file = GroupL2(LAM, groups=str(path))
    model = bmrm.fit(X, y, regularizer=of_file, **fit)
    assert np.array_equal(model.weights, numbers.weights)
    model.save(tmp_path / "model.npz")
    path.unlink()  # the model knows the groups
    again = bmrm.load_model(tmp_path / "model.npz")
    assert again.header["regularizer"]["groups"] == [["age", "income"], ["town=*"], ["a", "6"]]
    assert np.array_equal(again.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"groups": ((0, 1), (1, 2))}, "feature 1 is in groups 0 and 1, expected groups that do not overlap"),
        ({"groups": ((0, 0),)}, "feature 0 is in group 0 twice"),
        ({"groups": ((0, 12),)}, "group 0: feature 12, expected 0 to 9"),
        ({"groups": (("age",),)}, "feature 'age', but the features have no names; expected their numbers"),
        ({"groups": ((),)}, "group 0 is .*, expected a list of features"),
        ({"groups": ((-1,),)}, "group 0 has the feature -1, expected a number from 0, or a name"),
        ({"groups": "no/such/file"}, "'no/such/file' cannot be read: No such file or directory"),
        ({"groups": ((0,),), "weights": (1.0, 2.0)}, "2 weights for 1 groups, expected one each"),
        ({"groups": ((0,),), "weights": (-1.0,)}, "weights has -1, expected numbers >= 0"),
        ({"weights": (1.0,)}, "1 weights for 0 groups"),
    ],
)
def test_bad_groups_get_one_message(options, said):
    X, y = data()
    with pytest.raises(bmrm.InputError, match=said):
        bmrm.fit(X, y, loss="least_squares", regularizer={"name": "group_l2", "lambda": 0.1, **options})


def test_names_that_are_not_there_are_told_with_the_nearest():
    X, y = frame()
    for name, said in (("agee", "there is no feature 'agee'.*age"), ("city=*", "no feature begins with 'city='")):
        with pytest.raises(bmrm.InputError, match=said):
            bmrm.fit(X, y, loss="least_squares", regularizer=GroupL2(0.1, groups=((name,),)))
    with pytest.raises(bmrm.InputError, match="feature 'town=Oslo' is in groups 0 and 1"):
        bmrm.fit(X, y, loss="least_squares", regularizer=GroupL2(0.1, groups=(("town=*",), ("town=Oslo",))))


@pytest.mark.parametrize("solver", ["newton", "irls", "nonlinear_cg", "pegasos", "dual_coordinate", "proximal_newton"])
def test_solvers_that_cannot_name_one_that_can(solver):
    X, y = data()
    with pytest.raises(bmrm.IncompatibleError, match=r"GroupL2.*use .*proximal_gradient"):
        bmrm.fit(X, y > 0.0, loss="logistic", regularizer=GroupL2(0.1), solver=solver, bias="none")


def test_many_weights_cost_a_cone_program_no_matrix_of_their_square():
    X = np.random.default_rng(0).normal(size=(6, 12_000))
    y = X[:, 0] > 0.0
    model = bmrm.fit(X, y, loss="hinge", regularizer=GroupL2(0.3), solver="bundle", bias="none")
    assert model.solution.status is Status.CONVERGED
    signs = np.where(y, 1.0, -1.0)
    value = np.maximum(0.0, 1.0 - signs * (X @ model.weights)).mean() + 0.3 * np.abs(model.weights).sum()
    assert model.solution.lower_bound <= value + 1e-12
    assert value - model.solution.lower_bound <= 1e-3 * value


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("loss", ["hinge", "least_absolute_deviation", "least_squares"])
def test_features_without_a_penalty_do_not_hold_a_bundle_up(loss, seed):
    """They stay near a centre, until only the slope that this balances is not proved; zeros do not raise the model."""
    X, y = data(seed)
    y = np.sign(y) if loss == "hinge" else y
    free = GroupL2(0.05, groups=GROUPS, weights=(1.0, 3.0, 0.0))
    given = {"loss": loss, "regularizer": free, "tolerance": 1e-5}
    model = bmrm.fit(X, y, solver="bundle", **given)
    assert model.solution.status is Status.CONVERGED
    assert model.solution.iterations <= (200 if loss == "least_squares" else 120)
    assert model.solution.objective == pytest.approx(bmrm.fit(X, y, **given).solution.objective, rel=2e-5)
