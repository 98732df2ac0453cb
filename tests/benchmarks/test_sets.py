"""The generated sets of the race: rows that every door takes."""

import pytest

from benchmarks.race.sets import MAKERS, load
from bmrm.data.matrix import features_of


@pytest.mark.parametrize("name", ["short-texts", "long-texts", "long-texts-regression"])
def test_rows_of_texts_are_in_order(name):
    assert name in MAKERS
    data = load(name)
    features_of(data.X).checked()
    assert data.rows == data.targets.y.size
