"""Peak memory of a training against the formula: data + 2 (planes kept) dim 8 bytes + 200 MB."""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.harness import Table

PROBE = """
import json, resource, sys
from bmrm.data.reading import read
from bmrm.losses import LOSSES
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS
import bmrm.solvers.plane_model as plane_model

kept = [0]
solve = plane_model.PlaneModel.solve
def counted(self, accuracy):
    kept[0] = max(kept[0], len(self.planes.ids))
    return solve(self, accuracy)
plane_model.PlaneModel.solve = counted
data = read(sys.argv[1])
bytes_of_data = sum(a.nbytes for a in (data.X.indptr, data.X.indices, data.X.values, data.targets.y) if a is not None)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
risk = LinearRisk(data, LOSSES.make("hinge"))
solution = SOLVERS.make(sys.argv[2], {"tolerance": 1e-3}).minimize(risk, L2(float(sys.argv[3])))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps([bytes_of_data, kept[0], risk.dim, before, peak]))
"""
SOURCE = "synthetic:sparse_binary?rows=20000&features=47000"


def measure() -> Table:
    """On a generated set of many features, where planes dominate."""
    rows = []
    for solver, lam in (("bundle", "1e-4"), ("line_search_bundle", "1e-4"), ("line_search_bundle", "1e-5")):
        command = [sys.executable, "-c", PROBE, SOURCE, solver, lam]
        answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        data, planes, dim, before, peak = answer
        allowed = data + 2 * planes * dim * 8 + 200e6
        rows.append((solver, lam, planes, *(f"{b / 1e6:.0f}" for b in (data, before, peak, allowed))))
    return Table(
        "Peak memory",
        f"Hinge to 1e-3 on `{SOURCE}`; megabytes. `before` is the peak after generating the data, interpreter and"
        " libraries included.",
        ("solver", "lambda", "planes kept", "data", "before", "peak", "data + 2 planes dim 8 + 200 MB"),
        tuple(rows),
    )
