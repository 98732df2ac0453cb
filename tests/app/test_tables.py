"""Tables fit a terminal, and are whole where they are piped."""

from hypothesis import example, given
from hypothesis import strategies as st

from bmrm.app.tables import NARROWEST, lines, pair_lines

CELL = st.text(st.characters(codec="ascii", exclude_categories=["C", "Z"]), min_size=1, max_size=30)
ROWS = st.lists(st.tuples(CELL, CELL, CELL), max_size=8)


@given(ROWS, st.integers(NARROWEST + 80, 200))
def test_lines_fit(rows, limit):
    found = lines(("a", "b", "c"), rows, limit)
    assert len(found) == len(rows) + 1
    assert max(map(len, found)) <= limit


@example([("0" * 9, "0" * 21, "0" * 21)], 54)
@given(ROWS, st.integers(40, 79))
def test_narrow_terminals_get_the_last_cell_below(rows, limit):
    found = lines(("a", "b", "c"), rows, limit)
    assert max(map(len, found)) <= limit
    assert " ".join(found).split() == [cell for row in [("a", "b", "c"), *rows] for cell in row]


@given(ROWS)
def test_piped_lines_have_every_cell_whole(rows):
    for row, line in zip(rows, lines(("a", "b", "c"), rows, None)[1:]):
        assert line.split() == list(row)


@given(st.dictionaries(CELL, st.lists(CELL, min_size=1, max_size=12).map(" ".join), min_size=1), st.integers(70, 120))
def test_values_are_wrapped_without_losing_a_word(pairs, limit):
    found = pair_lines(pairs, limit)
    assert max(map(len, found)) <= limit
    assert " ".join(found).split() == [word for name, value in pairs.items() for word in [name, *value.split()]]
    assert len(pair_lines(pairs, None)) == len(pairs)
