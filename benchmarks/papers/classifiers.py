"""The classifiers of the thesis' chapter 6: from training and test rows to scores, and to passes where counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scipy import sparse
from sklearn.metrics import roc_auc_score, roc_curve

import bmrm
from benchmarks.papers.fits import again
from benchmarks.papers.sets import mean_norm_squared, scipy_of
from benchmarks.papers.study import Row
from bmrm.data.dataset import Dataset
from bmrm.solvers.irls import IRLS
from bmrm.solvers.nonlinear_cg import NonlinearCG

RRLAMBDA, FALSE = 10.0, 1e-3
"""The thesis' ridge; the share of false positives at which first predictions are compared."""
Fit = Callable[[Dataset, Dataset], tuple[Any, float]]
"""Scores of the test rows, and passes; nan where they are not counted."""


def _linear(loss: str, ridge: float, solver: Any) -> Fit:
    def fit(train: Dataset, test: Dataset) -> tuple[Any, float]:
        penalty = bmrm.L2(ridge / train.rows)
        more = {"tolerance": 1e-3} if isinstance(solver, str) else {}
        model = bmrm.fit(train, loss=loss, regularizer=penalty, solver=solver, bias="regularized", threads=1, **more)
        return model.decision_function(test), model.solution.passes

    return fit


def _sklearn(make: Callable[[Dataset], Any], scores: str) -> Fit:
    def fit(train: Dataset, test: Dataset) -> tuple[Any, float]:
        made = make(train).fit(scipy_of(train), train.targets.y)
        found = getattr(made, scores)(scipy_of(test))
        return (found[:, 1] if found.ndim == 2 else found), float("nan")

    return fit


def _svm(kernel: str) -> Callable[[Dataset], Any]:
    def make(train: Dataset) -> Any:
        from sklearn.svm import SVC

        return SVC(kernel=kernel, C=1.0 / mean_norm_squared(train), gamma="scale", cache_size=500)

    return make


def _neighbours(count: int) -> Callable[[Dataset], Any]:
    def make(train: Dataset) -> Any:
        from sklearn.neighbors import KNeighborsClassifier

        return KNeighborsClassifier(min(count, train.rows), algorithm="brute")

    return make


def _bayes(train: Dataset) -> Any:
    from sklearn.naive_bayes import BernoulliNB, GaussianNB

    return BernoulliNB() if sparse.issparse(scipy_of(train)) else GaussianNB()


CGEPS, CGDEVEPS, CG_MLE = "LR-CGEPS", "LR-CGDEVEPS", "CG-MLE"
LR = (CGEPS, CGDEVEPS, CG_MLE)
LINEAR, RBF, BAYES = "SVM LINEAR", "SVM RBF", "BC"
NEIGHBOURS = {1: "KNN K=1", 9: "KNN K=9", 129: "KNN K=129"}
CERTIFIED_LR, CERTIFIED_SVM = "certified LR", "certified hinge"
CLASSIFIERS: dict[str, Fit] = {
    CGEPS: _linear("logistic", RRLAMBDA, IRLS(preset="first_residual", tolerance=0.0)),
    CGDEVEPS: _linear("logistic", RRLAMBDA, IRLS(preset="cgdeveps", tolerance=0.0)),
    CG_MLE: _linear("logistic", 2.0 * RRLAMBDA, NonlinearCG(preset="thesis", tolerance=0.0)),
    CERTIFIED_LR: _linear("logistic", RRLAMBDA, "auto"),
    CERTIFIED_SVM: _linear("hinge", RRLAMBDA, "auto"),
    LINEAR: _sklearn(_svm("linear"), "decision_function"),
    RBF: _sklearn(_svm("rbf"), "decision_function"),
    **{name: _sklearn(_neighbours(count), "predict_proba") for count, name in NEIGHBOURS.items()},
    BAYES: _sklearn(_bayes, "predict_proba"),
}


def judged(name: str, train: Dataset, test: Dataset) -> Row:
    """AUC on the test rows, processor seconds of training and predicting, share of positives at few false alarms."""
    taken, (scores, passes) = again(lambda: CLASSIFIERS[name](train, test))
    positive = test.targets.y > 0.0
    false, true, _ = roc_curve(positive, scores)
    return {
        "classifier": name,
        "auc": float(roc_auc_score(positive, scores)),
        "first": float(true[false <= FALSE].max(initial=0.0)),
        "seconds": taken,
        "passes": passes,
    }
