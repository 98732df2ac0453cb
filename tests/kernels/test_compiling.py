"""What the clock of compilation counts besides compiling: the first looks for garbage that the compiler has left."""

import gc
import time

import numpy as np
import pytest

from bmrm.kernels.compiling import COMPILING, Compiling
from bmrm.kernels.jit import jit


def ticking(monkeypatch):
    """The clock, a second later at every look."""
    times = iter(range(1000))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(times)))


def compiled(clock):
    """Compile for a second."""
    clock.enter()
    clock.compile(ticking)
    clock.leave()


def collected(clock, generation):
    """Look for garbage for a second."""
    info = {"generation": generation}
    clock.collecting("start", info)
    clock.collecting("stop", info)


def test_the_first_look_for_garbage_in_each_generation_after_compiling_is_counted(monkeypatch):
    ticking(monkeypatch)
    clock = Compiling()
    collected(clock, 2)
    assert clock.seconds == 0.0
    compiled(clock)
    assert clock.seconds == 1.0
    for generation, seconds in ((0, 2.0), (0, 2.0), (2, 3.0), (0, 3.0), (1, 3.0), (2, 3.0)):
        collected(clock, generation)
        assert clock.seconds == seconds


def test_after_a_kernel_was_loaded_it_is_not(monkeypatch):
    ticking(monkeypatch)
    clock = Compiling()
    clock.enter()
    clock.leave()
    collected(clock, 0)
    assert clock.seconds == 1.0


def test_what_is_looked_for_while_compiling_is_counted_once(monkeypatch):
    ticking(monkeypatch)
    clock = Compiling()
    compiled(clock)
    clock.enter()
    collected(clock, 2)
    clock.leave()
    assert clock.seconds == 2.0


@pytest.fixture
def no_other_looks():
    """Nobody but the test looks for garbage."""
    gc.disable()
    yield
    gc.enable()


def test_garbage_of_a_real_compilation_is_counted(no_other_looks):
    def total(x):
        return x.sum()

    before = COMPILING.kernels
    jit(total)(np.ones(3))
    assert COMPILING.kernels > before
    after, begin = COMPILING.seconds, time.perf_counter()
    gc.collect()
    assert 0.0 < COMPILING.seconds - after <= time.perf_counter() - begin
    after = COMPILING.seconds
    gc.collect()
    assert COMPILING.seconds == after
