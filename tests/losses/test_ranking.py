"""Losses of rankings: sorting against the general assignment, what they bound, ties, what does not fit."""

import dataclasses
import itertools
from unittest import mock

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from bmrm import load_model
from bmrm.app.fit import fit
from bmrm.data.dataset import Dataset
from bmrm.losses._core import interleaving, pairs
from bmrm.losses.expected_rank_utility import ExpectedRankUtility
from bmrm.losses.mean_reciprocal_rank import MeanReciprocalRank
from bmrm.losses.ndcg import Ndcg
from bmrm.losses.ordinal import Ordinal
from bmrm.losses.ordinal_thresholds import OrdinalThresholds
from bmrm.losses.rank_hinge import RankHinge
from bmrm.losses.roc_area import RocArea
from bmrm.losses.winner_takes_all import WinnerTakesAll
from bmrm.metrics.ranked import mean_over_queries, ndcg, reciprocal_rank, utility, winner_found
from bmrm.problem import IncompatibleError, InputError, Targets, ability
from bmrm.problem.abilities import Blocks, RowSubsets
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from tests.conformance.loss_cases import case_of
from tests.conformance.loss_properties import PROPERTIES

PAPER = (
    Ndcg(joint="ranks"),
    ExpectedRankUtility(joint="ranks"),
    MeanReciprocalRank(joint="ranks"),
    WinnerTakesAll(joint="ranks"),
)
RANKING = (*PAPER, Ndcg(), ExpectedRankUtility(), MeanReciprocalRank(), WinnerTakesAll(), RankHinge())


def queries(seed, count=6, most=12):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(count), rng.integers(2, most, count))
    y = rng.integers(0, 4, groups.size).astype(float)
    return y, groups, rng.normal(size=groups.size)


def value(loss, y, groups, f):
    targets = Targets(y, None, groups)
    prepared = loss.prepare(targets, loss.summarise(targets))
    total, slope = prepared.value_and_slope(f)
    return total / prepared.mass, slope / prepared.mass


@pytest.mark.parametrize(
    "loss",
    [
        Ndcg(joint="ranks"),
        Ndcg(4, joint="ranks"),
        Ndcg(None, joint="ranks"),
        ExpectedRankUtility(joint="ranks"),
        ExpectedRankUtility(2.0, 1.0, joint="ranks"),
    ],
)
@pytest.mark.parametrize("seed", range(10))
def test_sorting_is_the_assignment_where_scores_weigh_ranks_as_the_measure_does(loss, seed):
    """Rearrangement: sum of D(pi(i)) (f_i - b_i) is largest where both sequences fall together."""
    y, groups, f = queries(seed)
    targets = Targets(y, None, groups)
    prepared = loss.prepare(targets, loss.summarise(targets))
    total = 0.0
    for k in np.flatnonzero(prepared.active):
        rows = slice(prepared.grouping.starts[k], prepared.grouping.starts[k + 1])
        gains, discounts = prepared.gains[rows], prepared.discounts[: rows.stop - rows.start]
        keys = np.outer(f[rows] - gains, discounts)
        best = keys[linear_sum_assignment(keys, maximize=True)].sum()
        total += 1.0 + best - prepared.reference[rows] @ f[rows]
    assert prepared.value_and_slope(f)[0] == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_decay_equal_to_the_discounts_changes_nothing(seed):
    """The general assignment and sorting meet where c = D is put in by hand."""

    @dataclasses.dataclass(frozen=True)
    class ByAssignment(Ndcg):
        def scoring(self, ranks):
            return self.discounts(ranks)

    y, groups, f = queries(seed)
    for a, b in zip(
        value(ByAssignment(joint="ranks"), y, groups, f), value(Ndcg(joint="ranks"), y, groups, f), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def every_ranking(loss, y, f):
    """The joint score of pairs by trying every ranking of one query."""
    gains, size = loss.gains(Targets(y, None, np.zeros(y.size, int))), y.size
    if np.ptp(gains) == 0.0:
        return 0.0
    discounts = loss.discounts(size)
    best = np.sort(gains)[::-1] @ discounts
    above = [(i, j) for i in range(size) for j in range(size) if gains[i] > gains[j]]
    share = {"pairs": 1.0 / size, "pair_mean": 1.0 / len(above), "pair_sum": 1.0}[loss.joint]
    return max(
        1.0 - discounts[list(ranks)] @ gains / best + share * sum(f[j] - f[i] for i, j in above if ranks[i] > ranks[j])
        for ranks in itertools.permutations(range(size))
    )


PAIRS = ("pairs", "pair_mean", "pair_sum")


@pytest.mark.parametrize(
    "loss",
    [Ndcg(2, joint="pairs"), ExpectedRankUtility(joint="pairs"), *(Ndcg(joint=joint) for joint in PAIRS)],
    ids=str,
)
@pytest.mark.parametrize("states", [0, interleaving.MOST_STATES])
def test_joint_score_of_pairs_is_the_best_of_all_rankings(loss, states):
    """By the dynamic program, and by the assignment where no state is allowed."""
    with mock.patch.object(interleaving, "MOST_STATES", states):
        for seed in range(8):
            y, groups, f = queries(seed, count=4, most=7)
            f = np.round(f, seed % 3)
            prepared = loss.prepare(Targets(y, None, groups), None)
            assert (prepared.by_assignment.size == 0) == (states > 0)
            expected = sum(every_ranking(loss, y[groups == k], f[groups == k]) for k in range(4))
            assert prepared.value_and_slope(f)[0] == pytest.approx(expected, rel=1e-12)


OTHERS = (*PAPER, *(kind(joint=joint) for joint in PAIRS[1:] for kind in (Ndcg, MeanReciprocalRank)))


@pytest.mark.parametrize("loss", OTHERS, ids=str)
@pytest.mark.parametrize("name", PROPERTIES)
def test_other_joint_scores_have_the_properties_of_losses(name, loss):
    PROPERTIES[name](case_of(loss))


@pytest.mark.parametrize("kind", [Ndcg, ExpectedRankUtility, MeanReciprocalRank, WinnerTakesAll])
def test_by_default_noisy_grades_are_learned_from(kind):
    """The form of the paper has its minimum at w = 0 there, and learns nothing."""
    rng = np.random.default_rng(4)
    X, groups = rng.normal(size=(1200, 3)), np.repeat(np.arange(60), 20)
    y = np.digitize(X[:, 0] + 4.0 * rng.normal(size=1200), [1.2, 4.0])
    found = fit(X, y, loss=kind(), groups=groups)
    assert found.weights[0] > 2.0 * np.abs(found.weights[1:]).max()
    assert not fit(X, y, loss=kind(joint="ranks"), groups=groups).weights.any()


@pytest.mark.parametrize("joint", PAIRS)
def test_pairs_have_no_ranks_to_weigh(joint):
    with pytest.raises(InputError, match="ndcg: decay belongs to `joint: ranks`"):
        Ndcg(decay=0.5, joint=joint)


@pytest.mark.parametrize("seed", range(5))
def test_one_relevant_row_makes_the_reciprocal_rank_an_assignment(seed):
    rng = np.random.default_rng(seed)
    rows = 9
    relevant = np.eye(1, rows, rng.integers(rows))[0]
    f, weights = rng.normal(size=rows), 1.0 / np.arange(1, rows + 1)
    keys = np.outer(f - relevant, weights)
    best = 1.0 + keys[linear_sum_assignment(keys, maximize=True)].sum()
    reference = np.where(relevant > 0, 1.0, weights[1:].mean())
    found, _ = value(MeanReciprocalRank(joint="ranks"), relevant, np.zeros(rows, int), f)
    assert found == pytest.approx(best - reference @ f, rel=1e-12)


def _eru(y, f):
    return utility(np.maximum(0.0, y), f, np.exp2(-np.arange(y.size) / 4.0))


@pytest.mark.parametrize("seed", range(10))
def test_losses_bound_their_measures(seed):
    y, groups, f = queries(seed)
    differ = np.concatenate([np.full(np.sum(groups == k), np.ptp(y[groups == k]) > 0) for k in np.unique(groups)])
    y, groups, f = y[differ], groups[differ], f[differ]
    for loss, measure in (
        (Ndcg(joint="ranks"), lambda y, f: ndcg(y, f, 10)),
        (Ndcg(None, joint="ranks", decay=0.25), ndcg),
        *((Ndcg(joint=joint), lambda y, f: ndcg(y, f, 10)) for joint in PAIRS),
        *((ExpectedRankUtility(joint=joint), _eru) for joint in ("ranks", *PAIRS)),
        (WinnerTakesAll(), winner_found),
        (WinnerTakesAll(joint="ranks"), winner_found),
    ):
        assert value(loss, y, groups, f)[0] >= 1.0 - mean_over_queries(measure, y, f, groups=groups) - 1e-12, loss
    binary = (y > 1).astype(float)
    both = np.concatenate([np.full(np.sum(groups == k), np.ptp(binary[groups == k]) > 0) for k in np.unique(groups)])
    measured = mean_over_queries(reciprocal_rank, binary[both], f[both], groups=groups[both])
    for joint in ("ranks", *PAIRS):
        assert value(MeanReciprocalRank(joint=joint), binary, groups, f)[0] >= 1.0 - measured - 1e-12


def test_one_group_of_two_grades_is_roc_area():
    y, groups, f = queries(1)
    y = (y > 1).astype(float)
    for loss in (RankHinge(), RankHinge("queries")):
        for a, b in zip(value(loss, y, groups * 0, f), value(RocArea(), y, None, f), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)
    np.testing.assert_allclose(value(Ordinal(), y, None, f)[0], value(RocArea(), y, None, f)[0], rtol=1e-13)


@pytest.mark.parametrize("loss", [RankHinge(), RankHinge("queries"), Ordinal(), RocArea()], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scores", ["normal", "ties", "far apart"])
@pytest.mark.parametrize("grades", [5, 12])
def test_pairs_compared_and_pairs_counted_among_sorted_scores_agree(loss, weighted, scores, grades):
    rng = np.random.default_rng(9)
    groups = np.repeat(np.arange(12), rng.integers(1, 60, 12))
    y = rng.integers(0, 2 if loss.task == "binary" else grades, groups.size).astype(float)
    y[groups == 3] = 1.0  # nothing to rank
    weights = rng.choice([0.0, 1.0, 2.5], groups.size) if weighted else None
    f = rng.normal(size=groups.size)
    f = {"normal": f, "ties": np.round(2.0 * f) / 2.0, "far apart": 1000.0 * np.sign(f)}[scores]
    answers = []
    for compared in (0, 5, 10**9):  # none, some, all
        with mock.patch.object(pairs, "COMPARED", compared):
            targets = Targets(y, weights, groups if isinstance(loss, RankHinge) else None)
            answers.append(loss.prepare(targets, loss.summarise(targets)).value_and_slope(f))
    for total, slope in answers[1:]:
        assert total == pytest.approx(answers[0][0], rel=1e-12)
        np.testing.assert_allclose(slope, answers[0][1], rtol=1e-12, atol=1e-12 * np.abs(slope).max())


@pytest.mark.parametrize("loss", RANKING, ids=str)
def test_rows_of_a_query_may_stand_anywhere(loss):
    y, groups, f = queries(2)
    order = np.random.default_rng(0).permutation(y.size)
    expected, slope = value(loss, y, groups, f)
    found, mixed = value(loss, y[order], groups[order], f[order])
    assert found == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(mixed, slope[order], atol=1e-14)
    X = np.random.default_rng(1).normal(size=(y.size, 3))
    w = np.array([1.0, -2.0, 0.5])
    whole = LinearRisk(Dataset.from_arrays(X, y, groups=groups), loss).value_and_subgradient(w)
    apart = LinearRisk(Dataset.from_arrays(X[order], y[order], groups=groups[order]), loss)
    for a, b in zip(apart.value_and_subgradient(w), whole, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-13)
    values, _ = ability(apart, Blocks).values_and_subgradients(w, 3)
    assert values.sum() == pytest.approx(whole[0], rel=1e-12)


@pytest.mark.parametrize("loss", RANKING, ids=str)
def test_abilities_of_sums_over_queries(loss):
    y, groups, _ = queries(3)
    risk = LinearRisk(Dataset.from_arrays(np.random.default_rng(1).normal(size=(y.size, 3)), y, groups=groups), loss)
    assert ability(risk, RowSubsets) is None
    w = np.array([1.0, 0.5, -0.5])
    values, slopes = ability(risk, Blocks).values_and_subgradients(w, 4)
    total, slope = risk.value_and_subgradient(w)
    assert values.sum() == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(slopes.sum(axis=0), slope, atol=1e-12)
    assert (values >= ability(risk, Blocks).infima(4)).all()
    with pytest.raises(IncompatibleError, match="a free intercept has no meaning"):
        fit(risk.data.X, y, loss=loss, regularizer=L2(0.1), groups=groups, bias="free")


@pytest.mark.parametrize("loss", RANKING, ids=str)
def test_what_rankings_cannot_use(loss):
    y, groups, _ = queries(4)
    X = np.ones((y.size, 1))
    with pytest.raises(InputError, match=f"{loss.title}: the rows have no groups; expected the query of each row"):
        LinearRisk(Dataset.from_arrays(X, y), loss)
    with pytest.raises(InputError, match=f"{loss.title}: no query has"):
        LinearRisk(Dataset.from_arrays(X, np.zeros(y.size), groups=groups), loss)
    if not loss.weighted:
        with pytest.raises(InputError, match=f"{loss.title}: the weight of row 0 is 2"):
            LinearRisk(Dataset.from_arrays(X, y, weights=np.full(y.size, 2.0), groups=groups), loss)


def test_grades_of_ndcg_have_limits():
    for grade, said in ((-1.0, "-1"), (51.0, "51")):
        with pytest.raises(InputError, match=f"ndcg: the grade of row 1 is {said}, expected one from 0 to 50"):
            value(Ndcg(), np.array([0.0, grade]), np.zeros(2, int), np.zeros(2))


def ordinal_data(seed=0, rows=400):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4))
    score = X @ np.array([2.0, -1.0, 0.5, 0.0]) + 0.3 * rng.normal(size=rows)
    return X, np.digitize(score, [-2.0, 0.0, 1.5]) + 3.0


@pytest.mark.parametrize("cuts", ["all", "immediate"])
def test_cut_points_are_kept_and_predict(tmp_path, cuts):
    X, y = ordinal_data()
    model = fit(X, y, loss={"name": "ordinal_thresholds", "cuts": cuts}, regularizer=L2(1e-3), tolerance=1e-6)
    points = model.arrays["cut_points"]
    assert points.shape == (3,)
    assert (np.diff(points) > 0).all()
    assert np.mean(model.predict(X) == y) > 0.85
    model.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert again.header["arrays"] == ["cut_points"]
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(InputError, match="cut points"):
        model.loss.predict(np.zeros(3), model.labels)


def test_profiled_cut_points_are_those_of_the_joint_problem():
    """Against cvxopt on the linear program with weights bounded by a small ridge: the same objective."""
    from cvxopt import matrix, solvers

    X, y = ordinal_data(1, rows=40)
    lam, rows, d, K = 0.05, *X.shape, 4
    side = np.where(y[:, None] > np.unique(y)[:-1], 1.0, -1.0)
    # Variables: w, cut points, slacks; s (x w - t) >= 1 - slack.
    hinges = rows * (K - 1)
    P = np.zeros((d + K - 1 + hinges,) * 2)
    P[:d, :d] = lam * np.eye(d)
    q = np.concatenate((np.zeros(d + K - 1), np.full(hinges, 1.0 / rows)))
    G, h = np.zeros((2 * hinges, q.size)), np.zeros(2 * hinges)
    for i in range(rows):
        for k in range(K - 1):
            at = i * (K - 1) + k
            G[at, :d], G[at, d + k], G[at, d + K - 1 + at], h[at] = -side[i, k] * X[i], side[i, k], -1.0, -1.0
            G[hinges + at, d + K - 1 + at] = -1.0
    solvers.options["show_progress"] = False
    reference = solvers.qp(matrix(P), matrix(q), matrix(G), matrix(h), options={"show_progress": False})
    model = fit(X, y, loss="ordinal_thresholds", regularizer=L2(lam), tolerance=1e-8)
    assert model.solution.objective == pytest.approx(reference["primal objective"], rel=1e-6)


def test_thresholds_refuse_what_is_no_scale():
    with pytest.raises(InputError, match="ordinal_thresholds: only one class: 2, expected two grades or more"):
        fit(np.eye(3), np.full(3, 2.0), loss=OrdinalThresholds(), regularizer=L2(0.1))
    with pytest.raises(InputError, match="ordinal_thresholds: the targets are text"):
        fit(np.eye(3), ["a", "b", "c"], loss=OrdinalThresholds(), regularizer=L2(0.1))
    with pytest.raises(IncompatibleError, match="the cut points are free already"):
        fit(np.eye(3), np.arange(3.0), loss=OrdinalThresholds(), regularizer=L2(0.1), bias="free")


def test_queries_with_one_grade_of_weight_above_0_have_no_pairs():
    """Fractions of weights must not leave a rounding that counts as a pair: each query counts one."""
    random = np.random.default_rng(0)
    groups, y = np.repeat(np.arange(60), 4), random.integers(0, 4, 240).astype(float)
    weights, f = random.random(240) * (random.random(240) < 0.4), random.normal(size=240)
    means = []
    for query in range(60):
        rows = np.flatnonzero(groups == query)
        pairs = [(weights[i] * weights[j], 1.0 - f[i] + f[j]) for i in rows for j in rows if y[i] > y[j]]
        mass = sum(weight for weight, _ in pairs)
        if mass > 0.0:
            means.append(sum(weight * max(0.0, loss) for weight, loss in pairs) / mass)
    assert 0 < len(means) < 60
    data = Dataset.from_arrays(f[:, None], y, weights, groups)
    risk = LinearRisk(data, RankHinge(average="queries"))
    assert risk.value_and_subgradient(np.ones(1))[0] == pytest.approx(np.mean(means), rel=1e-12)
