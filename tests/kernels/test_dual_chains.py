"""Kernels of dual ascent over sentences against plain NumPy: features of labelings as vectors, their mixtures."""

import itertools
from functools import cache

import numpy as np
import pytest

from bmrm.kernels.dual import groups as dual_groups
from bmrm.kernels.dual import mixtures
from bmrm.kernels.dual.groups import Grouped, Steps, Weights
from bmrm.kernels.jit import specialised
from bmrm.losses._core.chain import Chain
from bmrm.risk.dual.groups import access_of, ends
from bmrm.risk.dual.stored import READ

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


def numbers_of(X, w):
    """The transitions, then the scores of the rows, flat."""
    return np.concatenate((w[1].ravel(), (X @ w[0]).ravel()))


def parts_of(numbers, steps):
    """The scores of the rows and the transitions, views."""
    return numbers[LABELS**2 :].reshape(steps, -1), numbers[: LABELS**2].reshape(LABELS, LABELS)


def places_of(path, numbers):
    """Where the terms of a labeling's score stand."""
    at, given = np.empty(4 * len(path), np.int64), np.empty((len(path), 0), np.int64)
    return at[: Chain.terms(path.astype(np.int64), *parts_of(numbers, len(path)), given, at)]


def moving(X, numbers, curve):
    """A group of which shares move, its slopes 0."""
    width = parts_of(numbers, len(X))[0].shape[1]
    at = places_of(np.zeros(len(X), np.uint16), numbers)
    row = np.where(at < LABELS**2, -1, (at - LABELS**2) // width)
    first = np.where(row >= 0, LABELS**2 + row * width, -width)
    difference = np.empty((5, row.size), np.int64)
    return mixtures.Moving(X @ X.T, width, curve, numbers, np.zeros_like(numbers), first, row, difference)


@pytest.mark.parametrize("observed", [False, True])
def test_scores_and_distances_of_labelings(observed):
    random = np.random.default_rng(0)
    for _ in range(20):
        X = random.normal(size=(TOKENS, FEATURES))
        a, b = random.integers(0, LABELS, (2, TOKENS)).astype(np.uint16)
        w = tuple(random.normal(size=part.shape) for part in joint(X, a.astype(int), observed))
        of_a, of_b = joint(X, a.astype(int), observed), joint(X, b.astype(int), observed)
        numbers = numbers_of(X, w)
        at_a, at_b, group = places_of(a, numbers), places_of(b, numbers), moving(X, numbers, 0.7)
        score = Chain.score(a, *parts_of(numbers, TOKENS), np.empty((TOKENS, 0), np.int64))
        assert [score, numbers[at_a].sum()] == pytest.approx([product(w, of_a)] * 2, abs=1e-12)
        compared = mixtures.compare(group, at_a, at_b, at_a.size)
        found = mixtures.squared_distance(group, *compared)
        assert found == pytest.approx(product(less(of_a, of_b), less(of_a, of_b)), abs=1e-12)
        mixtures.move(group, *compared, 0.3)
        moved = tuple(part - 0.7 * 0.3 * change for part, change in zip(w, less(of_a, of_b), strict=True))
        np.testing.assert_allclose(numbers, numbers_of(X, moved), atol=1e-12)
        slope, trans_slope = parts_of(group.slopes, TOKENS)
        np.testing.assert_allclose(X.T @ slope, 0.3 * less(of_a, of_b)[0], atol=1e-12)
        np.testing.assert_allclose(trans_slope, 0.3 * less(of_a, of_b)[1], atol=1e-12)


def test_is_among_and_drop_idle():
    paths = np.array([[0, 1], [1, 1], [2, 0], [0, 0]], np.uint16)
    assert mixtures.is_among(np.array([2, 0]), paths)
    assert not mixtures.is_among(np.array([2, 1]), paths)
    mixture, errors = np.array([0.0, 0.6, 0.0, 0.4]), np.arange(4.0)
    assert mixtures.drop_idle(paths, mixture, errors, 4) == 2
    assert paths[:2].tolist() == [[1, 1], [0, 0]]
    assert (mixture[:2].tolist(), errors[:2].tolist()) == ([0.6, 0.4], [1.0, 3.0])


@cache
def mix_of_chains():
    """`mix` for chains."""
    values_of = specialised(mixtures.values_of, score=Chain.score)
    return specialised(mixtures.mix, terms=Chain.terms, values_of=values_of)


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
        numbers = numbers_of(X, w)
        places, mix = np.empty((2, 4 * TOKENS), np.int64), mix_of_chains()
        here, given = parts_of(numbers, TOKENS), np.empty((TOKENS, 0), np.int64)
        kept, group = mixtures.Mixture(paths, mixture, errors, values), moving(X, numbers, 0.5)
        mix(kept, group, *here, given, 0.0, 1, places, group.row.size)
        np.testing.assert_allclose(mixture, expected, atol=1e-12)
        np.testing.assert_allclose(numbers, numbers_of(X, after), atol=1e-12)
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


def small_problem():
    """Rows (also with a constant feature 1), labels, and what kernels call `Grouped`."""
    random = np.random.default_rng(3)
    starts = np.concatenate(([0], np.cumsum(LENGTHS)))
    X, y = random.normal(size=(starts[-1], FEATURES)), random.integers(0, LABELS, starts[-1])
    gram_at = np.concatenate(([0], np.cumsum(LENGTHS**2)))
    products = np.empty(gram_at[-1])
    grams = specialised(dual_groups.grams, **READ["dense"])
    grams((X,), starts, gram_at, 1.0, np.zeros(FEATURES), products)
    wide, given = np.column_stack((X, np.ones(len(X)))), np.empty((len(X), 0), np.int64)
    return X, wide, Grouped(starts, y, np.array([1.0, 2.0, 0.5]), products, gram_at, given), random


@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("threshold", [0.0, 0.05])
def test_visits_are_their_formulas(threshold, observed):
    X, wide, sentences, random = small_problem()
    starts, y, weights, products, gram_at, _ = sentences
    structure = {name: getattr(Chain, name) for name in ("worst", "terms", "score")}
    structure |= {"values_of": specialised(mixtures.values_of, score=Chain.score), "mix": mix_of_chains()}
    visit = specialised(mixtures.visit, **structure, **access_of("dense", threshold > 0.0))
    for s in range(3):
        mine = wide[starts[s] : starts[s + 1]]
        np.testing.assert_allclose(products[gram_at[s] : gram_at[s + 1]], (mine @ mine.T).ravel(), atol=1e-12)
    most = 4 * LENGTHS + 32
    room_at, path_at = ends(most), ends(most * LENGTHS)
    shares, errors, paths = np.zeros(room_at[-1]), np.zeros(room_at[-1]), np.zeros(path_at[-1], np.uint16)
    shares[room_at[:-1]] = 1.0
    for s in range(3):
        paths[path_at[s] : path_at[s] + LENGTHS[s]] = y[starts[s] : starts[s + 1]]
    kept = mixtures.Mixtures(np.ones(3, np.int64), room_at, path_at, shares, errors, paths)
    width = LABELS + (LABELS**2 if observed else 0)
    v, tail, gaps = random.normal(size=(FEATURES + 1, width)), random.normal(size=(LABELS, LABELS)), np.zeros(3)
    numbers = np.empty((2, 5 * width + LABELS**2))
    others = np.empty(99), np.empty(width), np.empty((9, 20), np.int64), np.empty(5, np.int64)
    room, moving_weights = mixtures.Room(*numbers, *others), Weights(v[:-1], tail, v[-1])
    every = {n: list(itertools.product(range(LABELS), repeat=n)) for n in (3, 4, 5)}
    for s in (0, 1, 2, 0, 2, 1):
        mine, truth = wide[starts[s] : starts[s + 1]], y[starts[s] : starts[s + 1]]
        steps, curve = len(truth), 0.4 * weights[s]
        before, mixture = (v.copy(), tail.copy()), mixture_of(kept, s, steps)
        visit(np.array([s]), gaps, (X,), sentences, kept, moving_weights, Steps(threshold, 0.4, 1.0), room)
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
    assert mixtures.offset(sentences, kept) == pytest.approx(sum(errors), abs=1e-10)
