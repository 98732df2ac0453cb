"""The checkpoint of a run: a model file that also holds the state from which another run can continue."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from bmrm.app.model import Model, load_model
from bmrm.app.model_file import RUN
from bmrm.app.pipeline.fingerprint import Facts, difference
from bmrm.data.archives import read_arrays, write_arrays
from bmrm.problem import InputError, Iteration, Start

HEADER, STATE = RUN + "header", RUN + "state_"
FIELDS = ("iteration", "objective", "lower_bound", "passes", "seconds", "seconds_risk", "seconds_master")
COLUMNS = (*FIELDS, "seconds_network")
"""Columns of the history, which has one row for each iteration."""
ROWS = "rows_"
"""Prefix of arrays of the state that have one row per row of the data."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What a checkpoint holds besides the model.

    Attributes
    ----------
    start : the best point, the bound, the history and the state of the solver.
    problem : what was minimised, as of `bmrm.app.pipeline.fingerprint`.
    seed : of the config.
    """

    start: Start
    problem: Facts
    seed: int

    def write(self, stream: IO[bytes], model: Model) -> None:
        """The content of `checkpoint.npz`: arrays and JSON, no pickles."""
        start = self.start
        bound = start.lower_bound
        header = {"problem": self.problem, "seed": self.seed, "lower_bound": bound if math.isfinite(bound) else None}
        members = {"header": np.array(json.dumps(header)), "w": start.w, "history": _table(start.history)}
        content: dict[str, Any] = {RUN + name: array for name, array in members.items()}
        content |= {STATE + name: np.asarray(array) for name, array in start.state.items()}
        write_arrays(stream, {**model.members(), **content})

    def start_on(self, problem: Facts, path: Path) -> Start:
        """The start for this problem; InputError if the checkpoint is of another one.

        If rows are in another order, the state of single rows is dropped.
        """
        why = difference(self.problem, problem)
        if why is not None:
            raise InputError(f"{path} is of another problem: {why}")
        here, there, state = problem["data"], self.problem["data"], self.start.state
        same = there.get("order") == here["order"]
        kept = {k: a for k, a in state.items() if not k.startswith(ROWS) or (same and a.shape[:1] == (here["rows"],))}
        return Start(self.start.w, self.start.lower_bound, self.start.history, kept)


def read_start(path: Path) -> Checkpoint | Model:
    """A checkpoint, or a model if the file has no state of a run; nothing in it is executed.

    Raises
    ------
    InputError
        For a file that is missing, is not one of these or is damaged.
    """
    model = load_model(path)
    try:
        with open(path, "rb") as stream:
            members = read_arrays(stream, only=RUN)
        return _checkpoint(members) if members else model
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError) as error:
        raise InputError(f"{path}: not a checkpoint: {error}") from error


def problem_of_file(path: Path) -> Any:
    """The problem of a checkpoint; None if it is not stated or the file cannot be read."""
    try:
        with open(path, "rb") as stream:
            return json.loads(str(read_arrays(stream, only=HEADER)[HEADER]))["problem"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _checkpoint(members: Mapping[str, NDArray[Any]]) -> Checkpoint:
    header = json.loads(str(members[HEADER]))
    w, table = members[RUN + "w"], members[RUN + "history"]
    right = (
        (w.dtype == np.float64 and w.ndim == 1 and bool(np.isfinite(w).all()), "its point is no finite vector"),
        (table.dtype == np.float64 and table.ndim == 2 and table.shape[1] == len(COLUMNS), "its history is no table"),
        (isinstance(header["problem"], dict) and isinstance(header["problem"]["data"], dict), "it names no problem"),
        (not any(array.dtype.hasobject for array in members.values()), "it holds objects"),
    )
    for fine, complaint in right:
        if not fine:
            raise ValueError(complaint)
    bound = -math.inf if header["lower_bound"] is None else float(header["lower_bound"])
    state = {name.removeprefix(STATE): array for name, array in members.items() if name.startswith(STATE)}
    return Checkpoint(Start(w, bound, _lines(table), state), header["problem"], int(header["seed"]))


def _table(history: Sequence[Iteration]) -> NDArray[np.float64]:
    rows = [[float(getattr(line, name)) for name in COLUMNS] for line in history]
    return np.array(rows, np.float64).reshape(-1, len(COLUMNS))


def _lines(table: NDArray[np.float64]) -> tuple[Iteration, ...]:
    return tuple(Iteration(int(row[0]), **dict(zip(COLUMNS[1:], row[1:]))) for row in table.tolist())
