"""Scores with parameters of the loss behind them, and their map."""

import numpy as np
import pytest

from bmrm.problem import InputError
from bmrm.risk.linear_map import DataMap
from bmrm.risk.score_layout import ScoreLayout, TailedMap


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("bias", [False, True])
def test_the_map_is_the_map_of_rows_beside_the_identity(width, bias):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(7, 4))
    rows_map = DataMap(X, scores_per_row=width, bias=bias)
    tailed = TailedMap(rows_map, ScoreLayout(width, 2))
    w = rng.normal(size=tailed.dim)
    f = tailed.matvec(w)
    np.testing.assert_array_equal(tailed.layout.table(f), rows_map.matvec(w[:-2]))
    np.testing.assert_array_equal(tailed.layout.parameters(f), w[-2:])
    slope = rng.normal(size=f.shape)
    assert tailed.rmatvec(slope) @ w == pytest.approx(slope @ f, rel=1e-12)
    pieces = np.full(tailed.dim, np.nan)
    for where, piece in tailed.rmatvec_parts(slope, 3):
        pieces[where] = piece
    np.testing.assert_allclose(pieces, tailed.rmatvec(slope), rtol=1e-13)
    with pytest.raises(InputError, match="w has shape"):
        tailed.matvec(w[:-1])


def test_parts_keep_the_parameters_and_their_slopes_add_up():
    layout = ScoreLayout(2, 3)
    f = np.arange(11.0)
    parts = [layout.part(f, slice(0, 1)), layout.part(f, slice(1, 4))]
    assert parts[0].tolist() == [0.0, 1.0, 8.0, 9.0, 10.0]
    assert layout.joined(parts).tolist() == [*range(8), 16.0, 18.0, 20.0]
    plain = ScoreLayout(2)
    table = np.arange(8.0).reshape(4, 2)
    np.testing.assert_array_equal(plain.joined([table[:1], table[1:]]), table)
    assert plain.part(table, slice(1, 2)).tolist() == [[2.0, 3.0]]
