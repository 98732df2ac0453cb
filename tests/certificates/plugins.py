"""Random instances of every loss, regularizer and solver."""

import copy

import numpy as np

from bmrm.losses import LOSSES
from bmrm.registry import option_name
from bmrm.regularizers import REGULARIZERS
from bmrm.solvers import SOLVERS

TOLERANCES = (1e-1, 1e-3, 1e-3, 1e-4, 1e-6, 1e-6, 1e-9, 1e-9, 1e-12)
SLOW = {"pegasos": 60, "probe": 60, "proximal_gradient": 400, "lbfgs": 400, "nonlinear_cg": 400, "bundle": 250}
"""Iterations at most, of solvers that would take many small ones."""


def _tree(rng):
    """A few trees, shallow and deep."""
    trees = [
        (("a", "root"), ("b", "root"), ("c", "a"), ("d", "a"), ("e", "d"), ("f", "b"), ("g", "e")),
        (("a", "root"), ("b", "root")),
        (("a", "x"), ("b", "x"), ("c", "y"), ("d", "y")),
        (("a", "b"), ("b", "c"), ("c", "d"), ("e", "d")),
    ]
    return trees[rng.integers(len(trees))]


def _cost(rng, classes=3):
    table = rng.integers(0, 4, size=(classes, classes)) * rng.choice([1.0, 0.37])
    np.fill_diagonal(table, 0.0)
    return tuple(tuple(row) for row in table.tolist())


def _psd(rng):
    root = rng.normal(size=(3, int(rng.integers(1, 4))))
    return tuple(tuple(row) for row in (root @ root.T).tolist())


def _joint(rng, entry, drawn):
    choices = next(field.metadata["range"].choices for field in entry.parameters if field.name == "joint")
    drawn["joint"] = str(rng.choice(["ranks", *choices]))
    if any(field.name == "decay" for field in entry.parameters):
        drawn["decay"] = float(rng.uniform(0.1, 2.0)) if drawn["joint"] == "ranks" and rng.random() < 0.5 else None


def _rescaling(rng, entry, drawn):
    """Margins and powers of costs; for a tree also costs of its candidates, in place of distances."""
    drawn["margin"], drawn["beta"] = str(rng.choice(["one", "cost"])), float(rng.choice([0.0, 0.5, 1.0, 2.0]))
    if "edges" in drawn and rng.random() < 0.5:
        drawn["cost"] = _cost(rng, int(np.count_nonzero(entry.cls(**drawn).candidate)))


def _log(low, high):
    return lambda rng: float(10.0 ** rng.uniform(low, high))


def _one(*values):
    return lambda rng: values[rng.integers(len(values))]


LATER = {"absolute_tolerance", "search", "minimum", "trace", "binitmean", "margin", "modelmin", "modelmax"}
"""Options of solvers that came when the problems of `FOUND` had been found: drawn apart, so that these stay the same.
`irls` had some of them before."""


def _aside(rng):
    """Random numbers that belong to the state of `rng`, which stays as it is."""
    return np.random.default_rng(copy.deepcopy(rng).integers(2**63, size=4))


OPTIONS = {
    "transitions": _one("constant", "constant", "observed"),
    "cost_positive": _log(-2, 2),
    "cost_negative": _log(-2, 2),
    "epsilon": _log(-3, 0.5),
    "half_life": lambda rng: float(rng.uniform(1.1, 6.0)),
    "neutral": _one(0.0, 1.0, 2.0),
    "tau": lambda rng: float(rng.uniform(0.02, 0.98)),
    "beta": _log(-1, 1),
    "delta": _log(-3, 1),
    "h": _log(-3, 1),
    "truncation": _one(10, 3, 1, None),
    "rho": _log(-2, 2),
    "max_fpr": lambda rng: float(rng.uniform(0.05, 1.0)),
    "power": lambda rng: float(rng.uniform(1.05, 1.95)),
    "k": lambda rng: int(rng.integers(1, 7)),
    "averaged": _one(False, True),
    "average": _one("pairs", "queries"),
    "cuts": _one("all", "immediate"),
    "candidates": _one("leaves", "nodes"),
    "cost": _cost,
    "M": _psd,
}
"""How each option of a loss is drawn."""
ALWAYS = {"edges": _tree, "k": OPTIONS["k"]}


def draw_loss(rng):
    """A registered loss; options at their default or at random."""
    entries = LOSSES.all()
    entry = entries[rng.integers(len(entries))]
    drawn = {}
    names = [field.name for field in entry.parameters]
    apart = ("margin", "beta", *["cost"] * ("edges" in names)) if "margin" in names else ()
    for name in names:
        if name in apart:
            continue
        if name in ALWAYS:
            drawn[name] = ALWAYS[name](rng)
        elif name in OPTIONS and rng.random() < 0.5:
            drawn[name] = OPTIONS[name](rng)
        else:
            assert name in OPTIONS or name in ("joint", "decay"), f"{entry.name}: say how to draw {name}"
    if "joint" in names:
        _joint(rng, entry, drawn)
    if apart and rng.random() > 0.3:  # last, so that the other options of each seed are what they were
        _rescaling(rng, entry, drawn)
    return entry.cls(**drawn)


FIRST = ("elastic_net", "l1", "l2")
"""Regularizers of the first problems; the others are drawn apart (`penalties`), so that these stay the same."""


def draw_regularizer(rng):
    """A regularizer of l1 and l2, lambda from 1e-9 to 1e2."""
    entries = [REGULARIZERS.get(name) for name in FIRST]
    entry = entries[rng.integers(len(entries))]
    drawn = {"lam": float(10.0 ** (rng.uniform(-9.0, 2.0) if rng.random() < 0.3 else rng.uniform(-5.0, 0.0)))}
    for field in entry.parameters:
        if field.name == "l1_ratio":
            drawn["l1_ratio"] = float(rng.choice([0.5, 0.05, 0.95, rng.uniform(0.0, 1.0)]))
        elif field.name == "engine" and rng.random() < 0.08:
            known = [name for name in field.metadata["range"].choices if name != "line_search"]
            drawn["engine"] = str(rng.choice(known))
    if entry.name == "l2" and _aside(rng).random() < 0.04:
        drawn["engine"] = "line_search"
    return entry.cls(**drawn)


def unfit(entry, loss, regularizer):
    """Whether a solver's facts say that it refuses such a loss or regularizer."""
    kinds = {"kinked loss": not loss.smooth}
    if regularizer.name in FIRST:
        kinds |= {"smooth regularizer": regularizer.l1 == 0.0, "kinked regularizer": regularizer.l1 > 0.0}
        kinds["not strongly convex"] = regularizer.l2 == 0.0
    else:
        kinds |= dict.fromkeys(("smooth regularizer", "kinked regularizer", "not strongly convex"), True)
    return any(kinds.get(kind, False) for kind in entry.facts.get("refuses", ()))


def _another(rng, fields):
    """One of the options at another value, with what it needs beside it; {} for those that are tables."""
    field = fields[rng.integers(len(fields))]
    others = [*(getattr(field.metadata["range"], "choices", None) or ()), field.metadata["example"]]
    if isinstance(field.metadata["example"], dict):
        return {}
    return field.metadata["beside"] | {option_name(field.name): others[rng.integers(len(others))]}


def draw_solver(rng, loss, regularizer, name=None):
    """Name and options of a registered solver that takes such problems; one in ten times, of any.

    One in five times an option beside the tolerance is not the default.
    """
    entries = [entry for entry in SOLVERS.all() if name in (None, entry.name)]
    if rng.random() < 0.9:
        entries = [entry for entry in entries if not unfit(entry, loss, regularizer)]
    entry = entries[rng.integers(len(entries))]
    options = {"tolerance": TOLERANCES[rng.integers(len(TOLERANCES))]}
    options["max_iterations"] = SLOW.get(entry.name, 600)
    own = [field for field in entry.parameters if field.name not in ("tolerance", "max_iterations", "time_limit")]
    old = [field for field in own if field.name not in LATER or (entry.name == "irls" and "tol" not in field.name)]
    later, aside = [field for field in own if field not in old], _aside(rng)
    if old and rng.random() < 0.2:
        options |= _another(rng, old)
    elif aside.random() < 0.1:
        options |= _another(aside, later)
    if rng.random() < 0.05:
        options["max_iterations"] = int(rng.integers(1, 6))
    return entry.name, options
