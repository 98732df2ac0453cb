"""A structure of one's own, trees of labels, in one file: the minima of its losses against all labelings, one by one.

The first part is what an author writes: labels on the nodes of a tree, a number for each pair of labels along an edge.
"""

import itertools
import json
import sys
from dataclasses import dataclass, replace

import cvxopt
import numpy as np
import pytest
from scipy.optimize import minimize

import bmrm
from bmrm import extend
from bmrm.data.dataset import Dataset
from bmrm.problem import InputError, Status
from bmrm.solvers import SOLVERS
from tests.mpi.launch import printed

# ---------------------------------------------------------------- the plug-in


class Trees(extend.Structure):
    """Rows of a group are nodes of a tree, parents before children; `structure` has the parent's row, -1 for a root."""

    numbers = 1
    parameters = "pairs"

    @staticmethod
    @extend.compiled
    def terms(path, f, pairs, given, at):
        count = 0
        for t in range(path.size):
            at[count] = pairs.size + t * f.shape[1] + path[t]
            count += 1
            parent = given[t, 0]
            if parent >= 0:
                at[count] = path[parent] * pairs.shape[1] + path[t]
                count += 1
        return count

    @staticmethod
    @extend.compiled
    def best(f, pairs, given, path):
        """Max-product: from the leaves to the root, and back."""
        up, chosen = f.copy(), np.zeros(f.shape, np.int64)
        for t in range(f.shape[0] - 1, -1, -1):
            parent = given[t, 0]
            if parent >= 0:
                for i in range(f.shape[1]):
                    reach = pairs[i] + up[t]
                    chosen[t, i] = reach.argmax()
                    up[parent, i] += reach.max()
        for t in range(f.shape[0]):
            parent = given[t, 0]
            path[t] = chosen[t, path[parent]] if parent >= 0 else up[t].argmax()

    @staticmethod
    @extend.compiled
    def marginals(f, pairs, given, shares, of_pairs):
        """Sum-product, likewise."""
        up, into, total = f.copy(), np.zeros(f.shape), 0.0
        for t in range(f.shape[0] - 1, -1, -1):
            parent = given[t, 0]
            if parent >= 0:
                for i in range(f.shape[1]):
                    reach = pairs[i] + up[t]
                    into[t, i] = reach.max() + np.log(np.exp(reach - reach.max()).sum())
                    up[parent, i] += into[t, i]
            else:
                total += up[t].max() + np.log(np.exp(up[t] - up[t].max()).sum())
        of_pairs[:] = 0.0
        for t in range(f.shape[0]):
            parent = given[t, 0]
            if parent < 0:
                shares[t] = np.exp(up[t] - up[t].max())
                shares[t] /= shares[t].sum()
                continue
            shares[t] = 0.0
            for i in range(f.shape[1]):
                both = shares[parent, i] * np.exp(pairs[i] + up[t] - into[t, i])
                of_pairs[i] += both
                shares[t] += both
        return total

    @staticmethod
    @extend.compiled
    def violating(f, pairs, given, truth, margins, rates, path):
        """Max-product for each number of errors below a node: up[t, i, e] with label i at t."""
        nodes, labels = f.shape
        up, size = np.full((nodes, labels, nodes + 1), -np.inf), np.ones(nodes, np.int64)
        label = np.zeros((nodes, labels, nodes + 1), np.int64)
        share = np.zeros((nodes, labels, nodes + 1), np.int64)
        own = 0.0
        for t in range(nodes):
            own += f[t, truth[t]] + (pairs[truth[given[t, 0]], truth[t]] if given[t, 0] >= 0 else 0.0)
            for i in range(labels):
                up[t, i, 0 if i == truth[t] else 1] = f[t, i]
        for t in range(nodes - 1, 0, -1):
            parent = given[t, 0]
            for i in range(labels):
                with_child = np.full(nodes + 1, -np.inf)
                for above in range(size[parent] + 1):
                    for e in range(size[t] + 1):
                        for j in range(labels):
                            reach = up[parent, i, above] + pairs[i, j] + up[t, j, e]
                            if reach > with_child[above + e]:
                                with_child[above + e] = reach
                                label[t, i, above + e], share[t, i, above + e] = j, e
                up[parent, i] = with_child
            size[parent] += size[t]
        worst, errors, path[0] = 0.0, 0, truth[0]
        for e in range(1, nodes + 1):
            for i in range(labels):
                violation = rates[e] * (margins[e] + (up[0, i, e] - own))
                if violation > worst:
                    worst, errors, path[0] = violation, e, i
        left = np.zeros(nodes, np.int64)
        left[0] = errors
        for t in range(1, nodes):  # the child that came last has been taken first
            parent = given[t, 0]
            e = left[parent]
            path[t] = label[t, path[parent], e]
            left[t] = share[t, path[parent], e]
            left[parent] -= left[t]
        if errors == 0:
            path[:] = truth

    def check(self, given, starts, title):
        place = np.arange(len(given)) - np.repeat(starts[:-1], np.diff(starts))
        if np.any((given[:, 0] < -1) | (given[:, 0] >= place)) or np.any((given[:, 0] < 0) != (place == 0)):
            raise InputError(f"{title}: expected a root, then nodes whose parents stand before them")


@dataclass(frozen=True)
class TreeMargin(extend.StructuredLoss):
    """The max-margin Markov network on trees."""

    structure = Trees()
    form = extend.MARGIN
    metrics = ("token_accuracy",)


@dataclass(frozen=True)
class TreeSlack(TreeMargin):
    """The same, slack rescaled."""

    form = extend.SLACK


@dataclass(frozen=True)
class TreeCrf(TreeMargin):
    """The conditional random field on trees."""

    form = extend.LOG


# ---------------------------------------------------------------- all labelings, one by one

FEATURES, LABELS, LAM = 4, 3, 0.05


def forest(trees=24, weighted=True):
    random = np.random.default_rng(0)
    sizes = random.integers(1, 6, trees)
    groups, place = np.repeat(np.arange(trees), sizes), np.concatenate([np.arange(n) for n in sizes])
    parents = np.array([random.integers(0, t) if t else -1 for t in place])
    X = random.normal(size=(sizes.sum(), FEATURES))
    y = (X @ random.normal(size=(FEATURES, LABELS)) + random.gumbel(size=(len(X), LABELS))).argmax(axis=1)
    weights = random.integers(1, 4, trees).astype(float)[groups] if weighted else None
    return Dataset.from_arrays(X, np.array(["a", "b", "c"])[y], weights, groups, parents)


def features(X, parents, path):
    """Those of a labeling: of the weights of labels, then of pairs."""
    table, pairs = np.zeros((FEATURES, LABELS)), np.zeros((LABELS, LABELS))
    for t, label in enumerate(path):
        table[:, label] += X[t]
        if parents[t] >= 0:
            pairs[path[parents[t]], label] += 1.0
    return np.concatenate((table.ravel(), pairs.ravel()))


def enumerated(data):
    """For each tree: its weight, for every labeling features less those of the truth, and errors."""
    codes, (_, y) = data.targets, np.unique(data.targets.y, return_inverse=True)
    for name in np.unique(codes.groups):
        rows = np.flatnonzero(codes.groups == name)
        X, parents, truth = data.X[rows], codes.structure[rows, 0], y[rows]
        every = list(itertools.product(range(LABELS), repeat=len(rows)))
        true = features(X, parents, truth)
        above = np.array([features(X, parents, path) - true for path in every])
        yield 1.0 if codes.weights is None else codes.weights[rows[0]], above, (np.array(every) != truth).sum(axis=1)


def least_margin(data, slack=False):
    """The minimum by a quadratic program with a row for every labeling of every tree."""
    trees = list(enumerated(data))
    dim, mass = trees[0][1].shape[1], sum(weight for weight, _, _ in trees)
    rates = [np.where(errors > 0, errors, 1.0) if slack else np.ones(len(errors)) for _, _, errors in trees]
    margins = [np.minimum(errors, 1) if slack else errors for _, _, errors in trees]
    P = np.diag(np.concatenate((np.full(dim, LAM), np.full(len(trees), 1e-13))))
    q = np.concatenate((np.zeros(dim), [weight / mass for weight, _, _ in trees]))
    rows = [np.hstack((rate[:, None] * above, -np.tile(np.eye(len(trees))[k], (len(above), 1))))
            for k, ((_, above, _), rate) in enumerate(zip(trees, rates, strict=True))]  # fmt: skip
    h = -np.concatenate([rate * margin for rate, margin in zip(rates, margins, strict=True)])
    options = {"show_progress": False, "abstol": 1e-11, "reltol": 1e-11, "feastol": 1e-11}
    found = cvxopt.solvers.qp(*map(cvxopt.matrix, (P, q, np.vstack(rows), h.astype(float))), options=options)
    return found["primal objective"]


def least_log(data):
    """The minimum of the likelihood by BFGS."""
    trees = list(enumerated(data))
    mass = sum(weight for weight, _, _ in trees)

    def value_and_gradient(w):
        value, gradient = 0.5 * LAM * w @ w, LAM * w
        for weight, above, _ in trees:
            scores = above @ w
            total = np.logaddexp.reduce(scores)
            value += weight / mass * total
            gradient = gradient + weight / mass * (np.exp(scores - total) @ above)
        return value, gradient

    return minimize(value_and_gradient, np.zeros(trees[0][1].shape[1]), jac=True, method="BFGS", tol=1e-9).fun


@pytest.fixture(scope="module")
def least():
    data = forest()
    margin, slack = least_margin(data), least_margin(data, slack=True)
    return {TreeMargin: margin, TreeSlack: slack, TreeCrf: least_log(data)}


SERVED = {
    TreeMargin: ("bundle", "line_search_bundle", "dual_coordinate", "auto"),
    TreeSlack: ("bundle", "line_search_bundle"),
    TreeCrf: ("bundle", "line_search_bundle", "lbfgs", "dual_coordinate", "auto"),
}


@pytest.mark.parametrize(("kind", "solver"), [(kind, solver) for kind, those in SERVED.items() for solver in those])
def test_solvers_find_the_minimum_over_all_labelings(kind, solver, least):
    risk = extend.LinearRisk(forest(), kind())
    found = SOLVERS.make(solver, {"tolerance": 1e-7, "max_iterations": 3000}).minimize(risk, bmrm.L2(LAM))
    assert found.status is Status.CONVERGED
    assert found.objective == pytest.approx(least[kind], rel=2e-7)
    assert found.objective >= least[kind] * (1.0 - 1e-9)
    for line in found.history:
        assert line.lower_bound <= least[kind] * (1.0 + 1e-9)


@pytest.mark.parametrize("kind", [TreeMargin, TreeSlack, TreeCrf])
def test_the_laws_of_losses_hold(kind):
    targets = replace(forest(weighted=False).targets, weights=None)
    extend.check_loss(kind(), targets.y, groups=targets.groups, structure=targets.structure).raise_if_failed()


@pytest.mark.parametrize("kind", [TreeMargin, TreeCrf])
def test_a_model_predicts_the_best_labeling(kind):
    data = forest()
    model = bmrm.fit(data, loss=kind(), lam=LAM)
    w = np.concatenate((model.weights.ravel(), model.arrays["pairs"].ravel()))
    found = model.predict(data)
    errors = np.array([errors[np.argmax(above @ w)] for _, above, errors in enumerated(data)])
    wrong = found != data.targets.y
    assert [wrong[data.targets.groups == name].sum() for name in range(len(errors))] == errors.tolist()
    arrays = {"groups": data.targets.groups, "structure": data.targets.structure}
    assert model.predict(data.X, **arrays).tolist() == found.tolist()
    assert model.evaluate(data)["token_accuracy"] == pytest.approx(
        1.0 - np.average(wrong, weights=data.targets.weights), abs=1e-12
    )


def test_trees_that_are_none_are_refused():
    data = forest()
    for parents, message in ((None, "no structure"), (np.full(data.rows, 0), "expected a root")):
        given = None if parents is None else parents[:, None]
        targets = replace(data.targets, structure=given)
        with pytest.raises(InputError, match=message):
            extend.LinearRisk(replace(data, targets=targets), TreeCrf())


# ---------------------------------------------------------------- over ranks


@pytest.mark.mpi
@pytest.mark.parametrize(("kind", "solver"), [(TreeMargin, "dual_coordinate"), (TreeCrf, "lbfgs")])
def test_two_ranks_find_it_too(kind, solver, least):
    objective, bound, status = printed(2, "tests.losses.test_tree_structure", kind.__name__, solver)
    assert status == "CONVERGED"
    assert objective == pytest.approx(least[kind], rel=2e-7)
    assert bound <= least[kind] * (1.0 + 1e-9)


def main(arguments):
    """Under mpirun: the trees shared out; rank 0 prints objective, bound and status."""
    kind, solver = {"TreeMargin": TreeMargin, "TreeCrf": TreeCrf}[arguments[0]], arguments[1]
    group, data = extend.open_group(), forest()
    mine = data.select(np.flatnonzero(data.targets.groups % group.size == group.rank))
    risk = extend.shared_risk(mine, kind(), group)
    options = {"tolerance": 1e-7, "max_iterations": 3000}
    found = extend.lead(risk, group, lambda whole: SOLVERS.make(solver, options).minimize(whole, bmrm.L2(LAM)))
    if found is not None:
        print(json.dumps([found.objective, found.lower_bound, found.status.name]))


if __name__ == "__main__":
    main(sys.argv[1:])
