"""Losses of sequences: special cases, prediction, and what they refuse; conformance holds the rest."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from bmrm.kernels.sequences import likelihood as chains
from bmrm.losses import LOSSES
from bmrm.problem import InputError, Targets

NAMES = ("chain_crf", "chain_margin", "chain_scaled_margin")


def prepared(name, y, groups, weights=None, **options):
    loss, targets = LOSSES.make(name, options), Targets(np.asarray(y, float), weights, np.asarray(groups))
    return loss.prepare(targets, loss.summarise(targets))


@pytest.mark.parametrize(
    ("chain", "rows"),
    [
        ("chain_crf", "softmax"),
        ("chain_margin", "multiclass_hinge"),
        ("chain_scaled_margin", "scaled_multiclass_hinge"),
    ],
)
def test_sentences_of_one_token_are_a_loss_of_rows(chain, rows):
    rng = np.random.default_rng(0)
    y, f = rng.permutation(np.arange(30) % 4).astype(float), rng.normal(size=(30, 4)) * 3.0
    loss, targets = LOSSES.make(rows), Targets(y)
    value, slope = loss.prepare(targets, loss.summarise(targets)).value_and_slope(f)
    chain_value, chain_slope = prepared(chain, y, np.arange(30)).value_and_slope(np.append(f.ravel(), np.ones(16)))
    assert chain_value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(chain_slope[:-16].reshape(30, 4), slope, atol=1e-12)
    assert not chain_slope[-16:].any()


def test_scaled_sums_and_logarithms_agree():
    """Where scores differ by less than the limit for scaled sums, both ways give the same."""
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 12, 30)
    starts = np.concatenate(([0], np.cumsum(lengths)))
    for size in (1.0, 30.0, 60.0):
        f, trans = size * rng.normal(size=(starts[-1], 5)), size * rng.normal(size=(5, 5))
        y, weights = rng.integers(0, 5, starts[-1]), rng.uniform(0.5, 2.0, 30)
        answers = []
        for function, chosen in ((chains.chain_likelihoods, ()), (chains.by_logarithms, (np.arange(30),))):
            slope, of_trans = np.zeros_like(f), np.zeros((5, 5))
            value = function(f, trans, False, y, starts, *chosen, weights, slope, of_trans)
            answers.append((value, slope, of_trans))
        (a, b, c), (d, e, g) = answers
        assert a == pytest.approx(d, rel=1e-12)
        np.testing.assert_allclose(b, e, atol=1e-11)
        np.testing.assert_allclose(c, g, atol=1e-10)


def spread_of_step_scores(f, trans, step, of_trans):
    """The variance over all labelings of their score with the step in place of the scores, in exact fractions."""

    def score(table, pairs, path):
        terms = [table[t, k] for t, k in enumerate(path)] + [pairs[i, j] for i, j in itertools.pairwise(path)]
        return sum(map(Fraction, terms))

    paths = list(itertools.product(range(f.shape[1]), repeat=f.shape[0]))
    scores = [score(f, trans, path) for path in paths]
    marginals = [Fraction(np.exp(float(each - max(scores)))) for each in scores]
    steps = [score(step, of_trans, path) for path in paths]
    mean = sum(p * s for p, s in zip(marginals, steps, strict=True)) / sum(marginals)
    return float(sum(p * (s - mean) ** 2 for p, s in zip(marginals, steps, strict=True)) / sum(marginals))


@pytest.mark.parametrize("size", [1.0, 20.0, 1000.0])
@pytest.mark.parametrize("levels", [0, 2])
def test_curvature_along_a_step_is_a_sum_of_squares(size, levels):
    """To 1e-9 of itself, though it be 1e-30 or exactly 0; `levels` 2 has ties."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        f = np.sign(rng.normal(size=21)) * size if levels else rng.normal(size=21) * size
        step = rng.normal(size=21)
        product = prepared("chain_crf", [0, 1, 2, 0], [0, 0, 0, 0]).hessian_product(f, step)
        tables = [part.reshape(-1, 3) for vector in (f, step) for part in (vector[:12], vector[12:])]
        exact = spread_of_step_scores(*tables)
        assert np.sum(product * step) >= 0.0
        assert np.sum(product * step) == pytest.approx(exact, rel=1e-9, abs=1e-290)


@pytest.mark.parametrize("transitions", ["constant", "observed"])
def test_predictions_are_the_best_of_all_labelings(transitions):
    rng = np.random.default_rng(2)
    loss = LOSSES.make("chain_crf", {"transitions": transitions})
    labels, lengths = ("x", "y", "z"), [1, 4, 2, 5]
    groups = np.repeat([7, 3, 9, 1], lengths)
    f, trans = rng.normal(size=(12, 12 if transitions == "observed" else 3)), rng.normal(size=(3, 3))
    found = loss.predict(f, labels, trans, groups)
    first = 0
    for steps in lengths:

        def score(path, first=first):
            total = sum(f[first + t, k] for t, k in enumerate(path))
            for t in range(1, len(path)):
                total += trans[path[t - 1], path[t]]
                if transitions == "observed":
                    total += f[first + t, 3 + 3 * path[t - 1] + path[t]]
            return total

        best = max(itertools.product(range(3), repeat=steps), key=score)
        assert found[first : first + steps].tolist() == [labels[k] for k in best]
        first += steps


@pytest.mark.parametrize("name", NAMES)
def test_a_perfect_labeling_far_ahead_costs_nothing(name):
    y = np.array([0.0, 1.0, 2.0, 0.0])
    f = np.append(1e4 * np.eye(3)[y.astype(int)].ravel(), np.zeros(9))
    value, slope = prepared(name, y, [0, 0, 0, 1]).value_and_slope(f)
    assert value == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(slope, 0.0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_parts_must_be_whole_sentences(name):
    whole = prepared(name, [0, 1, 0, 1], [5, 5, 5, 8])
    assert whole.part(3, 4).mass == 1.0
    assert whole.part(3, 3).mass == 0.0
    assert whole.part(3, 3).value_and_slope(np.zeros(4))[0] == 0.0
    with pytest.raises(InputError, match="part a sentence"):
        whole.part(0, 2)


def test_what_is_refused():
    loss = LOSSES.make("chain_crf")
    y = np.array([0.0, 1.0])
    with pytest.raises(InputError, match="chain_crf: no groups"):
        loss.prepare(Targets(y), loss.summarise(Targets(y)))
    with pytest.raises(InputError, match="weight of row 1 differs"):
        prepared("chain_crf", y, [0, 0], np.array([1.0, 2.0]))
    with pytest.raises(InputError, match="transitions is 'none'"):
        LOSSES.make("chain_crf", {"transitions": "none"})


def slopes_by_enumeration(f, trans, y, observed):
    """Slopes of `chain_crf` from the exact differences of the scores of all labelings, the true one nearly certain."""
    tokens, labels = len(f), len(trans)
    slope, of_trans = np.zeros_like(f), np.zeros_like(trans)

    def marks(labeling):
        table, pairs = np.zeros_like(f), np.zeros_like(trans)
        for t, k in enumerate(labeling):
            table[t, k] = 1.0
            if t > 0:
                pairs[labeling[t - 1], k] += 1.0
                if observed:
                    table[t, labels + labeling[t - 1] * labels + k] = 1.0
        return table, pairs

    def score(table, pairs):
        terms = [*zip(table.ravel(), f.ravel(), strict=True), *zip(pairs.ravel(), trans.ravel(), strict=True)]
        return sum((Fraction(count) * Fraction(each) for count, each in terms if count), Fraction(0))

    true = marks(y)
    others = []
    for labeling in itertools.product(range(labels), repeat=tokens):
        if labeling != tuple(y):
            here = marks(labeling)
            others.append((math.exp(float(score(*here) - score(*true))), here))
    whole = 1.0 + math.fsum(share for share, _ in others)
    for share, (table, pairs) in others:
        slope += share / whole * (table - true[0])
        of_trans += share / whole * (pairs - true[1])
    return np.concatenate((slope.ravel(), of_trans.ravel()))


@pytest.mark.parametrize("transitions", ["constant", "observed"])
def test_slopes_of_labels_that_are_nearly_certain_keep_their_digits(transitions):
    """Scores of 1e5, the true labels ahead of all others by 12 or more: slopes are about 1e-6 and less."""
    rng = np.random.default_rng(3)
    y, labels = np.array([2, 0, 1, 1]), 3
    chain = prepared("chain_crf", y, np.zeros(4), transitions=transitions)
    f, trans = rng.normal(size=(4, chain.scores_per_row)), rng.normal(size=(labels, labels))
    f[:, :labels] = 1e5 * rng.normal(size=(4, 1)) - rng.uniform(12.0, 16.0, (4, labels))
    f[np.arange(4), y] += 30.0
    _, slope = chain.value_and_slope(np.concatenate((f.ravel(), trans.ravel())))
    expected = slopes_by_enumeration(f, trans, y, transitions == "observed")
    assert 1e-13 < np.abs(expected).max() < 1e-5
    np.testing.assert_allclose(slope[: f.size], expected[: f.size], rtol=1e-8, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(slope[f.size :], expected[f.size :], rtol=1e-8, atol=1e-15)


def test_a_small_loss_keeps_its_digits_where_scores_of_labels_and_transitions_cancel():
    """What is added to a label's scores and taken off the transitions into it changes no labeling's score."""
    y, labels, far = np.array([2, 0, 1, 1]), 3, 1e10 * np.array([1.0, -2.0, 3.0])
    f = np.random.default_rng(4).integers(-3, 4, (4, labels)).astype(float)
    f[np.arange(4), y] += 20.0
    trans = np.zeros((labels, labels))
    losses = []
    for moved in (np.zeros(labels), far):
        table = f + np.concatenate((np.zeros((1, labels)), np.tile(moved, (3, 1))))
        slope, of_trans = np.zeros_like(f), np.zeros((labels, labels))
        starts = np.array([0, 4])
        losses.append(chains.chain_likelihoods(table, trans - moved, False, y, starts, np.empty(0), slope, of_trans))
    scores = [sum(f[t, k] for t, k in enumerate(path)) for path in itertools.product(range(labels), repeat=4)]
    own = float(f[np.arange(4), y].sum())
    expected = math.log1p(math.fsum(math.exp(each - own) for each in scores) - 1.0)
    assert 1e-9 < expected < 1e-4
    assert losses == pytest.approx([expected, expected], rel=1e-7)
