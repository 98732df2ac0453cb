"""Time of one evaluation of the losses of sequences on CoNLL-2000, against CRFsuite's passes."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import SHARED, Table, Times, alternated
from bmrm.data.dataset import Dataset
from bmrm.data.readers.conll import read_conll
from bmrm.data.vocabulary import Vocabulary
from bmrm.losses import LOSSES
from bmrm.problem import Vector
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS

NAMES = ("chain_crf", "chain_margin", "chain_scaled_margin")
REPETITIONS = 9


def measure() -> Table | None:
    """Evaluations at a rough solution, one thread and two; None where the shared data are missing."""
    if not SHARED.is_dir():
        return None
    data, vocabulary = read_conll(SHARED / "conll2000.train.txt.xz")
    rough = _rough(data)
    candidates: dict[str, Any] = {}
    for name in NAMES:
        for threads in (1, 2):
            candidates[f"{name}, {threads} threads"] = _evaluation(data, name, threads, rough)
    passes: list[float] = []
    candidates["CRFsuite"] = _crfsuite_passes(data, vocabulary, passes)
    times = alternated(candidates, REPETITIONS)
    times["CRFsuite"] = peer = Times(tuple(passes))
    rows = [(name, str(each), f"{each.median / peer.median:.2f}") for name, each in times.items()]
    return Table(
        "Losses of sequences",
        f"CoNLL-2000 chunking, {data.rows} tokens, 19 templates, {data.features} features with a weight for each of 22"
        " labels (CRFsuite: only the pairs of feature and label that occur). Value and gradient at a rough solution.",
        ("what", "time", "times CRFsuite"),
        tuple(rows),
    )


def _rough(data: Dataset) -> Vector:
    """The weights after a few iterations."""
    solver = SOLVERS.make("lbfgs", {"max_iterations": 15})
    return solver.minimize(LinearRisk(data, LOSSES.make("chain_crf")), L2(2e-4)).w  # type: ignore[no-any-return]


def _evaluation(data: Dataset, name: str, threads: int, w: Vector) -> Any:
    risk = LinearRisk(data, LOSSES.make(name), threads=threads)
    return lambda: risk.value_and_subgradient(w)


def _crfsuite_passes(data: Dataset, vocabulary: Vocabulary, passes: list[float]) -> Any:
    """A few iterations of its L-BFGS; appends the seconds of those that needed one evaluation to `passes`."""
    import pycrfsuite

    X, groups = data.X, data.targets.groups
    assert groups is not None
    borders = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), data.rows]
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    for a, b in pairwise(borders):
        tokens = [[vocabulary.names[j] for j in X.indices[X.indptr[t] : X.indptr[t + 1]]] for t in range(a, b)]  # type: ignore[union-attr]
        trainer.append(tokens, data.targets.y[a:b].tolist())
    trainer.set_params({"c1": 0.0, "c2": 1.0, "max_iterations": 7})

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            trainer.train(str(Path(folder) / "model"))
        passes.extend(line["time"] for line in trainer.logparser.iterations[2:] if line["linesearch_trials"] == 1)

    return run
