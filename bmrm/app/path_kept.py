"""Points of a path that are done, in files that a run which was killed leaves for the next one."""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bmrm.app.pipeline import fingerprint
from bmrm.app.pipeline.kept_files import Arrays, KeptFiles
from bmrm.data.dataset import Dataset
from bmrm.mpi.group import Group
from bmrm.problem import Iteration, Solution, Status

POINTS = "points"
"""Folder of the files, beside the results."""
SECTIONS = "loss", "regularizer", "solver", "seed"
ELSEWHERE = "train", "test", "validation"
"""Options of `data` that say where rows are; what they are is told by their digest."""
NUMBERS: Mapping[str, Callable[[Any], Any]] = {
    "objective": float,
    "lower_bound": float,
    "iterations": int,
    "passes": float,
    "seconds": float,
    "seconds_compiling": float,
    "solver": str,
}
"""Of a solution, but for its weights and its status, and their types."""


@dataclass(frozen=True)
class KeptPoints(KeptFiles):
    """A file for each lambda.

    Attributes
    ----------
    key : a digest of the problem and its rows.
    """

    key: str = ""

    def first(self, lambdas: Sequence[float], dim: int) -> Iterator[Solution]:
        """Those of the first lambdas, as far as there are files of so many weights that can be read."""
        for lam in lambdas:
            found = self.read(self._digest(lam), _of_arrays)
            if found is None or found.w.shape != (dim,):
                return
            yield found

    def put(self, lam: float, found: Solution) -> None:
        """Write a point, if it is one that was asked for."""
        if not found.converged:
            return
        details = {name: value for name, value in found.details.items() if isinstance(value, (int, float, str))}
        header = {name: getattr(found, name) for name in NUMBERS} | {"details": details}
        stream = io.BytesIO()
        np.savez(stream, w=found.w, header=np.array(json.dumps(header)))
        self.write(self._digest(lam), stream.getvalue())

    def _digest(self, lam: float) -> str:
        return hashlib.sha256(f"{self.key} {lam!r}".encode()).hexdigest()[:32]


def _of_arrays(found: Arrays) -> Solution:
    header, w = json.loads(str(found["header"])), np.array(found["w"], np.float64)
    numbers: dict[str, Any] = {name: made(header[name]) for name, made in NUMBERS.items()}
    line = Iteration(*(numbers[name] for name in ("iterations", "objective", "lower_bound", "passes", "seconds")))
    if not (np.all(np.isfinite(w)) and numbers["lower_bound"] <= numbers["objective"] < math.inf):
        raise ValueError("a point that no run has written")
    return Solution(w=w, status=Status.CONVERGED, history=(line,), details=dict(header["details"]), **numbers)


def key_of(settings: Mapping[str, Any], rows: Dataset, group: Group) -> str:
    """Collective: a digest of all that the points depend on besides lambda.

    Parameters
    ----------
    settings : of the path.
    rows : this rank's training rows, as they were read.
    group : the ranks.
    """
    data = {name: value for name, value in settings["data"].items() if name not in ELSEWHERE}
    facts = {name: settings[name] for name in SECTIONS} | {"data": data, "rows": fingerprint.of_rows(rows, group)}
    if isinstance(facts["regularizer"], Mapping):
        facts["regularizer"] = dict(fingerprint.with_content(facts["regularizer"]))
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()
