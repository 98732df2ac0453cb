"""Which columns a working set has."""

import numpy as np

from bmrm.solvers._core.working_set import chosen

AWAY = np.array([0.0, 5.0, 1.0, 0.0, 4.0, 3.0, 2.0])
W = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0])


def test_columns_in_use_and_the_largest_violations():
    assert chosen(AWAY, W, 5).tolist() == [0, 1, 2, 3, 4]
    assert chosen(AWAY, W, 2).tolist() == [0, 2, 3]
    assert chosen(AWAY, W, 9).tolist() == list(range(7))


def test_no_more_than_a_matrix_may_have():
    """Then those in use are no more than others: what violates most."""
    assert chosen(AWAY, W, 5, most=2).tolist() == [1, 4]
    assert chosen(AWAY, W, 9, most=3).tolist() == [1, 4, 5]
    assert chosen(AWAY, W, 5, most=6).tolist() == [0, 1, 2, 3, 4]
