"""The map of `features` is that of the rows that are trained on, as in a pipeline of scikit-learn."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bmrm
from bmrm.cli import main

X, Y = load_breast_cancer(return_X_y=True)
X, Y = X[:150], Y[:150]
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)


class Counting(PCA):
    """Remembers how many rows it was fitted to, whatever the copy."""

    seen: ClassVar[list[int]] = []

    def fit(self, X, y=None):
        self.seen.append(len(X))
        return super().fit(X)


def test_measures_are_those_of_a_pipeline():
    m = 100  # rows of a fold that are trained on; C is of their sum
    found = bmrm.cross_validate(
        X,
        Y,
        loss="logistic",
        lam=1e-2,
        folds=FOLDS,
        scale="standardize",
        features=PCA(4),
        measures=["log_loss"],
        tolerance=1e-9,
    )
    pipeline = make_pipeline(StandardScaler(), PCA(4), LogisticRegression(C=1.0 / (1e-2 * m), tol=1e-10, max_iter=1000))
    theirs = -cross_val_score(pipeline, X, Y, cv=FOLDS, scoring="neg_log_loss")
    np.testing.assert_allclose(found.best.by_fold["log_loss"], theirs, rtol=1e-4)
    whole = bmrm.fit(X, Y, loss="logistic", lam=1e-2, scale="standardize", features=PCA(4), tolerance=1e-9)
    np.testing.assert_allclose(found.model.decision_function(X), whole.decision_function(X), atol=1e-3)


def test_it_sees_no_row_that_is_held_out():
    Counting.seen.clear()
    bmrm.cross_validate(X, Y, loss="logistic", lambdas=[1e-1, 1e-2], folds=FOLDS, features=Counting(3))
    assert Counting.seen == [150, 100, 100, 100]  # all rows for the model, then each fold, once for both lambdas


@pytest.mark.parametrize("map", ["{name: nystroem, rank: 20}", "{name: svd, rank: 3}"])
def test_the_command_saves_the_map_of_all_rows(map, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["sklearn:breast_cancer", "--loss", "logistic", "--scale", "standardize", "--features", map]
    assert main(["cv", *words, "--folds", "3", "--out", "cv", "--quiet"]) == 0
    assert main(["train", *words, "--output", "run", "--quiet"]) == 0
    one, other = bmrm.load_model("cv/model.npz"), bmrm.load_model("run/model.npz")
    whole = load_breast_cancer(return_X_y=True)[0]
    np.testing.assert_allclose(one.decision_function(whole), other.decision_function(whole), atol=0.05)
