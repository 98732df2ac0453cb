"""Threads of our own."""

import multiprocessing
import threading

import pytest

from bmrm.kernels.workers import Workers, usable_cores


def test_results_keep_the_order_of_the_pieces():
    workers = Workers(3)
    assert workers.map(lambda k: k * k, range(7)) == [0, 1, 4, 9, 16, 25, 36]


def test_pieces_run_at_the_same_time():
    workers, barrier = Workers(3), threading.Barrier(3, timeout=20)
    assert sorted(workers.map(lambda k: barrier.wait(), range(3))) == [0, 1, 2]


def test_one_thread_starts_none():
    assert Workers(1).map(lambda k: threading.current_thread(), range(3)) == [threading.current_thread()] * 3
    assert Workers().threads == usable_cores() >= 1


def test_an_error_in_a_thread_is_raised():
    def fails(k):
        if k == 2:
            raise ValueError("piece 2")
        return k

    with pytest.raises(ValueError, match="piece 2"):
        Workers(3).map(fails, range(4))


def _child(workers, queue):
    queue.put(workers.map(lambda k: k + 1, range(4)))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_starts_its_own():
    workers = Workers(2)
    workers.map(lambda k: k, range(4))
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_child, args=(workers, queue))
    child.start()
    assert queue.get(timeout=20) == [1, 2, 3, 4]
    child.join(20)
    assert child.exitcode == 0
