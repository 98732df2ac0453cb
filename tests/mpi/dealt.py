"""Run under mpirun: rows dealt out, gathered, sampled, and `auto` on rank 0 with all of them.

Rank 0 prints one JSON line.
"""

import gc
import json
import sys

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.mpi.dealing import deal_out, gather_rows
from bmrm.mpi.launch import open_group
from bmrm.mpi.leading import lead
from bmrm.mpi.shared import shared_risk
from bmrm.problem import Scored, ability
from bmrm.problem.abilities import Gathered, RowSample, Traffic
from bmrm.regularizers.l2 import L2
from bmrm.risk.intercept import FreeIntercept
from bmrm.solvers import SOLVERS

ROWS = 301
CASES = {"hinge": False, "logistic": True, "softmax": False, "roc_area": False, "f_beta": False, "chain_crf": False}


def rows_of(loss):
    """The same on every rank; sorted by the first feature, which is the number of the row."""
    random = np.random.default_rng(7)
    X = np.column_stack((np.linspace(-1.0, 1.0, ROWS), random.normal(size=(ROWS, 5))))
    f = X @ random.normal(size=6) + 0.3 * random.normal(size=ROWS)
    y = np.digitize(f, [-0.7, 0.7]) if loss in ("softmax", "chain_crf") else (f > 0.2).astype(int)
    return Dataset.from_arrays(X, y, groups=np.arange(ROWS) // 7 if loss == "chain_crf" else None)


def mine_of(whole, group):
    """All rows are on the first two of three ranks, in two unequal parts of whole groups."""
    edge = 210
    first, last = ((0, edge), (edge, ROWS))[group.rank] if group.rank < 2 else (0, 0)
    if group.size == 1:
        first, last = 0, ROWS
    return whole.part(first, last)


def dealing(group):
    """What each rank has after dealing, as the places of its rows in the whole."""
    whole = rows_of("chain_crf")
    dealt = [deal_out(mine_of(whole, group), group, seed) for seed in (1, 1, 2)]
    places = [np.rint((part.X[:, 0] + 1.0) / 2.0 * (ROWS - 1)).astype(int).tolist() for part in dealt]
    gathered = gather_rows(dealt[0], group)
    said = group.gather(places)
    if said is None or gathered is None:
        return None
    return {"places": said, "gathered": gathered.X[:, 0].tolist(), "groups": gathered.targets.groups.tolist()}


def about(sample, w):
    """A sample, and a sample of it: values, second derivatives, and what solvers find."""
    within = ability(sample, RowSample).sample(15, 6)
    scored = ability(sample, Scored)
    curve = scored.phi.along(scored.map.matvec(w), scored.map.matvec(w[::-1] - w))
    free = isinstance(sample, FreeIntercept)
    return {
        "values": [risk.value_and_subgradient(w)[0] for risk in (sample, within, sample)],
        "slopes": [risk.value_and_subgradient(w)[1].tolist() for risk in (within, sample)],
        "along": [part.tolist() for part in curve(np.array([0.3, 0.9]))],
        "gram": []
        if free or not scored.phi.facts.smooth
        else scored.map.gram(scored.phi.hessian_diagonal(scored.map.matvec(w))).tolist(),
        "bundle": SOLVERS.make("line_search_bundle", {"tolerance": 1e-9}).minimize(sample, L2(0.01)).objective,
        "auto": SOLVERS.make("auto", {"tolerance": 1e-9}).minimize(within, L2(0.01)).objective,
    }


def kept(risk):
    """How many objects the ranks keep, once something else was asked than what dropped some."""
    gc.collect()
    if not hasattr(risk, "ranks"):
        return 0
    risk.value_and_subgradient(np.zeros(risk.dim))
    return risk.ranks.local.held


def on_lead(free):
    def lead_with(risk):
        whole = FreeIntercept(risk) if free else risk
        found = SOLVERS.make("auto", {"tolerance": 1e-7}).minimize(whole, L2(0.01))
        drawn, gathered = ability(whole, RowSample), ability(whole, Gathered)
        w, before = np.linspace(-1.0, 1.0, risk.dim), kept(risk)
        values = [whole.value_and_subgradient(w)[0]]
        if gathered is not None:
            values.append(gathered.gathered().value_and_subgradient(w)[0])
        return {
            "objective": found.objective,
            "bound": found.lower_bound,
            "status": found.status.name,
            "solver": found.solver,
            "values": values,
            "sample": None if drawn is None else about(drawn.sample(40, 5), w),
            "kept": None if drawn is None else kept(risk) - before,
            "traffic": ability(whole, Traffic) is not None,
        }

    return lead_with


def main(_):
    group = open_group()
    answers = {"dealing": dealing(group)}
    for loss, free in CASES.items():
        mine = mine_of(rows_of(loss), group)
        for shared in (True, False):
            risk = shared_risk(mine, LOSSES.make(loss), group, share_rows=shared)
            answers[f"{loss} {shared}"] = lead(risk, group, on_lead(free))
    if group.rank == 0:
        print(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1:])
