"""Labels of largest expected F-beta, against all outcomes and all sets of rows."""

import itertools

import numpy as np
import pytest
from sklearn.metrics import fbeta_score

import bmrm
from bmrm.cli import main
from bmrm.metrics.expected_f import best_count, beta_of, positive_rows
from bmrm.problem import InputError

random = np.random.default_rng(0)


def expected(p, called, beta):
    """The mean over all outcomes."""
    outcomes = np.array(list(itertools.product((0, 1), repeat=len(p))))
    chances = np.prod(np.where(outcomes, p, 1 - p), axis=1)
    hits = outcomes @ np.asarray(called, float)
    below = beta**2 * outcomes.sum(axis=1) + np.sum(called)
    return chances @ ((1 + beta**2) * hits / np.maximum(below, 1e-300))


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0, 1.5])
@pytest.mark.parametrize("rows", [1, 2, 5, 7])
def test_no_other_set_of_rows_is_expected_to_be_better(beta, rows):
    p = random.uniform(0.02, 0.9, rows)
    found = positive_rows(p, beta)
    _, value = best_count(np.sort(p)[::-1], beta)
    assert value == pytest.approx(expected(p, found, beta), abs=1e-12)
    best = max(expected(p, called, beta) for called in itertools.product((0, 1), repeat=rows))
    assert value == pytest.approx(best, abs=1e-12)


def test_many_rows_are_as_a_sample_says():
    p = np.sort(random.beta(0.3, 3, 1500))[::-1]
    count, value = best_count(p)
    draws = random.random((4000, len(p))) < p
    hits, positives = draws[:, :count].sum(axis=1), draws.sum(axis=1)
    sample = 2 * hits / (count + positives)
    assert sample.mean() == pytest.approx(value, abs=4 * sample.std() / np.sqrt(len(sample)))
    assert 0 < count < len(p)


def test_calling_rows_by_one_half_is_worse(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = random.normal(size=(3000, 3))
    y = np.where(random.random(3000) < 1 / (1 + np.exp(3 - 1.5 * X[:, 0])), "yes", "no")
    model = bmrm.fit(X[:1500], y[:1500], loss="logistic", lam=1e-4)
    found = model.predict(X[1500:], maximize="f1")
    ours = fbeta_score(y[1500:], found, beta=1, pos_label="yes")
    assert ours > fbeta_score(y[1500:], model.predict(X[1500:]), beta=1, pos_label="yes") + 0.05
    model.save("model.npz")
    np.savetxt("new.csv", X[1500:], delimiter=",")
    words = [
        "predict",
        "model.npz",
        "new.csv",
        "--format",
        "{name: csv, label: null}",
        "--quiet",
        "--data.header",
        "false",
    ]
    assert main([*words, "--maximize", "f1"]) == 0
    assert capsys.readouterr().out.split() == found.tolist()
    assert main([*words, "--maximize", "auc"]) == 2
    assert "maximize is 'auc', expected f1, f_beta or such as f_beta@2" in capsys.readouterr().err
    assert main([*words, "--maximize", "f1", "--probabilities"]) == 2
    assert "expected it without --probabilities" in capsys.readouterr().err


def test_what_is_wrong_is_said():
    X, y = random.normal(size=(60, 2)), random.integers(0, 3, 60)
    with pytest.raises(InputError, match="of two classes, the model has 3 labels"):
        bmrm.fit(X, y, loss="softmax").predict(X, maximize="f1")
    with pytest.raises(InputError, match="has no probabilities"):
        bmrm.fit(X, y > 0, loss="hinge").predict(X, maximize="f1")
    with pytest.raises(InputError, match="square is a fraction"):
        best_count(np.array([0.5]), np.sqrt(np.pi))
    assert beta_of("f_beta@0.5") == 0.5
    assert best_count(np.zeros(0)) == (0, 0.0)
