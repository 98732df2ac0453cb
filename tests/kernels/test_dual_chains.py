"""Kernels of dual ascent over sentences against plain NumPy: features of labelings as vectors, their mixtures."""

import itertools

import numpy as np
import pytest

from bmrm.kernels.dual import chains as dual_chains
from bmrm.kernels.dual import sentences as dual_sentences
from bmrm.kernels.dual import vertices
from bmrm.kernels.dual.sentences import Sentences, Steps, Weights
from bmrm.kernels.jit import specialised
from bmrm.kernels.sequences.margins import oracle_of
from bmrm.risk.dual import chains as risk_dual_chains
from bmrm.risk.dual.many import WAYS
from bmrm.risk.dual.sentences import access_of

TOKENS, LABELS, FEATURES = 5, 3, 4
LENGTHS = np.array([5, 3, 4])


def joint(X, path, observed):
    """The features of a labeling, as one vector: those of labels, of pairs where observed, and transitions."""
    of_labels, transitions = np.zeros((X.shape[1], LABELS)), np.zeros((LABELS, LABELS))
    of_pairs = np.zeros((X.shape[1], LABELS, LABELS))
    for t, label in enumerate(path):
        of_labels[:, label] += X[t]
        if t:
            transitions[path[t - 1], label] += 1.0
            of_pairs[:, path[t - 1], label] += X[t] if observed else 0.0
    table = np.concatenate((of_labels, of_pairs.reshape(-1, LABELS**2)), axis=1)
    return table[:, : table.shape[1] if observed else LABELS], transitions


def product(a, b):
    return sum(float(np.sum(x * y)) for x, y in zip(a, b, strict=True))


def less(a, b):
    return tuple(x - y for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("observed", [False, True])
def test_scores_and_distances_of_labelings(observed):
    random = np.random.default_rng(0)
    for _ in range(20):
        X = random.normal(size=(TOKENS, FEATURES))
        a, b = random.integers(0, LABELS, (2, TOKENS)).astype(np.uint16)
        w = tuple(random.normal(size=part.shape) for part in joint(X, a.astype(int), observed))
        of_a, of_b = joint(X, a.astype(int), observed), joint(X, b.astype(int), observed)
        assert vertices.labeling_score(X @ w[0], w[1], observed, a) == pytest.approx(product(w, of_a), abs=1e-12)
        room = np.empty(TOKENS, np.int64)
        found = vertices.squared_distance(X @ X.T, observed, a, b, LABELS, room)
        assert found == pytest.approx(product(less(of_a, of_b), less(of_a, of_b)), abs=1e-12)
        f, trans = X @ w[0], w[1].copy()
        slope, trans_slope = np.zeros_like(f), np.zeros_like(trans)
        vertices.move(vertices.Moving(X @ X.T, observed, 0.7, f, trans, slope, trans_slope), a, b, 0.3)
        moved = tuple(part - 0.7 * 0.3 * change for part, change in zip(w, less(of_a, of_b), strict=True))
        np.testing.assert_allclose(f, X @ moved[0], atol=1e-12)
        np.testing.assert_allclose(trans, moved[1], atol=1e-12)
        np.testing.assert_allclose(X.T @ slope, 0.3 * less(of_a, of_b)[0], atol=1e-12)
        np.testing.assert_allclose(trans_slope, 0.3 * less(of_a, of_b)[1], atol=1e-12)


def test_is_among_and_drop_idle():
    paths = np.array([[0, 1], [1, 1], [2, 0], [0, 0]], np.uint16)
    assert vertices.is_among(np.array([2, 0]), paths)
    assert not vertices.is_among(np.array([2, 1]), paths)
    mixture, errors = np.array([0.0, 0.6, 0.0, 0.4]), np.arange(4.0)
    assert vertices.drop_idle(paths, mixture, errors, 4) == 2
    assert paths[:2].tolist() == [[1, 1], [0, 0]]
    assert (mixture[:2].tolist(), errors[:2].tolist()) == ([0.6, 0.4], [1.0, 3.0])


def test_two_labelings_are_mixed_by_one_exact_step():
    random = np.random.default_rng(1)
    for _ in range(20):
        X, paths = random.normal(size=(TOKENS, FEATURES)), random.integers(0, LABELS, (2, TOKENS)).astype(np.uint16)
        errors, w = (
            random.normal(size=2),
            (random.normal(size=(FEATURES, LABELS)), random.normal(size=(LABELS, LABELS))),
        )
        features = [joint(X, path.astype(int), False) for path in paths]
        values, mixture = np.array([product(w, each) for each in features]) + errors, np.array([0.3, 0.7])
        best, worst = np.argsort(-values)
        along = less(features[best], features[worst])
        share = min(mixture[worst], (values[best] - values[worst]) / (0.5 * product(along, along)))
        expected = mixture.copy()
        expected[[best, worst]] += (share, -share)
        after = tuple(part - 0.5 * share * d for part, d in zip(w, along, strict=True))
        f, trans, slope, trans_slope = X @ w[0], w[1].copy(), np.zeros((TOKENS, LABELS)), np.zeros((LABELS, LABELS))
        room = np.empty(TOKENS, np.int64)
        sentence = vertices.Moving(X @ X.T, False, 0.5, f, trans, slope, trans_slope)
        vertices.mix(vertices.Mixture(paths, mixture, errors, values), sentence, 0.0, 1, room)
        np.testing.assert_allclose(mixture, expected, atol=1e-12)
        np.testing.assert_allclose(f, X @ after[0], atol=1e-12)
        np.testing.assert_allclose(trans, after[1], atol=1e-12)
        np.testing.assert_allclose(values, [product(after, each) for each in features] + errors, atol=1e-12)


def mixture_of(kept, s, steps):
    """The shares of a sentence's labelings."""
    counts, room_at, path_at, shares, _, paths = kept
    own = paths[path_at[s] : path_at[s] + counts[s] * steps].reshape(-1, steps)
    return {tuple(map(int, path)): shares[room_at[s] + c] for c, path in enumerate(own)}


def mean_of(X, mixture, observed):
    """The mean features of a mixture."""
    parts = [[share * part for part in joint(X, path, observed)] for path, share in mixture.items()]
    return tuple(sum(part) for part in zip(*parts, strict=True))


def small_problem(observed):
    """Rows (also with a constant feature 1), labels, and what kernels call `sentences`."""
    random = np.random.default_rng(3)
    starts = np.concatenate(([0], np.cumsum(LENGTHS)))
    X, y = random.normal(size=(starts[-1], FEATURES)), random.integers(0, LABELS, starts[-1])
    span, column, entry, _ = WAYS["dense"]
    gram_at = np.concatenate(([0], np.cumsum(LENGTHS**2)))
    products = np.empty(gram_at[-1])
    grams = specialised(dual_sentences.grams, span=span, column=column, entry=entry)
    grams((X,), starts, gram_at, 1.0, np.zeros(FEATURES), products)
    wide = np.column_stack((X, np.ones(len(X))))
    return X, wide, Sentences(starts, y, np.array([1.0, 2.0, 0.5]), products, gram_at, observed), random


@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("threshold", [0.0, 0.05])
def test_visits_are_their_formulas(threshold, observed):
    X, wide, sentences, random = small_problem(observed)
    starts, y, weights, products, gram_at, _ = sentences
    visit = specialised(dual_chains.visit, worst_labeling=oracle_of(observed), **access_of("dense", threshold > 0.0))
    for s in range(3):
        mine = wide[starts[s] : starts[s + 1]]
        np.testing.assert_allclose(products[gram_at[s] : gram_at[s + 1]], (mine @ mine.T).ravel(), atol=1e-12)
    kept = risk_dual_chains._true_labelings(y, starts)
    width = LABELS + (LABELS**2 if observed else 0)
    v, tail, gaps = random.normal(size=(FEATURES + 1, width)), random.normal(size=(LABELS, LABELS)), np.zeros(3)
    numbers = (
        np.empty((5, width)),
        np.empty((5, width)),
        *np.empty((2, LABELS, LABELS)),
        np.empty(99),
        np.empty(width),
    )
    room, moving = dual_chains.Room(*numbers), Weights(v[:-1], tail, v[-1])
    every = {n: list(itertools.product(range(LABELS), repeat=n)) for n in (3, 4, 5)}
    for s in (0, 1, 2, 0, 2, 1):
        mine, truth = wide[starts[s] : starts[s + 1]], y[starts[s] : starts[s + 1]]
        steps, curve = len(truth), 0.4 * weights[s]
        before, mixture = (v.copy(), tail.copy()), mixture_of(kept, s, steps)
        visit(np.array([s]), gaps, (X,), sentences, kept, moving, Steps(threshold, 0.4, 1.0), room)
        at = tuple(np.sign(part) * np.maximum(np.abs(part) - threshold, 0.0) for part in before)

        def violation(path, at=at, mine=mine, truth=truth):
            return product(at, joint(mine, path, observed)) + np.sum(np.array(path) != truth)

        first = max(map(violation, every[steps])) - sum(share * violation(path) for path, share in mixture.items())
        assert gaps[s] == pytest.approx(weights[s] * first, abs=1e-10)
        after = mixture_of(kept, s, steps)
        assert sum(after.values()) == pytest.approx(1.0, abs=1e-12)
        along = less(mean_of(mine, after, observed), mean_of(mine, mixture, observed))
        np.testing.assert_allclose(v, before[0] - curve * along[0], atol=1e-10)
        np.testing.assert_allclose(tail, before[1] - curve * along[1], atol=1e-10)
        gain = sum(share * violation(path) for path, share in after.items())
        gain -= sum(share * violation(path) for path, share in mixture.items())
        gain -= 0.5 * curve * product(along, along)
        step = tuple(curve * d for d in along)

        def later(path, mine=mine, step=step, violation=violation):
            return violation(path) - product(step, joint(mine, path, observed))

        left = max(map(later, every[steps])) - sum(share * later(path) for path, share in after.items())
        assert gain > 0.0
        assert left < first
    errors = [
        weights[s] * share * np.sum(np.array(path) != y[starts[s] : starts[s + 1]])
        for s in range(3)
        for path, share in mixture_of(kept, s, LENGTHS[s]).items()
    ]
    assert dual_chains.offset(sentences, kept) == pytest.approx(sum(errors), abs=1e-10)
