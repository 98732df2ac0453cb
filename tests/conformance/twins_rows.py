"""Sums over rows once more, from their formulas, row by row: the losses of one or several scores."""

import math

import numpy as np


def rows(formula):
    """The sum of a formula for one row; targets and scores are plain numbers, lists or sets."""

    def total(loss, y, f):
        return math.fsum(formula(loss, target, score) for target, score in zip(y, f, strict=True))

    return total


def exp(x):
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def log_cosh(r):
    return abs(r) + math.log1p(math.exp(-2.0 * abs(r))) - math.log(2.0)


def huber(r, delta):
    return 0.5 * r * r if abs(r) <= delta else delta * (abs(r) - 0.5 * delta)


def huber_hinge(loss, y, f):
    z, h = y * f, loss.h
    if z > 1.0 + h:
        return 0.0
    return (1.0 + h - z) ** 2 / (4.0 * h) if z >= 1.0 - h else 1.0 - z


def tweedie(loss, y, f):
    p = loss.power
    fall = y * exp((1.0 - p) * f) / (p - 1.0) if y else 0.0
    return exp((2.0 - p) * f) / (2.0 - p) + fall


def cost(loss, y, k):
    return float(k != y) if loss.cost is None else loss.cost[y][k]


def violation(loss, delta, excess):
    """Delta^beta (margin + score of a mistake - score of the truth), of a loss with `margin` and `beta`."""
    return delta**loss.beta * ((1.0 if loss.margin == "one" else delta) + excess)


def scaled_multiclass_hinge(loss, y, f):
    return max(0.0, *(violation(loss, cost(loss, y, k), f[k] - f[y]) for k in range(len(f)) if k != y))


def multivariate_least_squares(loss, y, f):
    miss = [a - b for a, b in zip(f, y, strict=True)]
    M = np.eye(len(f)).tolist() if loss.M is None else loss.M
    return 0.5 * math.fsum(M[i][j] * miss[i] * miss[j] for i in range(len(f)) for j in range(len(f)))


def multilabel_hinge(loss, y, f):
    pairs = [max(0.0, 1.0 + f[k] - f[j]) for j in y for k in range(len(f)) if k not in y]
    if not pairs:
        return 0.0
    return math.fsum(pairs) / len(pairs) if loss.averaged else max(pairs)


def path(loss, name):
    """The names from a node up to its root."""
    above = {child: parent for child, parent in loss.edges}
    found = [name]
    while found[-1] in above:
        found.append(above[found[-1]])
    return found


def classes(loss):
    names = sorted({name for edge in loss.edges for name in edge})
    inner = {parent for _, parent in loss.edges}
    return names, [name for name in names if loss.candidates == "nodes" or name not in inner]


def class_scores(loss, f):
    names, candidates = classes(loss)
    score = dict(zip(names, f, strict=True))
    return {name: math.fsum(score[node] for node in path(loss, name)) for name in candidates}


def node_cost(loss, y, name):
    """Of the label `name` where `y` is true: edges between them, or what the user says."""
    if loss.cost is None:
        return float(len(set(path(loss, y)) ^ set(path(loss, name))))
    _, candidates = classes(loss)
    return loss.cost[candidates.index(y)][candidates.index(name)]


def ontology_hinge(loss, y, f):
    scores = class_scores(loss, f)
    others = [name for name in scores if name != y]
    return max(0.0, *(violation(loss, node_cost(loss, y, name), scores[name] - scores[y]) for name in others))


def ontology_logistic(loss, y, f):
    scores = class_scores(loss, f)
    top = max(scores.values())
    return math.log(math.fsum(math.exp(score - top) for score in scores.values())) + top - scores[y]


TWINS = {
    "perceptron": rows(lambda loss, y, f: max(0.0, -y * f)),
    "squared_perceptron": rows(lambda loss, y, f: 0.5 * max(0.0, -y * f) ** 2),
    "huber_hinge": rows(huber_hinge),
    "modified_huber": rows(lambda loss, y, f: max(0.0, 1.0 - y * f) ** 2 if y * f >= -1.0 else -4.0 * y * f),
    "exponential": rows(lambda loss, y, f: exp(-y * f)),
    "cost_sensitive_hinge": rows(
        lambda loss, y, f: (loss.cost_positive if y > 0 else loss.cost_negative) * max(0.0, 1.0 - y * f)
    ),
    "novelty": rows(lambda loss, y, f: max(0.0, loss.rho - f)),
    "least_absolute_deviation": rows(lambda loss, y, f: abs(f - y)),
    "squared_epsilon_insensitive": rows(lambda loss, y, f: 0.5 * max(0.0, abs(f - y) - loss.epsilon) ** 2),
    "huber": rows(lambda loss, y, f: huber(f - y, loss.delta)),
    "log_cosh": rows(lambda loss, y, f: log_cosh(f - y)),
    "expectile": rows(lambda loss, y, f: (loss.tau if f <= y else 1.0 - loss.tau) * (f - y) ** 2),
    "poisson": rows(lambda loss, y, f: exp(f) - y * f),
    "gamma": rows(lambda loss, y, f: f + y * exp(-f)),
    "tweedie": rows(tweedie),
    "scaled_multiclass_hinge": rows(scaled_multiclass_hinge),
    "weston_watkins": rows(lambda loss, y, f: math.fsum(max(0.0, 1.0 + f[k] - f[y]) for k in range(len(f)) if k != y)),
    "multivariate_least_squares": rows(multivariate_least_squares),
    "multilabel_hinge": rows(multilabel_hinge),
    "ontology_hinge": rows(ontology_hinge),
    "ontology_logistic": rows(ontology_logistic),
}
