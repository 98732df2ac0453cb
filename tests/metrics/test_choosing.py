"""Measures that are chosen by name: which fit a loss, numbers behind a name, weights, and what is refused."""

import numpy as np
import pytest
from sklearn import metrics as sk

from bmrm.losses import LOSSES
from bmrm.metrics import MEASURES, TASKS, ScoredRows, check_metrics, evaluate, fitting
from bmrm.metrics.core import chosen
from bmrm.metrics.intervals import folds_of, interval_over_folds, parts_of
from bmrm.problem import InputError

HALF_WAY = sk.median_absolute_error([0.0, 0.0], [1.0, 2.0], sample_weight=[1.0, 1.0]) == 1.5
"""Whether scikit-learn's median of weighted rows lies half-way between two, as of so many copies: from 1.7."""
EDGES = (("b", "a"), ("c", "a"), ("d", "b"))


def some(task, rows=40, seed=0, weights=None, flat=False):
    """Rows of a task with random targets; `flat` ones are all the same, with equal scores."""
    rng = np.random.default_rng(seed)
    groups = np.sort(rng.integers(0, 6, rows))
    classes = {"binary": 2, "novelty": 0, "ranking": 0, "regression": 0, "multivariate": 0}.get(task, 4)
    y = np.zeros(rows, np.int64) if flat else rng.integers(0, max(2, classes), rows)
    wide = (rows, 4) if task in ("multiclass", "multilabel", "ontology", "sequence", "multivariate") else (rows,)
    scores = np.zeros(wide) if flat else np.round(rng.normal(size=wide), 1)
    predicted = scores if len(wide) == 1 else scores.argmax(axis=1)
    if task == "multilabel":
        y, predicted = np.zeros((rows, 4)) if flat else rng.integers(0, 2, (rows, 4)).astype(float), scores > 0.0
    elif task in ("multivariate", "regression", "ranking"):
        y, predicted = (np.zeros(wide) if flat else np.round(rng.normal(size=wide), 1) + 1.0), scores
    elif task in ("binary", "ordinal"):
        predicted = (scores > 0.0).astype(np.int64)
    parameters = {"edges": EDGES} if task == "ontology" else {}
    grouped = groups if task in ("ranking", "sequence") else None
    return ScoredRows(y, scores, predicted, weights, classes, parameters, grouped, ("B-A", "I-A", "B-B", "O")[:classes])


def names_for(task):
    return [
        f"{one.stem}@1.5" if one.number is not None and one.number.required else one.name
        for one in MEASURES.values()
        if task in one.tasks
    ]


def test_each_task_of_a_loss_has_measures_and_each_measure_says_what_it_is():
    assert {entry.cls.task for entry in LOSSES.all()} == set(TASKS)
    for one in MEASURES.values():
        assert one.tasks, one.name
        assert set(one.tasks) <= set(TASKS), one.name
        assert one.formula.endswith("."), one.name
        assert one.source, one.name


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", ["plain", "weighted", "copies", "one row", "flat", "unknown", "weightless"])
def test_a_measure_of_any_rows_is_a_number_or_undefined(task, kind):
    rng = np.random.default_rng(1)
    weights = {"weighted": rng.random(40) * (rng.random(40) > 0.2), "copies": rng.integers(0, 3, 40) * 1.0}.get(kind)
    weights = np.zeros(40) if kind == "weightless" else weights
    rows = some(task, 1 if kind == "one row" else 40, weights=weights, flat=kind == "flat")
    if kind == "unknown" and rows.classes > 2 and rows.y.ndim == 1:
        rows.y[0] = rows.classes
    values = evaluate(names_for(task), rows)
    assert all(value is None or np.isfinite(value) for value in values.values())
    if kind == "plain":
        undefined = {name for name, value in values.items() if value is None}
        # random numbers are below 0 now and then
        assert undefined <= {"ndcg"} | {name for name in values if "deviance" in name or name.startswith("d2_")}
    if kind == "weightless":
        assert set(values.values()) == {None}
    for name, value in values.items():
        least, most = chosen(name)[0].within
        assert value is None or least <= value <= most, name


@pytest.mark.parametrize("task", [task for task in TASKS if task != "sequence"])
def test_a_whole_weight_is_so_many_copies_for_every_measure(task):
    weights = np.random.default_rng(2).integers(0, 3, 40) * 1.0
    weighted, plain = some(task, weights=weights), some(task)
    for rows in (weighted, plain):
        if task in ("regression", "ranking"):
            rows.y[:] = np.abs(rows.y) + 0.5
    if task == "regression":
        for rows in (weighted, plain):  # the predictions too
            rows.scores[:] = np.abs(rows.scores) + 0.1
    copies = np.repeat(np.arange(40), weights.astype(int))
    groups = None if plain.groups is None else plain.groups[copies]
    fields = plain.y[copies], plain.scores[copies], plain.predicted[copies], None, plain.classes
    repeated = ScoredRows(*fields, plain.parameters, groups, plain.labels)
    names = [name for name in names_for(task) if name != "median_absolute_error" or HALF_WAY]
    expected = evaluate(names, repeated)
    assert None not in expected.values()
    assert evaluate(names, weighted) == pytest.approx(expected, rel=1e-10)


def test_the_weight_of_a_sentence_is_so_many_copies():
    plain = some("sequence")
    each = np.array([2, 0, 1, 3, 1, 2])
    rows = np.concatenate([np.flatnonzero(plain.groups == k) for k in range(6) for _ in range(each[k])])
    numbers = np.concatenate([np.full(np.sum(plain.groups == k), 10 * k + j) for k in range(6) for j in range(each[k])])
    repeated = ScoredRows(plain.y[rows], plain.scores[rows], plain.predicted[rows], None, 4, {}, numbers, plain.labels)
    weighted = some("sequence", weights=each[plain.groups] * 1.0)
    names = names_for("sequence")
    assert evaluate(names, weighted) == pytest.approx(evaluate(names, repeated), rel=1e-12)


def test_fractional_weights_where_a_ranking_has_a_place_for_them():
    rows = some("binary", weights=np.full(40, 0.5))
    values = evaluate(["break_even", "recall@5", "map", "ndcg"], rows)
    whole = evaluate(["break_even", "recall@10"], some("binary"))
    assert values["break_even"] == pytest.approx(whole["break_even"])
    assert values["recall@5"] == pytest.approx(whole["recall@10"])
    assert values["map"] is None
    assert values["ndcg"] is None


def test_a_number_behind_the_name_wins_over_the_parameter_of_the_loss():
    rows = some("binary")
    of_loss = ScoredRows(rows.y, rows.scores, rows.predicted, None, 2, {"k": 3, "beta": 2.0, "max_fpr": 0.5})
    order = np.argsort(-rows.scores, kind="stable")
    scores = np.arange(40)[::-1].astype(float)
    ranked = ScoredRows(rows.y[order], scores, rows.predicted[order], None, 2, {"k": 3})
    values = evaluate(["precision_at_k", "precision@7", "ndcg", "ndcg@3"], ranked)
    assert values["precision_at_k"] == pytest.approx(ranked.y[:3].mean())
    assert values["precision@7"] == pytest.approx(ranked.y[:7].mean())
    gains = ranked.y / np.log2(2.0 + np.arange(40))
    best = np.sort(ranked.y)[::-1] / np.log2(2.0 + np.arange(40))
    assert values["ndcg"] == pytest.approx(gains.sum() / best.sum())  # all ranks, whatever the k of the loss
    assert values["ndcg@3"] == pytest.approx(gains[:3].sum() / best[:3].sum())
    assert evaluate(["f_beta"], of_loss)["f_beta"] == evaluate(["f_beta@2"], rows)["f_beta@2"]
    assert evaluate(["partial_auc"], of_loss)["partial_auc"] == evaluate(["partial_auc@0.5"], rows)["partial_auc@0.5"]


@pytest.mark.parametrize(
    ("loss", "names", "words"),
    [
        ("hinge", ["auc", "mae"], "'mae' does not fit hinge; those that fit hinge (binary): accuracy, auc, "),
        ("hinge", ["aucc"], "'aucc' is unknown (did you mean 'auc'?); those that fit hinge (binary)"),
        ("hinge", ["auc@3"], "'auc@3': auc takes no number"),
        ("rank_hinge", ["ndgc@3"], "'ndgc@3' is unknown (did you mean 'ndcg'?)"),
        ("rank_hinge", ["ndcg@0"], "'ndcg@0': k is '0', expected a whole number >= 1"),
        ("rank_hinge", ["ndcg@2.5"], "'ndcg@2.5': k is '2.5', expected a whole number >= 1"),
        ("rank_hinge", ["ndcg@"], "'ndcg@': k is '', expected"),
        ("rank_hinge", ["mae"], "those that fit rank_hinge (ranking): break_even, expected_rank_utility[@half_life], "),
        ("ordinal", ["mae"], "those that fit ordinal (ordinal): kendall_tau, ndcg[@k]"),
        ("quantile", ["pinball@1"], "expected a number > 0 and < 1"),
        ("quantile", ["tweedie_deviance"], "'tweedie_deviance' needs a number: tweedie_deviance@power"),
        ("quantile", ["tweedie_deviance@0.5"], "expected a number any number, not between 0 and 1"),
        ("quantile", ["pinball@nan"], "expected a number"),
    ],
)
def test_one_message_names_what_is_wrong_and_what_fits(loss, names, words):
    with pytest.raises(InputError) as error:
        check_metrics(names, LOSSES.get(loss).cls)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_what_fits_is_taken():
    check_metrics(["auc", "average_precision", "map", "break_even", "f1", "log_loss", "ndcg@5"], LOSSES.make("hinge"))
    check_metrics(["tweedie_deviance", "tweedie_deviance@1.9"], LOSSES.make("tweedie"))
    check_metrics(["accuracy", "mae", "quadratic_kappa"], LOSSES.make("ordinal_thresholds"))
    for entry in LOSSES.all():
        names = [one.name for one in fitting(entry.cls) if not one.needs_number(entry.cls)]
        check_metrics(names, entry.cls)


def test_folds_keep_groups_together_and_have_equal_sizes():
    assert np.bincount(folds_of(100, 10)).tolist() == [10] * 10
    groups = np.repeat(np.arange(12) * 7, 5)
    fold = folds_of(60, 4, groups)
    assert np.bincount(fold).tolist() == [15] * 4
    assert all(len(set(fold[groups == group])) == 1 for group in groups)
    for folds in (1, 13):
        with pytest.raises(InputError, match=f"folds is {folds}, expected a number from 2 to the 12 groups"):
            folds_of(60, folds, groups)


def test_an_interval_takes_names_too():
    rows, fold = some("binary", 200), np.arange(200) % 5
    named = interval_over_folds(parts_of(rows, fold), "precision@3")
    parts = [evaluate(["precision@3"], rows.rows(fold == k))["precision@3"] for k in range(5)]
    assert named.values == pytest.approx(parts)


def test_measures_of_rankings_take_large_samples_of_equal_scores():
    y = (np.arange(20000) % 4 == 0).astype(np.int64)
    rows = ScoredRows(y, np.zeros(20000), y, None, 2, {})
    values = evaluate(["mrr", "map", "break_even", "precision@100", "kendall_tau"], rows)
    # the first of places 1, 2, ... with a relevant row: a geometric law of 1/4, but for the finite sample
    places = np.arange(1.0, 200.0)
    assert values["mrr"] == pytest.approx(np.sum(0.25 * 0.75 ** (places - 1.0) / places), rel=1e-3)
    assert values["map"] == pytest.approx(0.25, rel=1e-2)
    assert values["break_even"] == values["precision@100"] == 0.25
    assert values["kendall_tau"] == 0.0
