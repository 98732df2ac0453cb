"""Docstrings of estimators are whole: each parameter with its type and meaning, each attribute, each method."""

import importlib
import inspect
import re

import griffe
import numpy as np
import pytest

import bmrm
from bmrm import estimators
from pages.reference import described
from tests.pages import ROOT

NAMES = estimators.__all__
SHAPES = re.compile(r"\((rows|sequences)|list of|not looked at")
"""How what is no plain number or text is described: by its shape."""


def section(docstring, kind):
    parts = griffe.parse_numpy(griffe.Docstring(docstring), warnings=False, warn_missing_types=False)
    items = [item for part in parts if part.kind is kind for item in part.value]
    return {item.name: " ".join(filter(None, (str(item.annotation or ""), item.description))) for item in items}


def methods(cls):
    """Public methods that bmrm defines, by name."""
    members = {name: member for base in reversed(cls.__mro__) for name, member in vars(base).items()}
    found = {name: getattr(member, "fn", member) for name, member in members.items() if not name.startswith("_")}
    return {name: one for name, one in found.items() if inspect.isfunction(one) and one.__module__.startswith("bmrm.")}


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_has_a_type_a_meaning_and_its_default(name):
    cls = getattr(estimators, name)
    said = section(cls.__doc__, griffe.DocstringSectionKind.parameters)
    parameters = {key: one for key, one in inspect.signature(cls.__init__).parameters.items() if key != "self"}
    assert list(said) == list(parameters)
    for key, one in parameters.items():
        assert one.annotation not in (inspect.Parameter.empty, "Any")
        assert len(said[key]) > 20
        assert "as of" not in said[key]
        if key not in ("loss", "templates", "classes"):
            stated = re.search(r"Default ([^\s,]+?)[.,](\s|$)", said[key]).group(1).strip("`")
            assert stated == str(one.default) or float(stated) == one.default


@pytest.mark.parametrize("name", NAMES)
def test_every_method_says_what_it_takes(name):
    cls = getattr(estimators, name)
    assert {"fit", "predict", "set_params"} <= methods(cls).keys()
    for method in methods(cls).values():
        said = section(method.__doc__, griffe.DocstringSectionKind.parameters)
        for key in inspect.signature(method).parameters:
            if key not in ("self", "params", "n_alphas", "eps", "stop"):  # which are no arrays
                assert SHAPES.search(said[key]), (method, key)


def test_every_attribute_is_described():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(40, 2)), np.arange(40) % 2
    for name, model in {
        "Classifier": bmrm.Classifier().fit(X, y),
        "Regressor": bmrm.Regressor().fit(X, y),
        "Ranker": bmrm.Ranker().fit(X, y, groups=np.arange(40) // 4),
        "MultilabelClassifier": bmrm.MultilabelClassifier().fit(X, np.stack((y, 1 - y), axis=1)),
        "OrdinalClassifier": bmrm.OrdinalClassifier().fit(X, y),
        "NoveltyDetector": bmrm.NoveltyDetector().fit(np.abs(X)),
        "SequenceTagger": bmrm.SequenceTagger().fit([["a", "b"]], [["A", "B"]]),
    }.items():
        attributes = section(getattr(estimators, name).__doc__, griffe.DocstringSectionKind.attributes)
        described_names = {one.strip() for key in attributes for one in key.split(",")}
        fitted = {key for key in vars(model) if key.endswith("_") and not key.startswith("_")}
        assert fitted <= described_names
        assert not any("as of" in text for text in attributes.values())


@pytest.mark.parametrize("name", NAMES)
def test_the_page_shows_types_and_all_methods(name):
    cls = getattr(estimators, name)
    page = described(f"{cls.__module__}.{name}")
    for key in inspect.signature(cls.__init__).parameters:
        shown = key.replace("_", "&#95;")
        assert key == "self" or re.search(rf"- <code>{re.escape(shown)}</code> \(<code>[^)]+\): \S", page), key
    for method in methods(cls):
        assert f"#### `{method}`" in page
    assert "From scikit-learn: " in page
    assert "get&#95;params" in page


def test_probabilities_are_on_the_page():
    classifier, tagger = (
        described(f"bmrm.estimators.{one}") for one in ("classifier.Classifier", "tagger.SequenceTagger")
    )
    for page, names in (
        (classifier, ["predict_proba", "predict_log_proba"]),
        (tagger, ["predict_proba", "predict_marginals"]),
    ):
        for name in names:
            assert f"#### `{name}`" in page
    assert "score" in classifier.rpartition("From scikit-learn: ")[2]


def test_no_entry_of_the_page_sends_its_reader_elsewhere():
    paths = re.findall(r"^::: (\S+)", (ROOT / "docs/api.md").read_text(), re.M)
    assert len(paths) > 30
    for path in paths:
        module, _, name = path.rpartition(".")
        getattr(importlib.import_module(module), name)
        page = described(path)
        assert not re.search(r"\bas of\b|\blikewise\b(?=[.,;]|$)|verbose : ", page, re.I | re.M), path
