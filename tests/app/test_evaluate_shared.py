"""`bmrm evaluate` with measures that are chosen, on real data, against scikit-learn's values and formulas."""

import re

import numpy as np
import pytest
import yaml
from scipy.stats import kendalltau
from sklearn import metrics as sk

import bmrm
from bmrm.cli import main
from tests.metrics.formulas import at_first, chunk_counts, mean_over

pytestmark = [pytest.mark.shared_data, pytest.mark.nightly]


@pytest.fixture
def trained(tmp_path, monkeypatch, shared_data):
    """A function that trains by a config and returns the path of the model."""
    monkeypatch.chdir(tmp_path)

    def train(loss, lam, train, **more):
        data = {"train": str(shared_data / train), **more.pop("data", {})}
        regularizer = {"name": "l2", "lambda": lam}
        config = {"data": data, "loss": loss, "regularizer": regularizer, "output": {"directory": "out"}, **more}
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
        assert main(["train", "config.yaml", "--quiet"]) in (0, 3)
        return tmp_path / "out" / "model.npz"

    return train


def printed_by_evaluate(capsys, model, data, names):
    """The values that the command prints, by name."""
    capsys.readouterr()
    assert main(["evaluate", str(model), str(data), "--metrics", *names]) == 0
    printed = capsys.readouterr().out
    return {name: float(re.search(rf"^ *{re.escape(name)} +(\S+)", printed, re.MULTILINE)[1]) for name in names}


def test_a9a(trained, capsys, shared_data):
    path, test = trained("hinge", 1e-4, "a9a.svm.xz"), shared_data / "a9a.t.svm.xz"
    model = bmrm.load_model(path)
    data = model.read(test, labelled=True)
    y, f = data.targets.y > 0, model.decision_function(data)
    p = 1.0 / (1.0 + np.exp(-f))
    expected = {
        "auc": sk.roc_auc_score(y, f),
        "average_precision": sk.average_precision_score(y, f),
        "f1": sk.f1_score(y, f > 0.0),
        "log_loss": sk.log_loss(y, p),
        "brier": sk.brier_score_loss(y, p),
    }
    assert printed_by_evaluate(capsys, path, test, expected) == pytest.approx(expected, rel=1e-5)
    # MAP and break-even, which rows of equal features (and score) count in by the mean over all their orders
    rng = np.random.default_rng(0)
    orders = [np.lexsort((rng.random(len(f)), -f)) for _ in range(200)]
    first = np.mean([y[order][: y.sum()].mean() for order in orders])
    precisions = [np.cumsum(y[order]) / np.arange(1, len(y) + 1) for order in orders]
    mean = np.mean([line[y[order]].mean() for line, order in zip(precisions, orders)])
    found = printed_by_evaluate(capsys, path, test, ["map", "break_even"])
    assert found == pytest.approx({"map": mean, "break_even": first}, abs=2e-4)


def test_mq2008(trained, capsys, shared_data):
    path, test = trained("rank_hinge", 1e-2, "mq2008.fold1.train.svm.xz"), shared_data / "mq2008.fold1.test.svm.xz"
    model = bmrm.load_model(path)
    data = model.read(test, labelled=True)
    y, f, groups = data.targets.y, model.decision_function(data), data.targets.groups
    kinds = [g for g in np.unique(groups) if len(set(y[groups == g])) > 1]
    expected = {
        "ndcg@5": mean_over(groups, y, f, lambda y, f: sk.ndcg_score([2.0**y - 1.0], [f], k=5)),
        "kendall_tau": np.mean([kendalltau(y[groups == g], f[groups == g]).statistic for g in kinds]),
    }
    assert printed_by_evaluate(capsys, path, test, expected) == pytest.approx(expected, rel=1e-5)
    # some rows of a query are equal: what they count for is the mean over all their orders
    rng = np.random.default_rng(0)
    orders = [np.argsort(np.lexsort((rng.random(len(f)), f))) for _ in range(50)]
    ordered = {
        "map": lambda y, f: sk.average_precision_score(y > 0, f),
        "mrr": lambda y, f: 1.0 / (1 + np.sum(f > f[y > 0].max())),
        "break_even": lambda y, f: at_first(y > 0, f, np.sum(y > 0)) / np.sum(y > 0),
        "recall@10": lambda y, f: at_first(y > 0, f, 10) / np.sum(y > 0),
    }
    means = {name: np.mean([mean_over(groups, y, f, measure) for f in orders]) for name, measure in ordered.items()}
    assert printed_by_evaluate(capsys, path, test, means) == pytest.approx(means, abs=1e-3)


def test_conll2000(trained, capsys, shared_data):
    reader = {"name": "conll", "templates": "w=%x[0,0]\nt=%x[0,1]\nb=%x[-1,1]\na=%x[1,1]"}
    more = {"data": {"format": reader}, "solver": {"max_iterations": 15}}
    # the smaller file trains: three labels of the other one are unknown to the model
    path, test = trained("chain_crf", 1e-4, "conll2000.test.txt.xz", **more), shared_data / "conll2000.train.txt.xz"
    model = bmrm.load_model(path)
    data = model.read(test, labelled=True)
    y, predicted, groups = data.targets.y, model.predict(data), data.targets.groups
    true, found, common = chunk_counts(y, predicted, groups)
    some = sorted(set(y) - {"O"})
    right = y == predicted
    expected = {
        "chunk_f1": 2.0 * common / (true + found),
        "chunk_precision": common / found,
        "chunk_recall": common / true,
        "token_accuracy": right.mean(),
        "token_f1": 2.0
        * sum((right & (y == label)).sum() for label in some)
        / ((y != "O").sum() + (predicted != "O").sum()),
        "sentence_accuracy": np.mean([right[groups == g].all() for g in np.unique(groups)]),
    }
    assert true == 106978  # as `conlleval` counts them
    assert expected["chunk_f1"] > 0.85
    assert printed_by_evaluate(capsys, path, test, expected) == pytest.approx(expected, rel=1e-5)
