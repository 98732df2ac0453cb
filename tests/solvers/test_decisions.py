"""Choosing by the nearest measurements."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import ProblemSize, ability
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS, auto
from bmrm.solvers._core.auto import decisions
from bmrm.solvers._core.auto.decisions import Case, Measured, case_of, kind_of, ranked
from bmrm.solvers._core.auto.portfolio import Chains


def risk_of(loss: str, rows: int = 50) -> LinearRisk:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 5))
    return LinearRisk(Dataset.from_arrays(X, rng.integers(0, 3 if loss == "softmax" else 2, rows)), LOSSES.make(loss))


@pytest.mark.parametrize(
    ("loss", "regularizer", "kind"),
    [
        ("hinge", L2(0.1), "kinked, one score, by rows, l2"),
        ("logistic", L1(0.1), "smooth, one score, by rows, l1"),
        ("logistic", ElasticNet(0.1), "smooth, one score, by rows, l1 and l2"),
        ("roc_area", L2(0.1), "kinked, one score, l2"),
    ],
)
def test_kinds_say_what_risk_and_regularizer_can_do(loss, regularizer, kind):
    assert kind_of(risk_of(loss), regularizer) == kind


def test_several_scores_and_a_free_intercept_are_kinds_of_their_own():
    assert "several scores" in kind_of(risk_of("softmax"), L2(0.1))
    assert kind_of(FreeIntercept(risk_of("hinge")), L2(0.1)) == "kinked, one score, by rows, free intercept, l2"


def test_a_place_is_logarithms():
    risk = risk_of("hinge", rows=100)
    case = case_of(risk, L2(0.01), 1e-3)
    assert case is not None
    X = risk.data.X
    scaled_lambda = np.log10(0.01 * 100 / np.mean(np.sum(X * X, axis=1)))
    rank = np.log10(ability(risk, ProblemSize).effective_rank)
    np.testing.assert_allclose(case.place, [2.0, np.log10(5), np.log10(5), rank, scaled_lambda, -3.0], atol=1e-12)


@pytest.mark.parametrize(("regularizer", "power"), [(L2, 2), (L1, 1)])
def test_the_unit_of_features_does_not_matter(regularizer, power):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 4)), rng.integers(0, 2, 3000)
    risks = [LinearRisk(Dataset.from_arrays(X * unit, y), LOSSES.make("hinge")) for unit in (1.0, 10.0)]
    here, there = (
        case_of(risk, regularizer(0.1 * unit**power), 1e-3) for risk, unit in zip(risks, (1, 10), strict=True)
    )
    assert here is not None
    assert there is not None
    np.testing.assert_allclose(here.place, there.place, atol=1e-12)


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Few rows: `a` wins; many: `b`, where `a` was never measured."""
    lines = [
        {"kind": "k", "place": [2.0], "seconds": {"a": 0.1, "b": 1.0}},
        {"kind": "k", "place": [2.1], "seconds": {"a": 0.2, "b": 0.5}},
        {"kind": "k", "place": [6.0], "seconds": {"b": 1.0, "c": None}},
        {"kind": "k", "place": [6.0], "seconds": {"b": None, "c": 1.0}},
        {"kind": "k", "place": [6.0], "seconds": {"b": 1.0, "c": None}},
    ]
    path = tmp_path / "decisions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.setattr(decisions, "TABLE", path)
    decisions._measurements.cache_clear()
    yield
    decisions._measurements.cache_clear()


@pytest.fixture
def shared_table(tmp_path, monkeypatch):
    """`dual_coordinate` wins in one process; over ranks `a` does, where that was measured."""
    alone = {"dual_coordinate": 0.1, "dual_coordinate > b": 0.2, "a": 3.0, "b": 0.5}
    lines = [
        {"kind": "k", "place": [2.0], "seconds": alone},
        {"kind": "k", "place": [6.0], "seconds": alone},
        {"kind": "k", "place": [6.0], "ranks": 2, "seconds": {"dual_coordinate": 9.0, "a": 0.1, "b": 5.0}},
    ]
    path = tmp_path / "decisions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.setattr(decisions, "TABLE", path)
    decisions._measurements.cache_clear()
    yield
    decisions._measurements.cache_clear()


@pytest.mark.usefixtures("shared_table")
def test_measurements_over_ranks_decide_over_ranks_only():
    assert ranked(Case("k", (6.0,)))[0] == "dual_coordinate"
    assert ranked(Case("k", (6.0,), shared=True))[0] == "a"


@pytest.mark.usefixtures("shared_table")
def test_one_process_says_nothing_of_solvers_whose_steps_depend_on_ranks():
    order = ranked(Case("k", (2.0,), shared=True))
    assert order[:2] == ["b", "a"]
    assert set(order[2:]) == {"dual_coordinate", "dual_coordinate > b"}


@pytest.mark.usefixtures("table")
def test_the_nearest_measurements_decide():
    assert ranked(Case("k", (2.05,)))[0] == "a"
    assert ranked(Case("k", (6.0,)))[0] == "b"
    assert ranked(Case("another", (2.0,))) == []


def test_the_table_names_solvers_that_there_are():
    known = {entry.name for entry in SOLVERS.all()}
    _, *measured = map(json.loads, decisions.TABLE.read_text().splitlines())
    kinds = {line["kind"]: 0 for line in measured}
    for kind in kinds:
        lines = decisions._measurements(kind)
        kinds[kind] = len(lines.measured)
        for line in lines.measured:
            assert len(line.place) == 6
            assert {part for name in line.seconds for part in name.split(" > ")} <= known
            assert all(time is None or time > 0.0 for time in line.seconds.values())
    assert sum(kinds.values()) == len(measured)


def test_beyond_all_measurements_the_nearest_edge_counts():
    near = Measured((0.0, 0.0), False, {"a": 1.0, "b": 2.0})
    far = Measured((3.0, 4.0), False, {"a": 2.0, "b": 1.0})
    table = decisions.Lines([near] * 8 + [far] * 8)
    assert ranked(Case("k", (0.0, 4.0 + 100.0)), table)[0] == ranked(Case("k", (0.0, 4.0)), table)[0]
    assert ranked(Case("k", (-50.0, 0.0)), table)[0] == "a"
    assert ranked(Case("k", (3.0, 50.0)), table)[0] == "b"


def test_auto_tries_solvers_that_end_differently(tmp_path, monkeypatch):
    """The first of those that end with the bundle, the fastest of the others, then what fits any hinge."""
    risk, regularizer = risk_of("hinge"), L2(0.1)
    case = case_of(risk, regularizer, 1e-3)
    assert case is not None
    seconds = {"line_search_bundle": 1.0, "lbfgs > line_search_bundle": 1.1, "semismooth_newton": 1.2, "bundle": 9.0}
    path = tmp_path / "decisions.jsonl"
    path.write_text(json.dumps({"kind": case.kind, "place": case.place, "seconds": seconds}) + "\n")
    monkeypatch.setattr(decisions, "TABLE", path)
    decisions._measurements.cache_clear()
    made = []
    monkeypatch.setattr(auto, "Chains", lambda **options: made.append(options["names"]) or Chains(**options))
    auto.Auto(tolerance=1e-3).minimize(risk, regularizer)
    decisions._measurements.cache_clear()
    assert made == [("line_search_bundle", "semismooth_newton", "dual_coordinate")]
