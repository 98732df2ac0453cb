"""Curves of a model's verdicts, against scikit-learn and formulas; all of them short."""

import itertools
import tracemalloc

import numpy as np
import pytest
from scipy.stats import t
from sklearn import metrics as sk

from bmrm.losses import LOSSES
from bmrm.metrics import curves
from bmrm.metrics.core import ScoredRows
from bmrm.metrics.curves import CLASSES, CURVES, PAIRS, POINTS, curves_of, intervals_of, profile_of

RANDOM = np.random.default_rng(7)


def loss(name):
    return LOSSES.make(name, {})


def binary(rows, weights=None):
    y = RANDOM.integers(2, size=rows)
    f = RANDOM.normal(size=rows).round(2) + 1.5 * y
    return ScoredRows(y, f, (f > 0).astype(int), weights, 2, {}, None, ("no", "yes"))


def area(x, y):
    return float(np.trapezoid(y, x)) if hasattr(np, "trapezoid") else float(np.trapz(y, x))


@pytest.mark.parametrize(("rows", "within"), [(30, 1e-12), (50_000, 5e-4)])
def test_roc_has_the_area_that_scikit_learn_gives_and_few_points(rows, within):
    s = binary(rows, RANDOM.random(rows))
    found = curves_of(s, loss("hinge"))["roc"]
    assert area(found["fpr"], found["tpr"]) == pytest.approx(
        sk.roc_auc_score(s.y, s.scores, sample_weight=s.weights), abs=within
    )
    assert len(found["fpr"]) == len(found["tpr"]) <= POINTS
    assert (found["fpr"][0], found["tpr"][0], found["fpr"][-1], found["tpr"][-1]) == (0, 0, 1, 1)


@pytest.mark.parametrize("rows", [30, 50_000])
def test_precision_and_recall_are_points_of_scikit_learns_curve(rows):
    s = binary(rows)
    found = curves_of(s, loss("roc_area"))["precision_recall"]
    precision, recall, _ = sk.precision_recall_curve(s.y, s.scores)
    assert set(zip(found["recall"], found["precision"])) <= set(zip(recall.tolist(), precision.tolist()))
    assert len(found["recall"]) <= POINTS
    assert found["base"] == pytest.approx(s.y.mean())
    assert area(found["recall"][::-1], found["precision"][::-1]) == pytest.approx(
        area(recall[::-1], precision[::-1]), abs=0.01
    )


def test_lines_of_many_rows_take_no_memory_of_their_own():
    s = binary(200_000)
    s = ScoredRows(s.y, s.scores + 1e-6 * RANDOM.random(200_000), s.predicted, None, 2, {}, None, ("no", "yes"))
    assert len(s.above[0]) > 190_000
    tracemalloc.start()
    roc, precision_recall = (CURVES[name].function(s) for name in ("roc", "precision_recall"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(roc["fpr"]) > 100
    assert len(precision_recall["recall"]) > 100
    assert peak < 8 * 200_000 / 4  # `base` looks at the positive rows


@pytest.mark.parametrize("name", ["reliability", "confusion"])
def test_sums_over_many_rows_are_made_piece_by_piece(name, monkeypatch):
    s = binary(200_000, RANDOM.random(200_000))
    whole = CURVES[name].function(s)
    monkeypatch.setattr(curves, "AT_A_TIME", 1000)
    tracemalloc.start()
    found = CURVES[name].function(s)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 200_000 / 4
    assert whole.keys() == found.keys()
    for key, numbers in whole.items():
        assert found[key] == (numbers if key == "labels" else pytest.approx(np.array(numbers), rel=1e-12))


def test_reliability_is_what_was_predicted_and_what_came_true():
    s = binary(2000)
    found = curves_of(s, loss("logistic"))["reliability"]
    p = 1.0 / (1.0 + np.exp(-s.scores))
    bins = [(p >= low) & (p < low + 0.1) for low in np.arange(10) / 10]
    assert min(rows.sum() for rows in bins if rows.any()) >= 5
    assert found["rows"] == [int(rows.sum()) for rows in bins if rows.any()]
    assert found["predicted"] == pytest.approx([p[rows].mean() for rows in bins if rows.any()])
    assert found["observed"] == pytest.approx([s.y[rows].mean() for rows in bins if rows.any()])
    assert "reliability" not in curves_of(s, loss("hinge")), "scores of a hinge loss are no log-odds"


def test_reliability_of_several_classes_is_of_the_class_predicted():
    f = np.repeat(np.log([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.72, 0.08]]), 5, axis=0)
    y = np.repeat([0, 2, 1], 5)
    s = ScoredRows(y, f + 5.0, f.argmax(axis=1), None, 3, {}, None, ("a", "b", "c"))
    found = curves_of(s, loss("softmax"))["reliability"]
    assert found["predicted"] == pytest.approx([0.6, 0.71])
    assert found["observed"] == [0.0, 1.0]
    assert found["rows"] == [5, 10]


@pytest.mark.parametrize(
    ("counts", "rows"),
    [
        ([1, 0, 0, 6, 0, 9, 0, 0, 0, 1], [7, 10]),
        ([5, 0, 0, 0, 0, 0, 0, 0, 0, 5], [5, 5]),
        ([2, 2, 2, 2, 2, 2, 2, 2, 2, 2], [6, 6, 8]),
        ([0, 0, 0, 0, 5, 0, 0, 0, 0, 0], [5]),
        ([1, 0, 0, 0, 2, 0, 0, 0, 0, 1], None),
    ],
)
def test_bins_of_few_rows_are_one_with_their_neighbours(counts, rows):
    p = np.repeat(np.arange(10) / 10 + 0.05, counts)
    y = RANDOM.integers(2, size=len(p))
    s = ScoredRows(y, np.log(p / (1.0 - p)), (p > 0.5).astype(int), None, 2, {}, None, ("no", "yes"))
    found = curves_of(s, loss("logistic")).get("reliability")
    assert (found and found["rows"]) == rows
    if found:
        ends = np.cumsum([0, *rows])
        assert found["predicted"] == pytest.approx([p[a:b].mean() for a, b in itertools.pairwise(ends)])
        assert found["observed"] == pytest.approx([y[a:b].mean() for a, b in itertools.pairwise(ends)])


@pytest.mark.parametrize("rows", [4, 5, 9, 10, 99])
def test_a_bin_of_predicted_numbers_has_five_rows_at_least(rows):
    predicted = RANDOM.normal(size=rows)
    found = curves_of(ScoredRows(predicted + 1.0, predicted, predicted, None, 0, {}), loss("least_squares"))
    assert ("calibration" in found) == (rows >= 5)
    if found:
        assert len(found["calibration"]["predicted"]) == rows // 5


def test_confusion_is_scikit_learns_with_a_row_for_labels_that_the_model_does_not_know():
    y, predicted = RANDOM.integers(4, size=200), RANDOM.integers(3, size=200)
    weights = RANDOM.random(200)
    s = ScoredRows(y, RANDOM.normal(size=(200, 3)), predicted, weights, 3, {}, None, ("a", "b", "c"))
    found = curves_of(s, loss("multiclass_hinge"))["confusion"]
    expected = sk.confusion_matrix(y, predicted, sample_weight=weights)[:, :3]
    assert found["labels"] == ["a", "b", "c", "(unknown)"]
    np.testing.assert_allclose(found["matrix"], expected)
    known = s.rows(y < 3)
    assert curves_of(known, loss("multiclass_hinge"))["confusion"]["labels"] == ["a", "b", "c"]


def test_of_many_classes_the_largest_errors_are_listed():
    classes = CLASSES + 10
    y, predicted = np.repeat(np.arange(classes), 10), np.repeat(np.arange(classes), 10)
    predicted[:7], predicted[10:15] = 3, 4
    names = tuple(f"c{k}" for k in range(classes))
    s = ScoredRows(y, np.zeros((len(y), classes)), predicted, None, classes, {}, None, names)
    assert curves_of(s, loss("softmax"))["confusion"] == {"errors": [["c0", "c3", 7.0], ["c1", "c4", 5.0]]}
    shuffled = ScoredRows(y, s.scores, RANDOM.permutation(y), None, classes, {}, None, names)
    assert len(curves_of(shuffled, loss("softmax"))["confusion"]["errors"]) == PAIRS


def test_ndcg_by_query_are_scikit_learns_values_in_order():
    y, f = RANDOM.integers(2, size=90), RANDOM.normal(size=90)
    y[:6] = 0  # a query without a relevant document has none
    groups = np.repeat(np.arange(15), 6)
    s = ScoredRows(y, f, f, None, 0, {}, groups, ())
    found = curves_of(s, loss("ndcg"))["ndcg_by_query"]
    queries = (slice(6 * k, 6 * k + 6) for k in range(15))
    expected = sorted(sk.ndcg_score([y[q]], [f[q]]) for q in queries if y[q].any())
    assert found["queries"] == len(expected)
    assert found["values"] == pytest.approx(expected)


def test_calibration_is_of_bins_of_equally_many_rows():
    predicted = RANDOM.normal(size=400)
    y = predicted + RANDOM.normal(size=400)
    found = curves_of(ScoredRows(y, predicted, predicted, None, 0, {}), loss("least_squares"))["calibration"]
    order = np.argsort(predicted).reshape(20, 20)
    assert found["predicted"] == pytest.approx(predicted[order].mean(axis=1))
    assert found["observed"] == pytest.approx(y[order].mean(axis=1))
    assert found["low"] == pytest.approx(np.quantile(y[order], 0.1, axis=1))


def test_rows_of_weight_0_and_parts_with_one_class_have_no_curves():
    s = binary(40, np.zeros(40))
    assert curves_of(s, loss("hinge")) == {}
    one = s.rows(s.y == 1)
    one = ScoredRows(one.y, one.scores, one.predicted, None, 2, {}, None, one.labels)
    assert set(curves_of(one, loss("hinge"))) == {"confusion"}


def test_intervals_are_students_over_ten_parts():
    s = binary(1000)
    found = intervals_of(s, ("accuracy",))["accuracy"]
    pairs = sorted(zip(s.scores.tolist(), s.y.tolist(), (s.y == s.predicted).tolist()))
    right = np.array([right for _, _, right in pairs])
    fold = np.random.default_rng(0).permutation(1000) % 10
    values = [right[fold == k].mean() for k in range(10)]
    low, high = t.interval(0.95, 9, np.mean(values), np.std(values, ddof=1) / np.sqrt(10))
    assert (found["mean"], found["low"], found["high"]) == pytest.approx((np.mean(values), low, high))
    assert intervals_of(s.rows(RANDOM.permutation(len(s.y))), ("accuracy",))["accuracy"] == found
    assert intervals_of(binary(49), ("accuracy",)) == {}
    rare = ScoredRows(np.arange(100) == 3, s.scores[:100], s.predicted[:100], None, 2, {}, None, s.labels)
    assert set(intervals_of(rare, ("accuracy", "auc"))) == {"accuracy"}, "most parts have one class only"


def test_a_profile_counts_labels_or_says_where_numbers_lie():
    s = ScoredRows(
        np.array([1, 1, 0, 2]), np.zeros(4), np.zeros(4), np.ones(4), 2, {}, np.array([0, 0, 1, 1]), ("a", "b")
    )
    assert profile_of(s) == {
        "rows": 4,
        "labels": [["b", 2], ["a", 1]],
        "classes": 2,
        "unknown": 1,
        "groups": 2,
        "weight": 4.0,
    }
    numbers = ScoredRows(np.array([3.0, 1.0, 2.0]), np.zeros(3), np.zeros(3), None, 0, {})
    assert profile_of(numbers) == {"rows": 3, "quantiles": [1.0, 1.5, 2.0, 2.5, 3.0]}


def test_every_curve_fits_some_loss_of_the_registry():
    fitting = {name for name, one in CURVES.items() if any(one.fits(entry.cls) for entry in LOSSES.all())}
    assert fitting == set(CURVES)


def test_labels_that_are_whole_numbers_have_no_point():
    s = ScoredRows(np.array([0, 1, 1]), np.zeros(3), np.array([0, 0, 1]), None, 2, {}, None, ("-1.0", "1.5"))
    assert profile_of(s)["labels"] == [["1.5", 2], ["-1", 1]]
    assert curves_of(s, loss("hinge"))["confusion"]["labels"] == ["-1", "1.5"]
