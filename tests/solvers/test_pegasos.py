"""Pegasos against plain loops, and the rules of its variants on samples that are written down."""

import itertools

import numpy as np
import pytest

from bmrm.app.config.config import load_settings
from bmrm.app.fit import fit
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import IncompatibleError, InputError, Start, Status
from bmrm.problem.abilities import RowSubsets
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers.pegasos import Pegasos, Probability, Sampler, TwoOut
from tests import problems

LAM = 0.05


class Recording(problems.ScoredRisk):
    """Writes down every sample and where it was evaluated; counts evaluations of all rows."""

    passes = 0

    def value_and_subgradient(self, w):
        self.passes += 1
        return super().value_and_subgradient(w)

    def ability(self, kind):
        self.log = getattr(self, "log", [])
        return RecordingRows(self) if kind is RowSubsets else super().ability(kind)


class RecordingRows(problems.Rows):
    def value_and_subgradient_of(self, rows, w):
        self.risk.log.append((rows, w.copy()))
        return super().value_and_subgradient_of(rows, w)


def run(kind="hinge", **options):
    risk = Recording(*problems.data(kind), kind)
    solution = Pegasos(**{"tolerance": 0.0, "max_iterations": 3, "sample": 5, **options}).minimize(risk, L2(LAM))
    return risk, solution


def objective(risk, w, rows=slice(None)):
    part = problems.PlainRisk(risk.X[rows], risk.y[rows], risk.kind)
    return part.value_and_subgradient(w)[0] + L2(LAM).value(w)


def step(risk, w, rows, t, radius):
    """One line of the paper: subgradient step of the hinge loss, then the ball."""
    X, y = risk.X[rows], risk.y[rows]
    violators = y * (X @ w) < 1.0
    w = (1.0 - 1.0 / t) * w + (y[violators] @ X[violators]) / (LAM * t * len(rows))
    norm = np.linalg.norm(w)
    return w * min(1.0, radius / norm) if norm > 0.0 else w


@pytest.mark.parametrize("projection", [False, True])
def test_steps_are_those_of_the_paper(projection):
    risk, solution = run(projection=projection)
    radius = 1.0 / np.sqrt(LAM) if projection else np.inf
    assert len(risk.log) == solution.details["steps"] == 36
    w = np.zeros(7)
    for t, (rows, at) in enumerate(risk.log, 1):
        np.testing.assert_allclose(at, w, atol=1e-12)
        assert len(set(rows.tolist())) == 5
        w = step(risk, w, rows, t, radius)
        assert np.linalg.norm(w) <= radius * (1.0 + 1e-12)
    assert objective(risk, w) >= solution.objective


@pytest.mark.parametrize("sample", [60, 1000, None])
def test_a_sample_of_all_rows_is_subgradient_descent(sample):
    risk, solution = run(sample=sample, max_iterations=25, averaging=True)
    w, total, best = np.zeros(7), np.zeros(7), objective(risk, np.zeros(7))
    for t in range(1, 26):
        w = step(risk, w, np.arange(60), t, 1.0 / np.sqrt(LAM))
        total += w
        best = min(best, objective(risk, total / t))
        assert solution.history[t].objective == pytest.approx(best, rel=1e-12)


def test_without_row_subsets_all_rows_will_do():
    X, y = problems.data("hinge")
    plain = Pegasos(sample=None, max_iterations=10, tolerance=0.0).minimize(problems.PlainRisk(X, y, "hinge"), L2(LAM))
    _, scored = run(sample=None, max_iterations=10)
    np.testing.assert_array_equal(plain.w, scored.w)


@pytest.mark.parametrize("judge", ["objective", "sample"])
@pytest.mark.parametrize(
    "variant",
    [
        "undo",
        "two_out",
        "probability",
        ("undo", "two_out"),
        ("two_out", "probability"),
        ("undo", "probability", "two_out"),
    ],
)
def test_rules_of_the_variants(variant, judge):
    named = {variant} if isinstance(variant, str) else set(variant)
    count = 3 if judge == "objective" else 1
    risk, solution = run(variant=variant, judge=judge, max_iterations=6, count=count, decay=0.25)
    # evaluations on the sample at the trial point belong to judging, not to a step
    log = risk.log[::2] if judge == "sample" else risk.log
    w, blames, bad = np.zeros(7), np.zeros(60, int), 0
    for t, (rows, at) in enumerate(log, 1):
        np.testing.assert_allclose(at, w, atol=1e-12)
        if "two_out" in named:
            assert np.all(blames[rows] < count)
        after = step(risk, w, rows, t, 1.0 / np.sqrt(LAM))
        seen = rows if judge == "sample" else slice(None)
        if objective(risk, after, seen) > objective(risk, w, seen):
            bad += 1
            blames[rows] += 1
            if "undo" not in named:
                w = after
        else:
            w = after
    assert bad == solution.details["bad_steps"] > 0
    assert set(solution.details) == {"steps", "bad_steps"} | {
        {"two_out": "removed", "probability": "chance"}[one] for one in named - {"undo"}
    }
    if "two_out" in named:
        np.testing.assert_array_equal(solution.details["removed"], np.flatnonzero(blames >= count))
        assert len(solution.details["removed"]) > 0
    if "probability" in named:
        np.testing.assert_allclose(solution.details["chance"], 0.25**blames)


@pytest.mark.parametrize("variant", ["undo", "two_out", ("two_out", "undo"), ("probability", "undo")])
def test_a_step_judged_by_the_objective_costs_one_pass(variant):
    """215 steps had cost 436 evaluations: J(w_t), J(w_t+1), and one for each round."""
    risk, solution = run(variant=variant, judge="objective", count=99, trace="objective", max_iterations=18)
    assert solution.details["steps"] == 18 * 12
    assert 0 < solution.details["bad_steps"] < 18 * 12
    assert risk.passes == 1 + 18 * 12


def test_subgradient_descent_costs_one_pass_a_step():
    risk, solution = run(sample=None, max_iterations=30)
    assert (solution.details["steps"], risk.passes) == (30, 31)


@pytest.mark.parametrize("trace", ["objective", "sample"])
@pytest.mark.parametrize("options", [{}, {"variant": "undo"}, {"variant": ("undo", "probability")}])
def test_the_trace_has_the_value_of_every_step(options, trace):
    risk, solution = run(trace=trace, **options)
    log = (
        risk.log[::2] if options.get("variant", "undo") != "undo" else risk.log
    )  # every other one judges by the sample
    values = [objective(risk, w, rows if trace == "sample" else slice(None)) for rows, w in log]
    np.testing.assert_allclose(solution.details["value"], values, rtol=1e-12)
    assert solution.details["bad"].sum() == solution.details["bad_steps"]
    stays = [np.array_equal(here[1], there[1]) for here, there in itertools.pairwise(log)]
    if options:
        np.testing.assert_array_equal(solution.details["bad"][:-1], stays)
    assert "value" not in run(**options)[1].details


def test_callbacks_get_the_iterate_beside_the_best_point():
    lines = []
    risk = Recording(*problems.data("hinge"), "hinge")
    Pegasos(tolerance=0.0, max_iterations=8, sample=5).minimize(risk, L2(LAM), callback=lambda line: lines.append(line))
    starts = [risk.log[12 * k][1] for k in range(8)]
    for line, w in zip(lines, starts, strict=False):
        np.testing.assert_array_equal(line.iterate, w)
    assert any(objective(risk, line.iterate) > 1.01 * line.objective for line in lines)
    for line in lines:
        assert objective(risk, line.w) == pytest.approx(line.objective, rel=1e-12)


def spam(rows=2144):
    """As many texts as the note has, of 60 words of 1,000; the class is that of most of the words, for 97 %."""
    random = np.random.default_rng(3)
    X = (random.random((rows, 1000)) < 0.06).astype(float)
    y = np.where(X @ random.normal(size=1000) > 0.0, 1, -1) * np.where(random.random(rows) < 0.03, -1, 1)
    return LinearRisk(Dataset.from_arrays(X, y), LOSSES.make("hinge"))


def test_two_out_removes_as_few_rows_as_the_note_says():
    """Section 3.2: about 80 of 2,144 rows with two flags, and zero, one or two with four."""
    risk = spam()
    options = {"sample": 10, "epochs": 3, "tolerance": 0.0, "variant": "two_out"}
    removed = {
        count: Pegasos(count=count, **options).minimize(risk, L2(1e-3)).details["removed"].size for count in (2, 4)
    }
    assert 20 <= removed[2] <= 200
    assert removed[4] <= 2


@pytest.mark.parametrize("variant", ["undone", ("undo", "undo"), ("plain", "undo"), ("undo", "out")])
def test_variants_that_do_not_exist_are_refused(variant):
    with pytest.raises(InputError, match=r"variant is .*expected one of plain.*or a list of undo, two_out, prob"):
        Pegasos(variant=variant)


def test_a_config_takes_a_list_of_variants_and_a_single_name(tmp_path):
    def settings(variant):
        path = tmp_path / "config.yaml"
        sections = "data: {train: t.svm}", "regularizer: {name: l2, lambda: 1}"
        path.write_text("\n".join((*sections, f"solver: {{name: pegasos, variant: {variant}}}")))
        return load_settings(path).plain()["solver"]["variant"]

    assert settings("[undo, two_out]") == ["undo", "two_out"]
    assert settings("two_out") == "two_out"
    with pytest.raises(InputError, match=r"line 3: solver.variant is .*or a list of undo, two_out"):
        settings("[undo, two]")


def test_two_out_ends_when_no_row_is_left():
    _, solution = run(variant="two_out", count=1, sample=60, max_iterations=1000, projection=False)
    assert solution.status is Status.OWN_RULE
    assert "removed" in solution.solver
    assert len(solution.details["removed"]) == 60


def test_samples_follow_the_marginals():
    sampler = Sampler(4, 1, 0, probability=Probability(4, 0.5))
    for rows in ([0], [0, 1], [0, 1, 2]):
        sampler.blame(np.array(rows))
    counts = np.bincount(np.concatenate([sampler.draw() for _ in range(20000)]), minlength=4)
    np.testing.assert_allclose(counts / counts.sum(), np.array([1, 2, 4, 8]) / 15, atol=0.015)
    plain = Sampler(10, 3, 0)
    counts = np.bincount(np.concatenate([plain.draw() for _ in range(20000)]), minlength=10)
    np.testing.assert_allclose(counts / counts.sum(), 0.1, atol=0.01)


def test_samples_of_rows_that_are_left_follow_the_marginals():
    sampler = Sampler(5, 1, 0, TwoOut(5, 4), Probability(5, 0.5))
    for rows in ([0], [0, 1], [0, 1, 2], [4], [4], [4], [4]):
        sampler.blame(np.array(rows))
    counts = np.bincount(np.concatenate([sampler.draw() for _ in range(20000)]), minlength=5)
    np.testing.assert_allclose(counts / counts.sum(), np.array([1, 2, 4, 8, 0]) / 15, atol=0.015)


def test_seeds_reproduce_and_matter():
    first, again, other = (run(seed=seed)[1].w for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_epochs_and_rounds():
    risk, solution = run(epochs=4, evaluate_every=2, max_iterations=100)
    assert solution.status is Status.OWN_RULE
    assert "4 epochs" in solution.solver
    assert solution.details["steps"] == len(risk.log) == 4 * 12
    assert solution.iterations == 2
    assert solution.passes == pytest.approx(4 + 3)


@pytest.mark.parametrize("kind", ["hinge", "logistic", "least_squares"])
def test_the_bound_is_true_and_closes(kind):
    X, y = problems.data(kind)
    optimum = getattr(problems, f"{kind}_l2_optimum")(X, y, LAM)
    risk = problems.ScoredRisk(X, y, kind)
    solution = Pegasos(tolerance=0.01, sample=7, averaging=True, max_iterations=5000).minimize(risk, L2(LAM))
    assert solution.status is Status.CONVERGED
    assert solution.lower_bound <= optimum * (1.0 + 1e-10)
    assert solution.objective <= optimum * 1.01


def iterates(risk, count):
    """Those of the paper, w_1 = 0 left out, on the samples that were drawn."""
    w = np.zeros(7)
    for t, (rows, _) in enumerate(risk.log[:count], 1):
        w = step(risk, w, rows, t, 1.0 / np.sqrt(LAM))
        yield w


@pytest.mark.parametrize("options", [{}, {"averaging": True}])
def test_what_is_returned(options):
    risk, best = run(max_iterations=6, **options)
    points = list(iterates(risk, 72))
    means = np.cumsum(points, axis=0) / np.arange(1, 73)[:, None]
    seen = means if options else points
    assert best.objective == pytest.approx(min(objective(risk, w) for w in [np.zeros(7), *seen[11::12]]), rel=1e-12)
    risk, mean = run(max_iterations=6, returns="mean", **options)
    np.testing.assert_allclose(mean.w, means[-1], atol=1e-12)
    assert mean.objective == pytest.approx(objective(risk, means[-1]), rel=1e-12)
    if options:
        return
    risk, last = run(max_iterations=6, returns="last")
    np.testing.assert_allclose(last.w, points[-1], atol=1e-12)
    assert last.objective == pytest.approx(objective(risk, points[-1]), rel=1e-12)
    assert last.objective >= best.objective
    assert last.lower_bound <= problems.hinge_l2_optimum(*problems.data("hinge"), LAM)


def test_the_last_point_is_returned_though_all_weights_of_0_are_better():
    """w8a with lambda 9e-8: no point of the first epochs is as good as w = 0."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(200, 20)), np.where(random.random(200) < 0.5, 1, -1)
    risk = LinearRisk(Dataset.from_arrays(X, y), LOSSES.make("hinge"))
    options = {"sample": 10, "epochs": 2, "tolerance": 0.0}
    best = Pegasos(**options).minimize(risk, L2(1e-7))
    last = Pegasos(returns="last", **options).minimize(risk, L2(1e-7))
    assert not best.w.any()
    assert last.w.any()
    assert last.objective > best.objective
    assert last.objective == pytest.approx(risk.value_and_subgradient(last.w)[0] + L2(1e-7).value(last.w), rel=1e-12)


def test_only_a_better_point_has_met_the_tolerance():
    options = {"tolerance": 0.02, "sample": 1, "max_iterations": 4000, "averaging": False}
    _, best = run(**options)
    risk, last = run(returns="last", **options)
    assert best.status is Status.CONVERGED
    assert last.status is (Status.CONVERGED if last.relative_gap <= 0.02 else Status.OWN_RULE)
    assert last.objective == pytest.approx(objective(risk, last.w), rel=1e-12)


@pytest.mark.parametrize("returns", ["last", "mean"])
def test_going_on_returns_what_one_run_returns(returns):
    X, y = problems.data("hinge")
    risk, starts = problems.ScoredRisk(X, y, "hinge"), []

    def keep(line):
        state = {key: np.array(value) for key, value in line.state().items()}
        starts.append(Start(line.w, line.lower_bound, (line,), state))

    options = {"tolerance": 0.0, "sample": 5, "returns": returns}
    whole = Pegasos(epochs=6, **options).minimize(risk, L2(LAM), callback=keep)
    rest = Pegasos(epochs=6, **options).minimize(risk, L2(LAM), start=starts[3])
    np.testing.assert_allclose(rest.w, whole.w, rtol=1e-12)
    ended = Pegasos(max_iterations=1, **options).minimize(risk, L2(LAM), start=starts[3])
    three = Pegasos(epochs=3, **options).minimize(risk, L2(LAM))
    np.testing.assert_allclose(ended.w, three.w, rtol=1e-12)


def test_the_last_point_is_no_mean():
    with pytest.raises(IncompatibleError, match="returns: mean"):
        run(averaging=True, returns="last")


def test_weighted_and_sparse_rows():
    random = np.random.default_rng(4)
    X = random.normal(size=(60, 5)) * (random.random((60, 5)) < 0.5)
    y, weights = np.where(X[:, 0] + 0.3 * random.normal(size=60) > 0.0, 1, -1), random.integers(0, 4, 60)
    weighted = LinearRisk(Dataset.from_arrays(X, y, weights), LOSSES.make("hinge"))
    repeated = LinearRisk(Dataset.from_arrays(np.repeat(X, weights, 0), np.repeat(y, weights)), LOSSES.make("hinge"))
    options = {"tolerance": 0.02, "averaging": True, "max_iterations": 4000}
    one, two = (Pegasos(sample=10, **options).minimize(risk, L2(LAM)) for risk in (weighted, repeated))
    assert one.converged
    assert two.converged
    assert one.objective == pytest.approx(two.objective, rel=0.04)


def test_what_cannot_be_served_is_refused():
    X, y = problems.data("hinge")
    with pytest.raises(IncompatibleError, match="strongly convex"):
        Pegasos().minimize(problems.ScoredRisk(X, y, "hinge"), L1(0.1))
    with pytest.raises(IncompatibleError, match="sample: null"):
        Pegasos().minimize(problems.PlainRisk(X, y, "hinge"), L2(0.1))


@pytest.mark.filterwarnings("error")
def test_steps_whose_squares_overflow_are_projected_without_a_warning():
    random = np.random.default_rng(0)
    X = np.round(2.0 * random.normal(size=(34, 8))) * [1.0, 2e5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    y = np.where(random.random(34) < 0.5, 1.0, -1.0)
    model = fit(X, y, loss="exponential", regularizer=L2(8.7e-9), bias="none", solver="pegasos", max_iterations=30)
    assert model.solution.objective <= 1.0
