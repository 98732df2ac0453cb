"""Run in either tree (`PYTHONPATH`), by its path: fits data sets when told, a JSON line for each, and says how long.

Asked `{"load": NAME, "from": FILE}`, it reads data; asked for a fit, it answers with processor seconds and figures.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from typing import Any

import numpy as np
from in_a_tree import figures, made

import bmrm
from bmrm.data.matrix import Csr

LEAST = 0.1
"""Seconds for which a fit is repeated, so that those of a millisecond are compared by many."""


def main() -> None:
    """Answer until the input ends; what libraries print goes nowhere. Pinned to one core."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sets: dict[str, Any] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        if "load" in asked:
            sets[asked["load"]] = loaded(asked["from"])
            answer = {}
        else:
            answer = fitted(sets[asked["data"]], asked)
        print(json.dumps(answer), file=answers, flush=True)


def loaded(path: str) -> Any:
    """A data set as `speed.saved` writes it."""
    with np.load(path) as file:
        parts = dict(file)
    X = (
        parts["X"]
        if "X" in parts
        else Csr(parts["indptr"], parts["indices"], parts.get("values"), int(parts["columns"]))
    )
    return bmrm.Dataset.from_arrays(X, parts["y"], groups=parts.get("groups"))


def fitted(data: Any, fit: dict[str, Any]) -> dict[str, Any]:
    """The solution's figures, and the processor seconds of building the risk and solving, the mean of repetitions."""
    plug_ins = made(fit)
    times, begin, now = 0, time.process_time(), 0.0
    while now < LEAST:
        risk = bmrm.LinearRisk(data, plug_ins["loss"], threads=1)
        solution = plug_ins["solver"].minimize(risk, plug_ins["regularizer"])
        times, now = times + 1, time.process_time() - begin
    return {"seconds": now / times, **figures(solution)}


if __name__ == "__main__":
    main()
