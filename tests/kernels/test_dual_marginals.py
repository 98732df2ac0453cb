"""Kernels of marginals of chains, and of dual ascent by them, against sums over all labelings in plain NumPy."""

import itertools

import numpy as np
import pytest

from bmrm.kernels.dual import marginals as dual_marginals
from bmrm.kernels.dual.groups import Steps, Weights, split
from bmrm.kernels.jit import specialised
from bmrm.kernels.sequences import marginals as chain_marginals
from bmrm.losses._core.chain import Chain
from bmrm.risk.dual.groups import access_of
from tests.kernels.test_dual_chains import FEATURES, LABELS, LENGTHS, joint, product, small_problem


def by_labelings(f, trans, observed):
    """log Z, the marginals like `f`, and of transitions, by enumeration."""
    steps, labels = f.shape[0], trans.shape[0]
    every = list(itertools.product(range(labels), repeat=steps))
    features = []
    for path in every:
        table, pairs = np.zeros_like(f), np.zeros_like(trans)
        for t, label in enumerate(path):
            table[t, label] = 1.0
            if t:
                pairs[path[t - 1], label] += 1.0
                if observed:
                    table[t, labels + path[t - 1] * labels + label] = 1.0
        features.append((table, pairs))
    scores = np.array([np.sum(table * f) + np.sum(pairs * trans) for table, pairs in features])
    whole = np.logaddexp.reduce(scores)
    shares = np.exp(scores - whole)
    marginals, pairs = (sum(share * part[k] for share, part in zip(shares, features, strict=True)) for k in (0, 1))
    return whole, marginals, pairs


def width_of(observed, labels=LABELS):
    return labels + (labels * labels if observed else 0)


@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("spread", [1.0, 100.0, 2000.0])
@pytest.mark.parametrize(("steps", "labels"), [(1, 3), (2, 2), (5, 4), (4, 5)])
def test_marginals_are_sums_over_labelings(observed, spread, steps, labels):
    random = np.random.default_rng(steps)
    f = spread * random.normal(size=(steps, width_of(observed, labels)))
    trans = spread * random.normal(size=(labels, labels))
    marginals, pairs, given = np.empty_like(f), np.full_like(trans, 7.0), np.empty((steps, 0), np.int64)
    whole = chain_marginals.labeling_marginals(f, trans, given, marginals, pairs)
    expected = by_labelings(f, trans, observed)
    assert whole == pytest.approx(expected[0], rel=1e-13)
    np.testing.assert_allclose(marginals, expected[1], atol=1e-11)
    np.testing.assert_allclose(pairs, expected[2], atol=1e-11)
    assert chain_marginals.log_partition(f, trans, given) == pytest.approx(expected[0], rel=1e-13)


@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("threshold", [0.0, 0.05])
def test_visits_are_their_formulas(threshold, observed):
    X, wide, sentences, random = small_problem()
    (starts, y, weights, *_), width = sentences, width_of(observed)
    at = np.concatenate(([0], np.cumsum(LENGTHS * width + LABELS**2)))
    marginals = np.zeros(at[-1])
    take_truth = specialised(dual_marginals.take_truth, terms=Chain.terms)
    take_truth(sentences, width, np.empty((LABELS, LABELS)), at, marginals, np.empty(20, np.int64))
    begun = np.zeros(3, np.bool_)
    kept = dual_marginals.Potentials(at, np.zeros(at[-1]), marginals, np.zeros(3), np.ones(3), begun)
    v, tail, gaps = random.normal(size=(FEATURES + 1, width)), random.normal(size=(LABELS, LABELS)), np.zeros(3)
    room = dual_marginals.Room(np.empty((7, 5 * width + LABELS**2)), np.empty(width))
    moving = Weights(v[:-1], tail, v[-1])
    evaluate = specialised(dual_marginals.evaluate, marginals=Chain.marginals)
    functions = {name: specialised(getattr(dual_marginals, name), evaluate=evaluate) for name in ("begin", "ascend")}
    functions |= {"log_partition": Chain.log_partition, **access_of("dense", threshold > 0.0)}
    visit = specialised(dual_marginals.visit, **functions)

    def now(s):
        return split(marginals[at[s] : at[s + 1]].copy(), LENGTHS[s], width, tail)

    for s in (0, 1, 2, 0, 2, 1, 0, 1, 2):
        mine, curve = wide[starts[s] : starts[s + 1]], 0.4 * weights[s]
        before, entropy, of_v = now(s), kept.entropies[s], (v.copy(), tail.copy())
        visit(np.array([s]), gaps, (X,), sentences, kept, moving, Steps(threshold, 0.4, 1.0), room)
        at_v, at_tail = (np.sign(part) * np.maximum(np.abs(part) - threshold, 0.0) for part in of_v)
        f = mine @ at_v
        whole, *_ = by_labelings(f, at_tail, observed)
        value = entropy + np.sum(before[0] * f) + np.sum(before[1] * at_tail)
        assert gaps[s] == pytest.approx(weights[s] * (whole - value), abs=1e-10)
        after = now(s)
        change = mine.T @ (after[0] - before[0]), after[1] - before[1]
        np.testing.assert_allclose(v, of_v[0] - curve * change[0], atol=1e-10)
        np.testing.assert_allclose(tail, of_v[1] - curve * change[1], atol=1e-10)
        potentials = split(kept.potentials[at[s] : at[s + 1]], LENGTHS[s], width, tail)
        under, *expected = by_labelings(*potentials, observed)
        for found, share in zip(after, expected, strict=True):
            np.testing.assert_allclose(found, share, atol=1e-10)
        inside = sum(np.sum(a * b) for a, b in zip(potentials, after, strict=True))
        assert kept.entropies[s] == pytest.approx(under - inside, abs=1e-10)
        gain = kept.entropies[s] + np.sum(after[0] * f) + np.sum(after[1] * at_tail) - value
        gain -= 0.5 * curve * product(change, change)
        assert gain > 0.0
    slope, between = np.zeros((starts[-1], width)), np.zeros((LABELS, LABELS))
    slopes_of = specialised(dual_marginals.slopes_of, terms=Chain.terms)
    slopes_of(sentences, kept, slope, between, np.empty(20, np.int64))
    for s in range(3):
        true = joint(np.eye(LENGTHS[s]), y[starts[s] : starts[s + 1]], observed)
        expected = weights[s] * (now(s)[0] - true[0])
        np.testing.assert_allclose(slope[starts[s] : starts[s + 1]], expected, atol=1e-12)
        between -= weights[s] * (now(s)[1] - true[1])
    np.testing.assert_allclose(between, 0.0, atol=1e-12)
