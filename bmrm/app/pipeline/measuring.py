"""Measures and curves of all parts of the data at the end of a run; what memory is too short for is left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from bmrm.app.measure import names_of_measures, scored, scores_of
from bmrm.app.model import Model
from bmrm.data.dataset import Dataset
from bmrm.mpi.group import Group
from bmrm.words import short_of_memory

T = TypeVar("T")


class Measures(NamedTuple):
    """What was measured; table and curves are empty but on rank 0.

    Attributes
    ----------
    table : part -> measure -> number.
    curves : of the last part, for curves.json.
    missing : what was not measured since memory is short, in words: what was trained is not lost for it.
    """

    table: dict[str, dict[str, float | None]]
    curves: dict[str, Any]
    missing: list[str]


def measure_parts(
    model: Model | None,
    loss: Any,
    parts: Mapping[str, Dataset],
    group: Group,
    metrics: Sequence[str] | None = None,
    threads: int | None = None,
) -> Measures:
    """Collective: measures of every part, by default those that the loss names, and the curves of the last part.

    Rows must be scaled as for the model. The curves are of the test rows; of the validation rows where there are none,
    else of the training rows.
    """
    labels = group.broadcast(None if model is None else model.label_codes)
    weights = group.broadcast_array(None if model is None else model.weights)
    intercept = group.broadcast_array(None if model is None else model.intercept)
    arrays, calibration = (None, None) if model is None else (model.arrays, model.calibration)
    names = names_of_measures(loss, calibration) if metrics is None else metrics
    found = Measures({}, {}, [])
    profiles: dict[str, Any] = {}
    for part, data in parts.items():
        where = f"data.{part}"
        scores, words = _in_memory(partial(scores_of, data, weights, intercept, threads), group)
        if scores is None:
            found.missing.append(f"{where}: not measured: {words}")
            continue
        rows = scored(scores, data.targets, loss, labels, group, arrays=arrays, calibration=calibration, part=where)
        if rows is None:  # the other ranks import no measures
            continue
        from bmrm.metrics import evaluate
        from bmrm.metrics.curves import drawn, profile_of

        try:
            rows = rows if rows.groups is not None else rows.ordered  # once, for all that sorts them
            found.table[part] = evaluate(names, rows)
            profiles[part] = profile_of(rows)
            if part == [*parts][-1]:
                found.curves.update({"format": 1, "part": part, "data": profiles, **drawn(rows, loss, names)})
        except MemoryError as error:
            found.missing.append(f"{where}: not all is measured: {short_of_memory(error)}")
    return found


def _in_memory(work: Callable[[], T], group: Group) -> tuple[T | None, str]:
    """Collective: what each rank makes; None on all, and why, where one has no memory for it."""
    found, words = None, None
    try:
        found = work()
    except MemoryError as error:
        words = short_of_memory(error)
    said = group.gather(words)
    words = group.broadcast(None if said is None else next(filter(None, said), None))
    return (found, "") if words is None else (None, words)
