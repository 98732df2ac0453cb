"""The page has the figures that are kept beside it; the clock of a rank parts its time without counting any twice."""

import json
import time

import pytest

from benchmarks.__main__ import PAGE, section
from benchmarks.rank_startup import KEPT, PHASES, RANKS, REST, WAITING, Clock, table

pytestmark = pytest.mark.nightly


def test_the_page_has_the_kept_figures():
    found = json.loads(KEPT.read_text())
    assert set(found) == {"bare", *map(str, RANKS)}
    assert section("rank_startup", table(found)) in PAGE.read_text()


def test_a_phase_within_another_does_not_count_for_that_one():
    def burn(seconds):
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass

    clock = Clock()
    inner = clock.timed(lambda: burn(0.02), WAITING)
    outer = clock.timed(lambda: (burn(0.01), inner(), burn(0.01)), "reading")
    outer()
    clock.turn(REST)
    assert set(clock.seconds) == set(PHASES)
    assert clock.seconds[WAITING] == pytest.approx(0.02, abs=0.01)
    assert clock.seconds["reading"] == pytest.approx(0.02, abs=0.01)
