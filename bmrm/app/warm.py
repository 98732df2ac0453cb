"""Compile kernels before they are needed, by small fits, in parallel processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bmrm.app.config.config import load_settings
from bmrm.app.fit import fit
from bmrm.app.pipeline import fingerprint
from bmrm.app.pipeline.load import compile_reader, load
from bmrm.app.pipeline.measuring import measure_parts
from bmrm.app.pipeline.solve import BIASES, Problem, solve, warm_up_ranks
from bmrm.app.pipeline.train import problem_of, train, with_loss
from bmrm.checks.plug_in import groups_for, instance_of, targets_for
from bmrm.data.dataset import Dataset
from bmrm.data.matrix import Csr
from bmrm.kernels.compiling import COMPILING
from bmrm.kernels.jit import CACHE
from bmrm.losses import LOSSES
from bmrm.mpi.group import Alone
from bmrm.problem import BmrmError, InputError, Scored, Vector
from bmrm.problem.abilities import Blocks, DualBlocks, Fingerprint, ModifiedLoss, ProblemSize, Rounding, RowSubsets
from bmrm.regularizers import REGULARIZERS
from bmrm.risk.linear import LinearRisk
from bmrm.risk.products import Columns
from bmrm.risk.scaling import SCALINGS
from bmrm.risk.warm_up import warm_up
from bmrm.solvers import SOLVERS
from bmrm.vocabulary import CONFIGS

ROWS, FEATURES = 200, 12
MANY = 50_000
"""Rows of data that are not solved at once."""
FEW = {"max_iterations": 30, "time_limit": 2.0, "tolerance": 1e-4}
"""Limits of a warm-up run, which reaches every part of a solver."""
RANKS, WHOLE, DEFAULTS = "what ranks answer", "all of it", "a fit of default settings"
"""Names of the warm-up jobs: of a loss without a solver, of a config, and of a loss with default settings."""
OVER_RANKS = (Scored, RowSubsets, Blocks, DualBlocks, ModifiedLoss, Fingerprint, Rounding, ProblemSize)
"""Abilities of the risk of a loss over ranks."""
SAFE_PATH = "PYTHONSAFEPATH"
LONGEST = 10.0
"""Most seconds of a solver on a config."""


@dataclass(frozen=True)
class Warmed:
    """Summary: kernels compiled, seconds, processes, and losses."""

    kernels: int
    seconds: float
    processes: int
    losses: tuple[str, ...]


def warm(
    losses: Sequence[str] = (),
    processes: int | None = None,
    say: Callable[[str], None] = lambda text: None,
    all_solvers: bool = False,
) -> Warmed:
    """Compile what training needs: with a loss, or as a config says, alone and over ranks.

    With a loss: what its first fit compiles, of dense float64 data, if all else is left to `fit`. With a config: a
    training, whose result is discarded.

    Parameters
    ----------
    losses : names as of a config, and paths of configs (`.yaml`); none for all losses that are registered.
    processes : number of processes; None for one per core.
    say : called with the progress, every few seconds.
    all_solvers : of a loss every solver, regularizer and intercept, for dense and sparse float64 data and sparse data
        without values, alone and over ranks: minutes.

    Raises
    ------
    InputError
        No loss of this name, a config that is wrong, or no folder where compiled kernels can be kept.
    """
    if not CACHE:
        raise InputError("there is no folder where compiled kernels can be kept; set NUMBA_CACHE_DIR to one")
    names = tuple(losses) or tuple(entry.name for entry in LOSSES.all())
    jobs = [job for name in names for job in _jobs(name, all_solvers)]
    count = min(len(jobs), processes or len(os.sched_getaffinity(0)))
    begin = said = time.monotonic()
    kernels = 0
    with _safe_path(), ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        tasks = {pool.submit(_warm, *job): job for job in jobs}
        for done, task in enumerate(as_completed(tasks), 1):
            kernels += task.result()
            if time.monotonic() - said >= 2.0:
                said = time.monotonic()
                say(f"{done} of {len(jobs)} parts, {kernels} kernels  {said - begin:.1f} s")
    return Warmed(kernels, time.monotonic() - begin, count, names)


@contextmanager
def _safe_path() -> Iterator[None]:
    """Processes that start meanwhile have no working folder on their path, as this one (from Python 3.11 on)."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        del os.environ[SAFE_PATH]
        if before is not None:
            os.environ[SAFE_PATH] = before


def _jobs(name: str, all_solvers: bool) -> list[tuple[str, str]]:
    """The parts of the work that may be done at the same time; InputError where there is no such loss or config."""
    if name.endswith(CONFIGS):
        load_settings(name)
        return [(name, WHOLE)]
    instance_of(LOSSES, name)
    if not all_solvers:
        return [(name, DEFAULTS)]
    return [(name, part) for part in (RANKS, *(entry.name for entry in SOLVERS.all() if entry.name != "auto"))]


def _warm(name: str, part: str) -> int:
    """A config; or one loss with one solver, or the rest of it. Returns how many kernels were compiled."""
    before = COMPILING.kernels
    COMPILING.speaks = False
    with np.errstate(all="ignore"):
        if part == WHOLE:
            _as_config(name)
        elif part == DEFAULTS:
            loss = instance_of(LOSSES, name)
            for rows in (ROWS, MANY):
                fit(next(_data(loss, rows)), loss=loss, threads=1)
        else:
            loss = instance_of(LOSSES, name)
            for data in _data(loss):
                with suppress(BmrmError):  # a loss that does not take these data
                    _ranks(loss, data) if part == RANKS else _fits(loss, part, data)
    return COMPILING.kernels - before


def _as_config(path: str) -> None:
    """Train for a while, into a temporary folder; then make the requests that ranks would get."""
    with TemporaryDirectory() as folder:
        settings = load_settings(path, [f"output.directory={folder}/out", f"solver.time_limit={LONGEST}"]).plain()
        train(settings, Alone(), quiet=True)
        loaded = load(settings["data"], settings["seed"], Alone())
    problem = problem_of(with_loss(settings, loaded.train, Alone())[0])
    data = SCALINGS[problem.scale].rows(loaded.train)
    compile_reader("auto")
    columns = SCALINGS[problem.scale].columns(data, Alone()) or Columns()
    warm_up_ranks(data, problem, problem.loss.summarise(data.targets), columns)
    bias = BIASES[problem.bias]
    risk = bias.wrap(_AsOfRanks(LinearRisk(data, problem.loss, bias=bias.constant_feature, columns=columns)))
    with suppress(BmrmError):  # a solver for one process
        assert problem.solver is not None
        problem.solver.minimize(risk, problem.regularizer)


class _AsOfRanks:
    """A risk with the abilities that it has over two ranks, so that `auto` makes the same choice."""

    def __init__(self, risk: LinearRisk) -> None:
        self.risk = risk
        self.dim, self.infimum = risk.dim, risk.infimum

    def value_and_subgradient(self, w: Vector) -> tuple[float, Vector]:
        return self.risk.value_and_subgradient(w)

    def ability(self, kind: type[Any]) -> Any:
        offered = self.risk.ability(kind) if kind in OVER_RANKS else None
        return replace(offered, ranks=2) if isinstance(offered, ProblemSize) else offered


def _data(loss: Any, rows: int = ROWS) -> Iterator[Dataset]:
    """The same rows, stored in every way."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, FEATURES)) * (rng.random((rows, FEATURES)) < 0.5)
    y, groups = targets_for(loss, rows), groups_for(loss, rows)
    present = X != 0.0
    indptr = np.concatenate(([0], np.cumsum(present.sum(axis=1)))).astype(np.int64)
    columns = np.nonzero(present)[1].astype(np.int32)
    for stored in (X, Csr(indptr, columns, X[present], FEATURES), Csr(indptr, columns, None, FEATURES)):
        yield Dataset.from_arrays(stored, y, groups=groups)


def _ranks(loss: Any, data: Dataset) -> None:
    """Reading, digests of the data, and the requests to ranks."""
    compile_reader("auto")
    fingerprint.of_rows(data, Alone())
    for bias in (False, True):
        with suppress(BmrmError):
            risk = LinearRisk(data, loss, bias=bias)
            for regularizer in _regularizers():
                warm_up(risk, regularizer)


def _fits(loss: Any, solver: str, data: Dataset) -> None:
    """With every regularizer and intercept; the measures of the loss."""
    for regularizer in _regularizers():
        for bias in BIASES:
            with suppress(BmrmError):
                problem = Problem(loss, regularizer, SOLVERS.make(solver, FEW), bias=bias, threads=1)
                model = solve(data, problem, Alone())
                measure_parts(model, loss, {"train": data}, Alone())


def _regularizers() -> list[Any]:
    return [instance_of(REGULARIZERS, entry.name) for entry in REGULARIZERS.all()]
