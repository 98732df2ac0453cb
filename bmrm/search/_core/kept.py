"""Trainings of a search that are done, in files that a run which was killed leaves for the next one."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.app.pipeline import fingerprint
from bmrm.app.pipeline.kept_files import Arrays, KeptFiles
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.losses._core.per_column import PerColumn
from bmrm.metrics import ScoredRows
from bmrm.mpi.group import Group
from bmrm.regularizers import REGULARIZERS
from bmrm.search._core.candidates import Candidate
from bmrm.search._core.held_out import Judged
from bmrm.solvers import SOLVERS

FOLDER = "trials"
"""Beside the results of a run."""
ARRAYS = "y", "scores", "predicted", "weights", "groups"


class Kept(KeptFiles):
    """A file for each fold and walk."""

    def find(self, key: str) -> list[Judged] | None:
        """What a file holds; None where there is none that can be read."""
        return self.read(key, _of_arrays)

    def put(self, key: str, found: Sequence[Judged]) -> None:
        """Write what was found; rows whose labels or parameters are not plain are not kept."""
        try:
            content = packed(found)
        except TypeError:
            return
        self.write(key, content)


def packed(found: Sequence[Judged]) -> bytes:
    """As an archive of arrays; TypeError where labels or parameters are not plain."""
    arrays: dict[str, NDArray[Any]] = {}
    header = []
    for k, one in enumerate(found):
        s = one.rows
        header.append({"facts": dict(one.facts), "rows": None if s is None else _plain(s)})
        for name in ARRAYS:
            value = None if s is None else getattr(s, name)
            if value is not None:
                arrays[f"{name}{k}"] = value
        if one.w is not None:
            arrays[f"w{k}"] = one.w
    arrays["header"] = np.array(json.dumps(header))
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


def unpacked(content: bytes) -> list[Judged]:
    """The inverse of `packed`; what NumPy raises where it is damaged."""
    with np.load(io.BytesIO(content), allow_pickle=False) as found:
        return _of_arrays(found)


def _plain(s: ScoredRows) -> dict[str, Any]:
    return {"classes": s.classes, "labels": list(s.labels), "parameters": dict(s.parameters)}


def _of_arrays(found: Arrays) -> list[Judged]:
    lines = []
    for k, one in enumerate(json.loads(str(found["header"]))):
        rows = None
        if one["rows"] is not None:
            each = {name: found.get(f"{name}{k}") for name in ARRAYS}
            classes, labels, parameters = (one["rows"][name] for name in ("classes", "labels", "parameters"))
            rows = ScoredRows(
                each["y"],  # type: ignore[arg-type]
                each["scores"],  # type: ignore[arg-type]
                each["predicted"],  # type: ignore[arg-type]
                each["weights"],
                classes,
                parameters,
                each["groups"],
                tuple(labels),
            )
        lines.append(Judged(rows, one["facts"], found.get(f"w{k}")))
    return lines


def key_of(walk: Sequence[Candidate], train: Dataset, held: Dataset, budget: float | None, group: Group) -> str:
    """Collective: a digest of all that the trainings of a walk on a fold depend on; "" but on rank 0."""
    rows = [fingerprint.of_rows(data, group) for data in (train, held)]
    if group.rank != 0:
        return ""
    facts = {"rows": rows, "budget": budget, "walk": [_described(one) for one in walk]}
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:32]


def _described(candidate: Candidate) -> dict[str, Any]:
    problem = candidate.problem
    loss = problem.loss.loss if isinstance(problem.loss, PerColumn) else problem.loss
    return {
        "loss": LOSSES.describe(loss),
        "each": problem.loss.kind if isinstance(problem.loss, PerColumn) else None,
        "regularizer": dict(fingerprint.with_content(REGULARIZERS.describe(problem.regularizer))),
        "solver": None if problem.solver is None else SOLVERS.describe(problem.solver),
        "data": [problem.bias, problem.scale, problem.positive_label, repr(problem.class_weight), problem.shares],
    }
