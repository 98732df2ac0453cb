"""Run under mpirun: whole-sample losses by gathered scores and by sorted ones; rank 0 prints how far they differ."""

import json
import sys

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.mpi.launch import open_group
from bmrm.mpi.leading import lead
from bmrm.mpi.shared import shared_risk
from bmrm.problem import BmrmError, Scored, ability
from bmrm.problem.abilities import Rounding
from bmrm.regularizers.l2 import L2
from bmrm.solvers import SOLVERS

LOSSES_TRIED = {
    "roc_area": {},
    "partial_roc_area": {"max_fpr": 0.3},
    "f_beta": {"beta": 0.5},
}
ROWS = 400


def all_rows(loss, weighted):
    """The same on every rank; features are small whole numbers, so that there are ties and distances of 1."""
    random = np.random.default_rng(3)
    y = np.where(random.random(ROWS) < 0.3, 1.0, -1.0)
    X = random.integers(-2, 3, size=(ROWS, 5)).astype(np.float64)
    X[:, 0] += y == 1.0
    weights = random.choice([0.0, 0.5, 1.0, 3.0], ROWS) if weighted and loss != "f_beta" else None
    offset = random.normal(size=ROWS) if weighted else None
    return Dataset.from_arrays(X, y, weights=weights, offset=offset)


def owners(deal, y, ranks):
    """The rank of each row."""
    if deal == "even":
        return np.arange(ROWS) * ranks // ROWS
    if deal == "classes":  # the first rank has one class only, and others share the other one
        return np.where(y > 0.0, 0, np.arange(ROWS) % max(1, ranks - 1) + (ranks > 1))
    return np.full(ROWS, ranks - 1)  # all on the last rank


def share(data, deal, group):
    return data.select(np.flatnonzero(owners(deal, np.asarray(data.targets.y), group.size) == group.rank))


def points(dim):
    """Weights: 0, where all scores are equal; dyadic ones, where sums are exact; others."""
    random = np.random.default_rng(5)
    return [np.zeros(dim), np.eye(dim)[0], 0.25 * random.integers(-4, 5, dim), random.normal(size=dim)]


def seen(risk):
    """What a solver may see of a risk, and how large it takes rounding to be."""
    found, roundings = [], []
    scored = ability(risk, Scored)
    for w in points(risk.dim):
        value, slope = risk.value_and_subgradient(w)
        f, step = scored.map.matvec(w), scored.map.matvec(np.ones(risk.dim))
        values, derivatives = scored.phi.along(f, step)(np.array([0.0, 0.3, 1.0]))
        again, slopes = scored.phi.value_and_slope(f)
        rounding = ability(risk, Rounding).at(w, None, 1.0)
        found += [[value, again], slope, values, derivatives, scored.phi.collect(slopes)]
        roundings.append([rounding.terms, rounding.length, *rounding.sizes])
    found.append([scored.phi.facts.structured_max])
    return [np.asarray(each, np.float64).tolist() for each in found], roundings


def solved(risk):
    found = SOLVERS.make("auto", {"tolerance": 1e-7}).minimize(risk, L2(0.01))
    return [found.objective, found.lower_bound, found.status.name]


def refused(name, data, group):
    """What is said of rows of one class, by either way."""
    positive = data.select(np.flatnonzero(np.asarray(data.targets.y) > 0.0))
    for gathered in (ROWS, 0):
        try:
            shared_risk(positive, LOSSES.make(name, LOSSES_TRIED[name]), group, gathered=gathered)
        except BmrmError as error:
            yield str(error)


def main(arguments):
    """How rows are dealt out; for `seen` what risks say, for `solved` what a run finds, else what is refused."""
    deal, asked = arguments
    group, answers = open_group(), {}
    for name, options in LOSSES_TRIED.items():
        for weighted in (False, True):
            data = share(all_rows(name, weighted), deal, group)
            if asked == "refused":
                answers[f"{name} {weighted}"] = list(refused(name, data, group))
                continue
            for gathered in (ROWS, 0):
                risk = shared_risk(data, LOSSES.make(name, options), group, gathered=gathered)
                answers[f"{name} {weighted} {gathered}"] = lead(risk, group, {"seen": seen, "solved": solved}[asked])
    if group.rank == 0:
        print(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1:])
