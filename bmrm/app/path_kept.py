"""Points of a path that are done, in files that a run which was killed leaves for the next one."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bmrm.app.pipeline import fingerprint
from bmrm.app.pipeline.run_folder import write_file
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
class KeptPoints:
    """A file for each lambda, written whole or not at all, named by a digest of all that it depends on.

    Attributes
    ----------
    directory : of the results.
    resume : whether files that are there are taken; else they are removed at the start.
    key : a digest of the problem and its rows.
    """

    directory: Path
    resume: bool
    key: str = ""

    @property
    def folder(self) -> Path:
        """Of the files."""
        return self.directory / POINTS

    def begin(self) -> None:
        """Remove what earlier runs have left, unless it is to be taken."""
        if not self.resume:
            self.clear()

    def clear(self) -> None:
        """Remove all files."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def first(self, lambdas: Sequence[float]) -> Iterator[Solution]:
        """Those of the first lambdas, as far as there are files that can be read."""
        for lam in lambdas if self.resume else ():
            try:
                with np.load(self.folder / self._name(lam), allow_pickle=False) as found:
                    yield _of_arrays(found)
            except (OSError, ValueError, KeyError):
                return

    def put(self, lam: float, found: Solution) -> None:
        """Write a point, if it is one that was asked for."""
        if not found.converged:
            return
        details = {name: value for name, value in found.details.items() if isinstance(value, (int, float, str))}
        header = {name: getattr(found, name) for name in NUMBERS} | {"details": details}
        stream = io.BytesIO()
        np.savez(stream, w=found.w, header=np.array(json.dumps(header)))
        write_file(self.folder, self._name(lam), lambda out: out.write(stream.getvalue()))

    def _name(self, lam: float) -> str:
        return hashlib.sha256(f"{self.key} {lam!r}".encode()).hexdigest()[:32] + ".npz"


def _of_arrays(found: Mapping[str, Any]) -> Solution:
    header = json.loads(str(found["header"]))
    numbers = {name: header[name] for name in NUMBERS}
    line = Iteration(*(numbers[name] for name in ("iterations", "objective", "lower_bound", "passes", "seconds")))
    return Solution(w=found["w"], status=Status.CONVERGED, history=(line,), details=header["details"], **numbers)


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
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()
