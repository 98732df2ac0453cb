"""Numbers are numbers at every door: text, truth values and halves of a whole number are refused by name."""

import dataclasses
import typing
from types import NoneType

import numpy as np
import pytest

import bmrm
from bmrm import InputError
from bmrm.data.generators import GENERATORS
from bmrm.losses import LOSSES
from bmrm.registry import SEARCHES, option_name
from bmrm.regularizers import REGULARIZERS
from bmrm.solvers import SOLVERS
from tests.targets import default_instance

REGISTRIES = [LOSSES, REGULARIZERS, SOLVERS, SEARCHES]
X, Y = np.array([[1.0, 2.0], [-1.0, 0.5], [0.3, -2.0], [-0.2, 0.1]]), np.array([1, 0, 1, 0])
ESTIMATORS = ["Classifier", "Regressor", "Ranker", "MultilabelClassifier", "OrdinalClassifier", "NoveltyDetector"]
ESTIMATORS += ["SequenceTagger"]


def types_of(cls, name):
    hint = typing.get_type_hints(cls)[name]
    return set(typing.get_args(hint)) or {hint}


def plain_options(*kinds):
    """Every option of a registered class whose type is one of these, or None."""
    classes = [(entry.name, entry.cls) for registry in REGISTRIES for entry in registry.all()]
    classes += [(f"synthetic:{name}", cls) for name, cls in GENERATORS.items()]
    found = [
        pytest.param(cls, field, id=f"{name}-{option_name(field.name)}")
        for name, cls in classes
        for field in dataclasses.fields(cls)
        if field.init and types_of(cls, field.name) - {NoneType} and types_of(cls, field.name) <= {*kinds, NoneType}
    ]
    assert len(found) > 5
    return found


def made(cls, name, value):
    entry = next((e for registry in REGISTRIES for e in registry.all() if e.cls is cls), None)
    if entry is None:
        return cls(**{name: value})
    instance = default_instance(entry)
    return dataclasses.replace(instance, **{name: value})


def refused(said, call, *arguments, **named):
    with pytest.raises(InputError) as caught:
        call(*arguments, **named)
    assert said in str(caught.value), caught.value


@pytest.mark.parametrize(("cls", "field"), plain_options(int, float))
def test_what_is_no_number_is_refused(cls, field):
    kinds = types_of(cls, field.name)
    whole = float not in kinds
    said = f"{field.name} is "
    expected = ", expected a whole number" if whole else ", expected a number"
    wrong = ["1", True, np.True_, [1], b"1", 1j, np.array([0.5, 0.5]), np.str_("1"), float("nan")]
    wrong += [1.5, np.float64(2.5), float("inf")] if whole else [10**400]
    wrong += [] if NoneType in kinds else [None]
    for value in wrong:
        refused(said, made, cls, field.name, value)
        refused(expected, made, cls, field.name, value)


@pytest.mark.parametrize(("cls", "field"), plain_options(bool))
def test_truth_values_are_no_numbers(cls, field):
    for value in (1, 0.0, "true", "no", []):
        refused(f"{field.name} is {value!r}, expected true or false", made, cls, field.name, value)
    assert getattr(made(cls, field.name, np.False_), field.name) is False


@pytest.mark.parametrize("value", [1, 1.0, np.float32(1.0), np.int64(1), np.array(1.0), np.uint8(1)])
def test_numbers_become_those_of_python(value):
    assert type(bmrm.L2(value).lam) is float
    assert bmrm.L2(value) == bmrm.L2(1.0)
    assert type(SOLVERS.make("lbfgs", {"max_iterations": value}).max_iterations) is int
    assert SOLVERS.make("newton", {"seed": value}).seed == 1


def test_numbers_of_numpy_are_saved(tmp_path):
    model = bmrm.fit(X, Y, loss={"name": "huber_hinge", "h": np.float32(0.25)}, lam=np.float64(0.1))
    model.save(tmp_path / "model.npz")
    assert bmrm.load_model(tmp_path / "model.npz").header["regularizer"]["lambda"] == 0.1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"lam": "1"}, "lam is '1', expected a number > 0"),
        ({"lam": True}, "lam is True, expected a number > 0"),
        ({"lam": [1.0]}, "lam is [1.0], expected a number > 0"),
        ({"regularizer": {"name": "l1", "lambda": "1e-3"}}, "lambda is '1e-3', expected a number > 0"),
        ({"loss": {"name": "quantile", "tau": "0.5"}}, "tau is '0.5', expected a number > 0 and < 1"),
        ({"max_iterations": "3"}, "max_iterations is '3', expected a whole number >= 1"),
        ({"max_iterations": 1.5}, "max_iterations is 1.5, expected a whole number >= 1"),
        ({"max_iterations": True}, "max_iterations is True, expected a whole number >= 1"),
        ({"tolerance": "1e-3"}, "tolerance is '1e-3', expected a number >= 0"),
        ({"time_limit": "9"}, "time_limit is '9', expected a number > 0, or None"),
        ({"solver": {"name": "lbfgs", "memory": "5"}}, "memory is '5', expected a whole number >= 1"),
        ({"threads": "2"}, "threads is '2', expected a whole number >= 1, or None"),
        ({"threads": 1.5}, "threads is 1.5, expected a whole number >= 1, or None"),
        ({"threads": True}, "threads is True, expected a whole number >= 1, or None"),
        ({"follow": ["accuracy"], "validation": (X, Y), "follow_every": "2"}, "follow_every is '2', expected a whole"),
        ({"follow": ["accuracy"], "validation": (X, Y), "follow_every": 1.5}, "follow_every is 1.5, expected a whole"),
    ],
)
def test_fit_says_which_number(arguments, said):
    refused(said, lambda: bmrm.fit(X, Y, **arguments))


@pytest.mark.parametrize("options", [{"max_iterations": "3"}, {"tolerance": True}, {"time_limit": [1]}])
def test_minimize_says_which_number(options):
    risk = bmrm.LinearRisk(bmrm.Dataset.from_arrays(X, 2.0 * Y - 1.0), LOSSES.make("hinge"))
    (name,) = options
    refused(f"{name} is {options[name]!r}, expected a", lambda: bmrm.minimize(risk, bmrm.L2(1.0), **options))


def test_risks_and_models_say_which_number():
    data = bmrm.Dataset.from_arrays(X, 2.0 * Y - 1.0)
    refused("threads is '2', expected a whole number", lambda: bmrm.LinearRisk(data, LOSSES.make("hinge"), threads="2"))
    model = bmrm.fit(X, Y)
    refused("count is 1.5, expected a whole number", lambda: model.top_weights(1.5))
    refused("folds is '2', expected a whole number", lambda: model.evaluate_folds(X, Y, folds="2"))
    refused("seed is True, expected a whole number", lambda: model.evaluate_folds(X, Y, folds=2, seed=True))
    refused("confidence is '1'", lambda: model.evaluate_folds(X, Y, folds=2, confidence="1"))


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(
    ("parameter", "values", "expected"),
    [
        ("alpha", ["1", True, None, [1.0]], "a number >= 0"),
        ("l1_ratio", ["1", False, None], "a number >= 0 and <= 1"),
        ("tol", ["1", True, None], "a number >= 0"),
        ("max_iter", ["3", True, 1.5, None], "a whole number >= 1"),
        ("time_limit", ["3", True], "a number > 0, or None"),
        ("threads", ["2", True, 1.5], "a whole number >= 1, or None"),
        ("fit_intercept", ["no", 1, None], "true or false"),
        ("warm_start", ["no", 1, None], "true or false"),
        ("verbose", ["1", 1.5], "a whole number or true or false >= 0"),
    ],
)
def test_estimators_say_which_number(name, parameter, values, expected):
    cls = getattr(bmrm, name)
    if parameter not in cls().get_params():
        assert parameter == "fit_intercept"
        return
    rows = [["a", "b"], ["b", "a"]] if name == "SequenceTagger" else X
    targets = {"SequenceTagger": [["N", "V"], ["V", "N"]], "NoveltyDetector": None}.get(name, Y)
    groups = {"groups": np.zeros(4, int)} if name == "Ranker" else {}
    for value in values:
        said = f"{name}: {parameter} is {value!r}, expected {expected}"
        refused(said, cls(**{parameter: value}).fit, rows, targets, **groups)


WRONG = [True, 1.5, -(10**400), 10**5000, "x", "", b"1", {}, {1}, np.array([1, 2]), np.zeros((1, 1)), object(), "a\0b"]
ROWS, SIGNS = np.eye(6), [1, -1] * 3


@pytest.mark.parametrize("value", WRONG, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize(
    "argument",
    [
        "bias",
        "scale",
        "follow",
        "callback",
        "positive_label",
        "start",
        "sample_weight",
        "class_weight",
        "calibrate",
        "offset",
        "features",
    ],
)
def test_arguments_of_fit_of_wrong_types(argument, value):
    more = {"validation": (ROWS, SIGNS)} if argument == "follow" else {}
    if (argument == "positive_label" and value is True) or (argument == "class_weight" and isinstance(value, dict)):
        return  # a label, and no factor but 1
    with pytest.raises(InputError) as caught:
        bmrm.fit(ROWS, SIGNS, **{argument: value}, **more)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("value", WRONG, ids=lambda value: type(value).__name__)
def test_methods_of_models_that_are_given_what_they_do_not_take(value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = bmrm.fit(ROWS, SIGNS)
    uses = [
        lambda: model.evaluate(ROWS, SIGNS, metrics=[value]),
        lambda: model.evaluate_scores(value, SIGNS),
        lambda: bmrm.load_model(value),
        lambda: bmrm.read_conll(value),
    ]
    if not isinstance(value, str) or value != "x":
        uses.append(lambda: model.save(value))
    for use in uses:
        with pytest.raises(InputError) as caught:
            use()
        assert len(str(caught.value)) < 500


def test_numbers_and_shapes_that_methods_do_not_take():
    model = bmrm.fit(ROWS, SIGNS)
    for use, message in (
        (lambda: model.evaluate(ROWS, SIGNS, metrics="auc"), r"metrics is 'auc', expected a list of names"),
        (lambda: model.evaluate(ROWS, SIGNS, metrics=3), r"metrics is 3, expected a list of names"),
        (lambda: model.evaluate_folds(ROWS, SIGNS, folds=10**5000), r"folds is <int>, expected a number from 2"),
        (lambda: model.predict_scores(np.zeros((6, 2))), r"scores have shape \(6, 2\), expected \(rows\)"),
        (lambda: bmrm.Classifier(fit_intercept=np.array([1, 2])).fit(ROWS, SIGNS), r"fit_intercept is array\(\[1, 2"),
        (lambda: SOLVERS.make("pegasos", {"variant": np.array([1, 2])}), r"variant is \[1, 2\], expected"),
    ):
        with pytest.raises(InputError, match=message):
            use()
