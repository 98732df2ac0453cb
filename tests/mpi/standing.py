"""Run under mpirun: ranks that wait for work, so that their start and their imports are paid once.

Arguments: a folder with a named pipe of orders for each rank, and one for what they answer. An order is a JSON line:
how many ranks are to work, the module whose `main(arguments)` they call, in which folder, and where their output goes.
"""

import importlib
import json
import os
import sys
import traceback
import warnings
from contextlib import contextmanager
from pathlib import Path

from bmrm.mpi.communicator import MPI, TIMEOUT, MpiGroup


def group_of(ranks, known):
    """The first `ranks` ranks as a group: one for each number, with its signs of life, for as long as they stand."""
    if ranks not in known:
        world = MPI.COMM_WORLD
        known[ranks] = MpiGroup(world.Create_group(world.Get_group().Incl(range(ranks))))
    known[ranks].timeout, known[ranks].busy = TIMEOUT, 0.0
    return known[ranks]


@contextmanager
def as_if_started_there(order):
    """Folder, arguments and outputs of a process of its own."""
    before = os.getcwd(), sys.argv
    os.chdir(order["folder"])
    sys.argv = [order["module"], *order["arguments"]]
    kept = {number: os.dup(number) for number in (1, 2)}
    for number, path in zip(kept, order["outputs"], strict=True):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, number)
        os.close(file)
    try:
        with warnings.catch_warnings():
            yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in kept.items():
            os.dup2(copy, number)
            os.close(copy)
        os.chdir(before[0])
        sys.argv = before[1]


def status_of(order):
    """What the process of `python -m module arguments` would end with."""
    with as_if_started_there(order):
        try:
            return importlib.import_module(order["module"]).main(order["arguments"]) or 0
        except SystemExit as leave:
            return int(leave.code or 0)
        except BaseException:
            traceback.print_exc()
            return 1


def main(folder):
    world, groups = MPI.COMM_WORLD, {}
    with (
        open(Path(folder) / f"orders-{world.rank}") as orders,
        open(Path(folder) / "answers", "w", buffering=1) as answers,
    ):
        for line in orders:
            order = json.loads(line)
            group = group_of(order["ranks"], groups)
            MpiGroup.world = lambda group=group: group
            answers.write(f"{status_of(order)}\n")


if __name__ == "__main__":
    main(sys.argv[1])
