"""Points of a path that are done, in files that a run which was killed leaves for the next one."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bmrm.app.pipeline import fingerprint
from bmrm.app.pipeline.kept_files import KeptFiles
from bmrm.data.dataset import Dataset
from bmrm.mpi.group import Group
from bmrm.problem import Iteration, Solution, Status

POINTS = "points"
"""Folder of the files, beside the results."""
SECTIONS = "loss", "regularizer", "solver", "seed"
ELSEWHERE = "train", "test", "validation"
"""Options of `data` that say where rows are; what they are is told by their digest."""
NUMBERS = "objective", "lower_bound", "iterations", "passes", "seconds", "seconds_compiling", "solver"
"""Of a solution, but for its weights and its status."""


@dataclass(frozen=True)
class KeptPoints(KeptFiles):
    """A file for each lambda.

    Attributes
    ----------
    key : a digest of the problem and its rows.
    """

    key: str = ""

    def first(self, lambdas: Sequence[float]) -> Iterator[Solution]:
        """Those of the first lambdas, as far as there are files that can be read."""
        for lam in lambdas:
            found = self.read(self._digest(lam), _unpacked)
            if found is None:
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


def _unpacked(content: bytes) -> Solution:
    with np.load(io.BytesIO(content), allow_pickle=False) as found:
        header, w = json.loads(str(found["header"])), found["w"]
    numbers = {name: header[name] for name in NUMBERS}
    line = Iteration(*(numbers[name] for name in ("iterations", "objective", "lower_bound", "passes", "seconds")))
    return Solution(w=w, status=Status.CONVERGED, history=(line,), details=header["details"], **numbers)


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
