"""`python -m bmrm.run config.yaml`: one training, alone or under mpirun.

Exit status: 0 converged; 3 stopped before that, with a usable point and all files; 2 bad config or data, nothing
written; 4 results could not be written, or not all measured for lack of memory; 130 Ctrl-C before there was a point; 1
anything else, NON_FINITE and NOT_CONVEX too.
"""

from __future__ import annotations

from bmrm.interrupts import INTERRUPTED, end_at_once, end_quietly

if __name__ == "__main__":
    end_quietly()  # before imports that take time

import argparse
import atexit
import errno
import gc
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from bmrm.app.phases import process_begin
from bmrm.mpi.group import Alone, Group, OtherRankError
from bmrm.mpi.launch import open_group
from bmrm.problem import IncompatibleError, InputError, OutputError
from bmrm.solvers._core.interrupt import terminated
from bmrm.words import short_of_memory, shortened

if TYPE_CHECKING:
    from bmrm.app.pipeline.train import Fit, Outcome
    from bmrm.mpi.communicator import MpiGroup
    from bmrm.search import Search

T = TypeVar("T")
OK, FAILED, BAD_INPUT, STOPPED, UNWRITTEN = 0, 1, 2, 3, 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of a run."""
    parser.add_argument("config", help="config.yaml, see the page Config")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="overrides a field of the config, such as solver.tolerance=1e-4; the value in YAML; may be repeated",
    )
    parser.add_argument(
        "--overwrite",
        action="store_const",
        const="output.overwrite=true",
        help="replace the results of another problem in the output folder",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on from what an earlier run of the same problem has left in the output folder",
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line on rank 0 and run; returns the exit status, the same on every rank."""
    begin = process_begin() if arguments is None else None
    parser = argparse.ArgumentParser(prog="python -m bmrm.run", description="Train a model as a config file says.")
    add_arguments(parser)
    return guarded(lambda group: _start(group, parser, arguments, begin))


def overrides_of(parsed: argparse.Namespace) -> list[str]:
    """FIELD=VALUE of all that the command line says of the config."""
    return [*parsed.set, *filter(None, [parsed.overwrite])]


def switches_of(parsed: argparse.Namespace) -> dict[str, bool]:
    """What the command line says of the run besides."""
    return {"quiet": parsed.quiet, "resume": parsed.resume}


def _start(group: Group, parser: argparse.ArgumentParser, arguments: Sequence[str] | None, begin: float | None) -> int:
    message: dict[str, Any] = {}
    if group.rank == 0:
        try:
            parsed = parser.parse_args(arguments)
            message = {"config": parsed.config, "set": overrides_of(parsed), **switches_of(parsed)}
        except SystemExit as leave:  # argparse has printed the usage
            message = {"exit": leave.code}
    message = group.broadcast(message)
    if "exit" in message:
        return int(message["exit"] or 0)
    switches = {"quiet": message["quiet"], "resume": message["resume"]}
    return run(group, lambda: _of_file(message["config"], message["set"]), **switches, begin=begin)


def _of_file(config: str, overrides: Sequence[str]) -> dict[str, Any]:
    from bmrm.app.config.config import load_settings

    return load_settings(config, overrides).plain()


def run(
    group: Group,
    settings: Callable[[], dict[str, Any]],
    *,
    quiet: bool,
    resume: bool = False,
    as_json: bool = False,
    begin: float | None = None,
) -> int:
    """Make the settings on rank 0, train on all; returns the exit status.

    Parameters
    ----------
    group : the ranks.
    settings : makes `Settings.plain()`; called on rank 0 only.
    quiet : no progress and no table.
    resume : go on from what an earlier run of the same problem has left.
    as_json : print summary.json at the end, in place of the table.
    begin : when the program was started, on the clock of `time.perf_counter`; None for now.
    """
    begin = time.perf_counter() if begin is None else begin
    from bmrm.app.phases import Phases
    from bmrm.app.pipeline.train import fit_once, train

    plain = of_rank_0(group, settings)
    group.timeout = plain["mpi"]["timeout"]
    _say_where_it_would_go_on(group, plain["output"]["directory"])
    fit = fit_once if plain["search"] is None else _search(plain, resume)
    table = not (quiet or as_json)
    outcome = train(plain, group, quiet=quiet, table=table, resume=resume, fit=fit, phases=Phases(begin))
    if outcome is not None and plain["search"] is not None and outcome.written:
        from bmrm.search._core.searching import kept_in

        kept_in(plain["output"]["directory"], resume).clear()
    if outcome is not None and as_json:
        print(json.dumps(dict(outcome.summary), indent=2, allow_nan=False))
    return int(group.broadcast(None if outcome is None else _ended(outcome)))


def _say_where_it_would_go_on(group: Group, directory: str) -> None:
    """To whom speaks for ranks that are killed."""
    if group.size == 1:
        return
    from bmrm.app.pipeline.run_folder import CHECKPOINT

    mpi: MpiGroup = group  # type: ignore[assignment]
    if mpi.sentinel is not None:
        mpi.sentinel.resumes_from(os.path.join(directory, CHECKPOINT))


def _ended(outcome: Outcome) -> int:
    """Say what contradicts what, and what could not be measured or written; the exit status."""
    for complaint in [*filter(None, [outcome.summary["message"]]), *outcome.complaints]:
        print(f"bmrm: {complaint}", file=sys.stderr)
    if not outcome.written:
        return UNWRITTEN
    return {"CONVERGED": OK, "NON_FINITE": FAILED, "NOT_CONVEX": FAILED}.get(outcome.status.name, STOPPED)


def _search(plain: dict[str, Any], resume: bool) -> Fit:
    from bmrm.app.model_file import from_plain
    from bmrm.registry import SEARCHES
    from bmrm.search._core.searching import Searching, kept_in

    section = dict(plain["search"])
    if "seed" in section and section["seed"] is None:
        section["seed"] = plain["seed"]
    search: Search = from_plain(SEARCHES, section)
    if isinstance(search, Searching):
        return search.fit_into(kept_in(plain["output"]["directory"], resume))
    return search.fit


def of_rank_0(group: Group, make: Callable[[], T]) -> T:
    """Collective: what rank 0 makes, as JSON has it; the others hear of a refusal, and only rank 0 says why."""
    made: T | None = None
    if group.rank == 0:
        try:
            made = make()
        except InputError:
            group.broadcast(None)
            raise
    made = group.broadcast(made)
    if made is None:
        raise OtherRankError("rank 0 has refused the command")
    return made


def guarded(work: Callable[[Group], int]) -> int:
    """`work` with the ranks of this process's job; errors are printed once and become an exit status."""
    group: Group = Alone()
    try:
        group = open_group()
        with _signals(group), _rare_collections(), _watched(group):
            return work(group)
    except OtherRankError:
        return BAD_INPUT
    except OutputError as error:
        print(f"bmrm: {error}", file=sys.stderr)
        return UNWRITTEN
    except (InputError, IncompatibleError) as error:
        print(f"bmrm: {error}", file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:  # `bmrm predict ... | head`
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (Python flushes it at exit)
        return OK
    except BaseException as error:
        status = _said(error)
    sys.stderr.flush()
    group.abort(status)
    if status == INTERRUPTED and signal.getsignal(signal.SIGINT) is end_at_once:
        os._exit(status)  # Python itself may end otherwise, where the interrupt has passed through `exec`
    return status


def _said(error: BaseException) -> int:
    """Say that there was a Ctrl-C, also where a library has made another error of it; or what a fault of ours it is."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        print(f"bmrm: {shortened(str(error.filename))}: {error.strerror}", file=sys.stderr)
        return BAD_INPUT
    if isinstance(error, MemoryError):
        print(f"bmrm: {short_of_memory(error)}", file=sys.stderr)
        return FAILED
    if cause is None:
        traceback.print_exception(error)
        return FAILED
    print(f"bmrm: {str(cause) or 'interrupted before there was anything to write'}", file=sys.stderr)
    return INTERRUPTED


@contextmanager
def _watched(group: Group) -> Iterator[None]:
    """Over ranks somebody says so if one of them is killed."""
    if group.size == 1:
        yield
        return
    from bmrm.mpi.sentinel import Sentinel

    mpi: MpiGroup = group  # type: ignore[assignment]
    mpi.sentinel = Sentinel(group)
    try:
        yield
    except BaseException:
        mpi.sentinel.end(well=False)
        raise
    mpi.sentinel.end(well=True)


@contextmanager
def _signals(group: Group) -> Iterator[None]:
    """SIGTERM means what Ctrl-C means; only rank 0 listens, the others do as it says.

    Also where Ctrl-C is ignored, as in jobs that a script or nohup has put into the background; that stays so.
    """
    changes: dict[signal.Signals, Any] = {signal.SIGTERM: terminated}
    if signal.getsignal(signal.SIGINT) is end_at_once:
        changes[signal.SIGINT] = signal.default_int_handler
    if group.rank != 0:
        changes = {signal.SIGTERM: signal.SIG_IGN, signal.SIGINT: signal.SIG_IGN}
    if threading.current_thread() is not threading.main_thread():
        changes = {}
    before = {number: signal.signal(number, handler) for number, handler in changes.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Look for cyclic garbage a hundred times less often: a fifth of the time of a short run goes into it, in vain.

    Nor does the end of the process look for it, among all that the imports have left.
    """
    atexit.register(gc.freeze)
    often = gc.get_threshold()
    gc.set_threshold(100 * often[0], *often[1:])
    try:
        yield
    finally:
        gc.set_threshold(*often)


if __name__ == "__main__":
    sys.exit(main())
