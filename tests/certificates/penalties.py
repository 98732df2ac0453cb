"""Regularizers of blocks: drawn at random, and Omega of a table of weights by its formula, row by row."""

import dataclasses
import math

import numpy as np

KINDS = ("group_l2", "sparse_group", "row_group_l2", "box", "none")


def draw(rng, features):
    """Name and options of a regularizer for so many features, lambda from 1e-7 to 10."""
    name = str(rng.choice(KINDS))
    if name == "none":
        return name, {}
    sizes = (-7.0, 1.0) if rng.random() < 0.3 else (-4.0, 0.0)
    options = {"lambda": float(10.0 ** rng.uniform(*sizes))}
    if name in ("group_l2", "sparse_group") and rng.random() < 0.8:
        options |= _groups(rng, features)
    if name == "sparse_group":
        options["l1_ratio"] = float(rng.choice([0.5, 0.05, 0.95, rng.uniform(0.01, 0.99)]))
    if name == "box":
        options |= _box(rng, features)
    return name, options


def _groups(rng, features):
    owner = rng.integers(-1, max(1, features // 2), size=features)
    groups = [np.flatnonzero(owner == k).tolist() for k in range(owner.max() + 1)]
    groups = tuple(tuple(group) for group in groups if group)
    if not groups:
        return {}
    weights = tuple(np.round(rng.exponential(size=len(groups)), 3).tolist())
    return {"groups": groups, "weights": weights} if rng.random() < 0.3 and min(weights) > 0.0 else {"groups": groups}


def _box(rng, features):
    sides = [{}, {}]
    for j in range(features):
        low, high = np.sort(np.round(rng.normal(size=2), 2) * rng.choice([1.0, 1e-3, 30.0])).tolist()
        if rng.random() < 0.3:
            low = high = 0.0
        sides[0] |= {j: low} if rng.random() < 0.5 else {}
        sides[1] |= {j: high} if rng.random() < 0.5 else {}
    return {"norm": str(rng.choice(["l2", "l1"])), "lower": sides[0], "upper": sides[1]}


def omega(regularizer, table, factor, others=()):
    """Omega of the weights (features, scores) of scaled features, and of `others`, those of a constant feature.

    `factor` is that of each feature: bounds are those of the weights times it, the weights of raw features.
    """
    others = np.ravel(others)
    if regularizer.name == "none":
        return 0.0
    lam = regularizer.lam
    rest = [table[j] for j in range(len(table))]
    if regularizer.name == "box":
        if any(np.any(_outside(regularizer, j, table[j] * factor[j])) for j in range(len(table))):
            return math.inf
        every = np.concatenate([table.ravel(), others])
        size = math.fsum(np.abs(every)) if regularizer.norm == "l1" else 0.5 * math.fsum(every * every)
        return lam * size
    groups = getattr(regularizer, "groups", None) or ()
    weights = getattr(regularizer, "weights", None) or [math.sqrt(len(group)) for group in groups]
    ratio = getattr(regularizer, "l1_ratio", 0.0)
    parts = [weight * _length(table[list(group)]) for group, weight in zip(groups, weights)]
    taken = {j for group in groups for j in group}
    parts += [_length(row) for j, row in enumerate(rest) if j not in taken]
    parts.append(_length(others))
    total = (1.0 - ratio) * math.fsum(parts)
    return lam * (total + ratio * math.fsum(np.abs(np.concatenate([table.ravel(), others]))))


def _outside(box, j, raw):
    """Whether a weight is beyond a bound by more than the rounding of its unit."""
    lower, upper = box.lower.get(j), box.upper.get(j)
    off = 8.0 * np.finfo(float).eps
    below = lower is not None and raw < lower - off * abs(lower)
    return below | (upper is not None and raw > upper + off * abs(upper))


def _length(part):
    largest = float(np.abs(part).max(initial=0.0))
    return 0.0 if largest == 0.0 else largest * math.sqrt(math.fsum(np.square(part / largest).ravel()))


def in_plain_form(regularizer, factor, constant=False):
    """The same for features that have been multiplied by `factor` beforehand, and maybe a constant one after them."""
    if getattr(regularizer, "center", None) is not None:
        center = np.append(np.asarray(regularizer.center) / factor, [0.0] * constant)
        return dataclasses.replace(regularizer, center=tuple(center.tolist()))
    if regularizer.name != "box":
        return regularizer
    sides = {
        side: {j: None if bound is None else bound / factor[j] for j, bound in getattr(regularizer, side).items()}
        for side in ("lower", "upper")
    }
    return dataclasses.replace(regularizer, **sides)
