"""Ranks that do the same collective call for ever, with `group.timeout` in seconds; rank 0 says when they begin."""

import os
import sys
import time

import numpy as np

from bmrm.mpi.launch import open_group

CALLS = {
    "barrier": lambda group: group.barrier(),
    "broadcast": lambda group: group.broadcast([1, 2]),
    "broadcast_array": lambda group: group.broadcast_array(np.ones(3) if group.rank == 0 else None),
    "gather": lambda group: group.gather(group.rank),
    "gather_array": lambda group: group.gather_array(np.ones(3)),
    "sum": lambda group: group.sum(np.ones(3)),
    "max": lambda group: group.max(np.ones(3)),
    "hand_out": lambda group: group.hand_out(np.ones(group.size) if group.rank == 0 else None, 1),
    "first_per_node": lambda group: group.first_per_node(lambda: time.sleep(0.01)),
}


def busy(group):
    """Rank 1 computes for twice as long as the timeout is: it is not silent."""
    begin = time.perf_counter()
    while group.rank == 1 and time.perf_counter() - begin < 2.0 * group.timeout:
        sum(range(1000))
    group.barrier()


if __name__ == "__main__":
    name, timeout = sys.argv[1:]
    group = open_group()
    group.timeout = float(timeout)
    processes = group.gather(os.getpid())
    if name == "busy":
        busy(group)
        if group.rank == 0:
            print("done", flush=True)
    else:
        if group.rank == 0:
            print(*processes, flush=True)
        while True:
            CALLS[name](group)
