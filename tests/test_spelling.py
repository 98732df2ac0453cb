"""A value that is refused is named as the user has written it."""

import pickle

import numpy as np
import pytest

import bmrm
from bmrm.app.config.config import load_settings
from bmrm.regularizers import REGULARIZERS

X, Y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 1, 0])


@pytest.mark.parametrize("word", ["lam", "lambda", "alpha", "lambda_", "reg_lambda"])
def test_lambda_under_every_name(word):
    said = f"^L2: {word} is -1, expected a number > 0"
    with pytest.raises(bmrm.InputError, match=said):
        REGULARIZERS.make("l2", {word: -1})
    with pytest.raises(bmrm.InputError, match=said):
        bmrm.fit(X, Y, regularizer={"name": "l2", word: -1})
    with pytest.raises(bmrm.InputError, match=said):
        bmrm.fit(X, Y, **{word: -1})


@pytest.mark.parametrize("word", ["tolerance", "tol"])
def test_other_settings(word):
    with pytest.raises(bmrm.InputError, match=rf"^[A-Za-z]+: {word} is -1, expected"):
        bmrm.fit(X, Y, **{word: -1})


def test_a_class_has_the_name_of_its_argument():
    with pytest.raises(bmrm.InputError, match=r"^L1: lam is 0") as caught:
        bmrm.L1(lam=0)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


@pytest.mark.parametrize("word", ["lambda", "lam", "alpha"])
def test_configs(word, tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(f"schema: 2\ndata: {{train: a.csv}}\nregularizer: {{name: l2, {word}: -1}}\n")
    with pytest.raises(bmrm.InputError, match=rf"{word} is -1, expected"):
        load_settings(path)
