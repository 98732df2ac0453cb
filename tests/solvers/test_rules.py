"""The rules of `auto`: what a problem is called, which rule holds, and that they stay a page."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from benchmarks.decisions import Recorded
from bmrm.data.dataset import Dataset
from bmrm.kernels.workers import usable_cores
from bmrm.losses import LOSSES
from bmrm.problem import Status, ability
from bmrm.problem.abilities import ProblemSize
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS
from bmrm.solvers._core.auto.rules import ALONE, NUMBERS, RULES, WORDS, Rule, Traits, advice


def risk_of(loss: str, rows: int = 50) -> LinearRisk:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 5))
    return LinearRisk(Dataset.from_arrays(X, rng.integers(0, 3 if loss == "softmax" else 2, rows)), LOSSES.make(loss))


@pytest.mark.parametrize(
    ("loss", "regularizer", "words"),
    [
        ("hinge", L2(0.1), "kinked, one score, rows, dual steps, l2, smooth regularizer"),
        ("logistic", L1(0.1), "smooth, one score, rows, dual steps, l1"),
        ("least_squares", ElasticNet(0.1), "smooth, quadratic, one score, rows, dual steps, l1 and l2"),
        ("softmax", L2(0.1), "smooth, several scores, rows, dual steps, l2, smooth regularizer"),
        ("roc_area", L2(0.1), "kinked, one score, l2, smooth regularizer"),
        ("f_beta", L2(0.1), "kinked, one score, one maximum, l2, smooth regularizer"),
    ],
)
def test_words_say_what_risk_and_regularizer_can_do(loss, regularizer, words):
    assert Traits(risk_of(loss), regularizer).words == {*words.split(", "), "scores", "master"}


def test_a_free_intercept_has_a_word():
    assert "free intercept" in Traits(FreeIntercept(risk_of("hinge")), L2(0.1)).words


def test_numbers_of_a_problem():
    risk = risk_of("hinge", rows=100)
    X = risk.data.X
    expected = {"rows": 100, "dim": 5, "smaller": 5, "entries": 5, "rank": ability(risk, ProblemSize).effective_rank}
    expected |= {"ranks": 1, "threads": usable_cores(), "products": 500, "each": 100}
    expected["spread"] = expected["rank"] / 5.0
    expected["lambda"] = 0.01 * 100 / np.mean(np.sum(X * X, axis=1))
    expected["condition"] = np.mean(np.sum(X * X, axis=1)) / 0.01
    case = Traits(risk, L2(0.01))
    assert {name: case.number(name) for name in NUMBERS} == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("regularizer", "power"), [(L2, 2), (L1, 1)])
def test_the_unit_of_features_does_not_matter(regularizer, power):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 4)), rng.integers(0, 2, 3000)
    risks = [LinearRisk(Dataset.from_arrays(X * unit, y), LOSSES.make("hinge")) for unit in (1.0, 10.0)]
    here, there = (Traits(risk, regularizer(0.1 * unit**power)) for risk, unit in zip(risks, (1, 10), strict=True))
    for name in NUMBERS:
        assert here.number(name) == pytest.approx(there.number(name), rel=1e-12, nan_ok=name == "condition")


@dataclass(frozen=True)
class Told:
    words: frozenset[str]
    numbers: dict[str, float] = field(default_factory=dict)

    def number(self, name: str) -> float:
        return self.numbers.get(name, math.nan)


def test_a_rule_holds_within_its_bounds_and_where_numbers_are_known():
    rule = Rule("smooth, l2", ("newton",), most={"dim": 100}, least={"rows": 10})
    words = frozenset({"smooth", "l2", "rows"})
    assert rule.holds(Told(words, {"dim": 100, "rows": 10}))
    assert not rule.holds(Told(words, {"dim": 101, "rows": 10}))
    assert not rule.holds(Told(words, {"dim": 100, "rows": 9}))
    assert not rule.holds(Told(words, {"dim": 100}))
    assert not rule.holds(Told(frozenset({"smooth"}), {"dim": 100, "rows": 10}))
    assert str(rule) == "smooth, l2, m at least 10, d at most 100"


def test_rules_speak_of_what_there_is():
    known = {entry.name for entry in SOLVERS.all()}
    for rule in RULES:
        assert set(rule.solvers) <= known or rule.solvers == (ALONE,)
        assert {word for word in rule.kind.split(", ") if word} <= set(WORDS)
        assert {*rule.most, *rule.least} <= set(NUMBERS)
    assert str(RULES[-1]) == "anything else"
    assert len(set(map(str, RULES))) == len(RULES)


def test_every_rule_comes_to_its_turn():
    """None is hidden by those before it."""
    for rule in RULES:
        near = {**dict.fromkeys(NUMBERS, math.nan), **rule.most, **rule.least}
        assert advice(Told(frozenset(filter(None, rule.kind.split(", "))), near))[0] is rule


def test_the_rules_fit_what_was_measured():
    """Their first choice on the problems of the table, which they were chosen on."""
    lines = (Path(__file__).parents[2] / "benchmarks" / "decisions.jsonl").read_text().splitlines()[1:]
    behind = []
    for line in map(json.loads, lines):
        times = {name: seconds for name, seconds in line["seconds"].items() if seconds is not None}
        if times:
            rule, _ = advice(Recorded(frozenset(line["words"]), line["numbers"]))
            first = next((name for name in rule.solvers if name in line["seconds"]), "")
            behind.append(times.get(first, math.inf) / min(times.values()))
    assert len(behind) > 2000
    assert np.mean(np.array(behind) <= 1.3) > 0.8
    assert np.mean(np.array(behind) > 3.0) < 0.05


def test_auto_and_its_rules_stay_a_page():
    folder = Path(__file__).parents[2] / "bmrm" / "solvers"
    sources = [folder / "auto.py", *(folder / "_core" / "auto" / name for name in ("rules.py", "turns.py"))]
    assert sum(map(lines_of_code, sources)) <= 300


def lines_of_code(path: Path) -> int:
    """Without comments, docstrings and blank lines."""
    import ast

    source = path.read_text()
    strings = [
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    told = {number for one in strings for number in range(one.lineno, (one.end_lineno or one.lineno) + 1)}
    lines = enumerate(source.splitlines(), start=1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and number not in told for number, line in lines)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "roc_area", "f_beta", "softmax"])
def test_auto_says_which_rule_it_follows(loss):
    risk, regularizer = risk_of(loss), L2(0.1)
    rule, _ = advice(Traits(risk, regularizer))
    solution = SOLVERS.make("auto", {"tolerance": 1e-3}).minimize(risk, regularizer, callback=lambda line: None)
    assert solution.status is Status.CONVERGED
    assert solution.solver.startswith(rule.solvers[0])
    assert str(rule) in solution.solver


@pytest.mark.parametrize(("threads", "solver"), [(1, "dual_coordinate"), (2, "newton"), (8, "newton")])
def test_products_of_second_derivatives_gain_by_threads_and_dual_steps_hardly(threads, solver):
    risk, lam = risk_of("softmax"), {"lambda": 0.05, "condition": 1e6, "rows": 1e5, "dim": 1e4, "products": 1e7}
    told = Told(Traits(risk, L2(0.1)).words, lam | {"threads": threads})
    assert advice(told)[0].solvers[0] == solver


SCORES = {"rows": 1e5, "dim": 1e4, "products": 1e8, "each": 1e4}


@pytest.mark.parametrize(
    ("words", "numbers", "alone"),
    [
        ("smooth, one score, rows, l2", {"ranks": 2, "products": 1e6}, True),
        ("smooth, one score, rows, l2", {"ranks": 2, "each": 10}, True),
        ("smooth, one score, rows, l2", {"ranks": 2}, False),
        ("kinked, several scores, rows, l2", {"ranks": 4}, True),
        ("kinked, several scores, rows, l2", {"ranks": 5}, False),
        ("kinked, one score, rows, l2", {"ranks": 8}, True),
        ("kinked, one score, rows, l2", {"ranks": 8, "dim": 100}, False),
        ("kinked, one score, rows, l2", {"ranks": 9}, False),
        ("smooth, several scores, groups, l2", {"ranks": 6, "dim": 1e5}, True),
        ("smooth, several scores, groups, l2", {"ranks": 7, "dim": 1e5}, False),
        ("smooth, several scores, groups, l2", {"ranks": 2}, False),
        ("kinked, several scores, groups, l2", {"ranks": 3, "dim": 1e5}, True),
        ("kinked, several scores, groups, l2", {"ranks": 4, "dim": 1e5}, False),
    ],
)
def test_rank_0_solves_alone_what_messages_or_dual_steps_over_ranks_would_make_slow(words, numbers, alone):
    told = frozenset({"ranks", "gathered", *words.split(", ")})
    assert (advice(Told(told, SCORES | numbers))[0].solvers == (ALONE,)) is alone
    rule = advice(Told(told - {"gathered"}, SCORES | numbers))[0]
    assert rule.solvers != (ALONE,)
    assert rule.kind.startswith("ranks, ")
