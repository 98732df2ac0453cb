"""Where all weights are 0 though targets differ, every door says so and what to do."""

import json

import numpy as np
import pytest

import bmrm
from bmrm.app.pipeline.nothing_learned import nothing_learned
from bmrm.estimators import Classifier, Regressor
from bmrm.losses import LOSSES
from bmrm.problem import Solution, Status, facts_of
from bmrm.regularizers.l2 import L2
from bmrm.run import main

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
SIGNS, GROUPS = np.where(X[:, 0] > 0.0, 1, -1), np.repeat(np.arange(60), 20)
QUERIES = np.random.default_rng(4).normal(size=(1200, 3))
GRADES = np.digitize(QUERIES[:, 0] + 4.0 * np.random.default_rng(5).normal(size=1200), [1.2, 4.0])
L1 = {"name": "l1", "lam": 50.0}
NOISE = np.random.default_rng(4).integers(0, 3, 60)
CASES = {
    "l1": ({"loss": "logistic", "regularizer": L1}, SIGNS, "take a smaller lambda than 50"),
    "l1, numbers": ({"loss": "least_squares", "regularizer": L1, "bias": "free"}, X[:, 0], "a smaller lambda than 50"),
    "elastic_net": ({"loss": "hinge", "regularizer": {**L1, "name": "elastic_net"}}, SIGNS, "a smaller lambda than 50"),
    "perceptron": ({"loss": "perceptron"}, SIGNS, "take loss hinge or logistic"),
    "squared_perceptron": ({"loss": "squared_perceptron"}, SIGNS, "take loss hinge or logistic"),
    "classes": (
        {"loss": "softmax", "regularizer": {"name": "l1", "lam": 50.0}, "solver": "proximal_gradient"},
        NOISE,
        "smaller",
    ),
    **{
        name: (
            {"loss": {"name": name, "joint": "ranks"}, "groups": GROUPS},
            GRADES,
            "take joint: pairs or loss rank_hinge",
        )
        for name in ("ndcg", "expected_rank_utility", "mean_reciprocal_rank", "winner_takes_all")
    },
}


_RANDOM = np.random.default_rng(5)
NOISY = _RANDOM.normal(size=(150, 3))
_SCORES = NOISY @ [1.0, -0.5, 0.2] + 3.0 * _RANDOM.normal(size=150)
_RARE, _GRADES = (_SCORES > 5.5).astype(int), np.digitize(_SCORES, [3.5, 5.5])
MINIMUM_AT_ZERO = {
    "hinge": (_RARE, "logistic"),
    "cost_sensitive_hinge": (_RARE, "logistic"),
    "f_beta": (_RARE, "logistic"),
    "break_even": (_RARE, "logistic"),
    "precision_at_k": (_RARE, "roc_area"),
    "recall_at_k": (_RARE, "roc_area"),
    "partial_roc_area": (_RARE, "roc_area"),
    "ordinal_thresholds": (_GRADES, "ordinal"),
    "multiclass_hinge": (_GRADES, "softmax"),
    "scaled_multiclass_hinge": (_GRADES, "softmax"),
}
"""Losses, targets, and the loss to take instead."""


@pytest.mark.parametrize("name", CASES)
def test_a_model_without_weights_says_so(name):
    given, y, advice = CASES[name]
    found = bmrm.fit(X if len(y) == len(X) else QUERIES, y, **given)
    assert not found.weights.any()
    assert "all weights are 0 though the targets differ" in found.solution.message
    assert advice in found.solution.message
    assert "all weights are 0" in repr(found)
    assert advice in found._repr_html_()


def test_nothing_is_said_where_there_is_nothing_to_learn_or_something_is_learned():
    same = bmrm.fit(X, np.full(60, 2.0), loss="least_squares", bias="free")
    assert same.solution.message == ""
    assert bmrm.fit(X, SIGNS, loss="hinge").solution.message == ""
    weights = np.concatenate((np.ones(30), np.zeros(30)))
    y = np.concatenate((np.full(30, 2.0), X[30:, 0]))  # rows that differ have no weight
    assert bmrm.fit(X, y, loss="least_squares", sample_weight=weights, bias="free").solution.message == ""


def test_the_table_and_the_summary_of_a_run_say_it(tmp_path, capsys):
    rows = np.column_stack((X, SIGNS))
    np.savetxt(tmp_path / "a.csv", rows, delimiter=",", header="a,b,c,label", comments="")
    config = f"""data: {{train: {tmp_path}/a.csv, bias: free}}
loss: logistic
regularizer: {{name: l1, lambda: 50.0}}
output: {{directory: {tmp_path}/out}}
"""
    (tmp_path / "c.yaml").write_text(config)
    assert main([str(tmp_path / "c.yaml")]) == 0
    message = json.loads((tmp_path / "out/summary.json").read_text())["message"]
    assert "all weights are 0 though the targets differ" in message
    assert "all weights are 0 though the targets differ" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(("kind", "y"), [(Classifier, SIGNS), (Regressor, X[:, 0])])
def test_estimators_warn(kind, y):
    with pytest.warns(UserWarning, match="all weights are 0 though the targets differ"):
        kind(regularizer=L1).fit(X, y)


def test_a_limit_that_leaves_the_start_is_no_minimum():
    found = bmrm.fit(X, SIGNS, loss="hinge", solver="dual_coordinate", time_limit=1e-9)
    assert found.weights.any() or "all weights are still 0" in found.solution.message


@pytest.mark.parametrize("loss", sorted(MINIMUM_AT_ZERO))
def test_where_no_lambda_helps_none_is_asked_for(loss):
    """Noise of few positive rows: the minimum of R itself is at w = 0, as a lambda of 1e-5 shows."""
    targets, advice = MINIMUM_AT_ZERO[loss]
    found = bmrm.fit(NOISY, targets, loss=loss, lam=1e-5)
    message = found.solution.message
    assert "all weights are 0 though" in message or "weights of 0 are as good" in message
    assert f"take loss {advice}" in message
    if not found.weights.any() and found.solution.relative_gap < 1e-9:
        assert "no lambda and no scale changes that" in message


def test_within_the_tolerance_weights_of_0_are_as_good():
    found = bmrm.fit(NOISY, MINIMUM_AT_ZERO["multiclass_hinge"][0], loss="multiclass_hinge", lam=1e-5)
    assert 0.0 < np.abs(found.weights).max() < 1e-3
    assert "weights of 0 are as good as these, within the tolerance" in found.solution.message
    assert "smaller lambda than 1e-05 or a smaller tolerance" in found.solution.message


def test_small_weights_that_order_the_rows_are_something():
    for lam in (1e-3, 1.0, 1e3):
        found = bmrm.fit(X, SIGNS, loss="hinge", lam=lam, tolerance=1e-6)
        assert found.solution.message == ""
        assert np.corrcoef(found.decision_function(X), X[:, 0])[0, 1] > 0.9


def test_losses_whose_slope_jumps_at_0_know_another_loss():
    """Perceptrons, hinges with a free intercept, and maxima over labelings or sets of rows."""
    kinked = [entry for entry in LOSSES.all() if facts_of(entry.cls).needs_targets and not facts_of(entry.cls).smooth]
    smooth_enough = {"ordinal", "roc_area", "rank_hinge", "poisson", "gamma", "tweedie"}  # they have a slope at w = 0
    silent = {entry.name for entry in kinked if not facts_of(entry.cls).at_zero}
    assert silent <= smooth_enough


def test_a_run_that_stalls_at_0_far_from_its_bound_does_not_say_that_no_feature_helps():
    facts, weights = facts_of(LOSSES.make("multiclass_hinge")), np.zeros((2, 3))
    for bound, words in ((0.0, "no better ones were found; scale the features"), (1.0 - 1e-12, "no feature lowers")):
        stalled = Solution(np.zeros(6), 1.0, bound, Status.STALLED, 60, 60.0, 0.1)
        assert words in nothing_learned(facts, L2(1e-2), weights, stalled, True)


def test_steps_that_lead_away_from_0_do_not_show_that_no_feature_helps():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(200, 20)), np.where(random.random(200) < 0.5, 1, -1)
    given = {"loss": "hinge", "lam": 1e-7, "bias": "none", "tolerance": 0.0}
    for returns, said in (("best", "all weights are still 0: no better ones were found before"), ("last", "")):
        options = {"sample": 10, "epochs": 2, "returns": returns}
        solution = bmrm.fit(X, y, solver="pegasos", solver_options=options, **given).solution
        assert solution.message.startswith(said)
        assert bool(solution.message) == bool(said)
