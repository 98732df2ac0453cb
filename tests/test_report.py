"""What a run prints and writes about itself."""

import csv
import io
import json
import math

import numpy as np
import pytest
from rich.console import Console

from bmrm.problem import Iteration, Solution, Status
from bmrm.report import Progress, history_csv, summarize, summary_table


def solution(bound=0.5, lines=3):
    history = tuple(
        Iteration(k, 2.0 - k / 2, bound, 1.0 * k, 0.1 * k, 0.05 * k, 0.02 * k, 0.01 * k) for k in range(lines)
    )
    return Solution(np.zeros(2), 1.0, bound, Status.CONVERGED, lines - 1, 2.0, 0.2, history, "bundle: why")


def summary(of):
    return summarize(
        of, load_seconds=1.0, total_seconds=2.0, ranks=2, rows=10, dim=2, nnz=20, metrics={"train": {"accuracy": 0.5}}
    )


def test_the_summary_has_what_the_design_lists():
    values = summary(solution())
    listed = "objective lower_bound gap relative_gap status iterations passes seconds ranks rows dim nnz solver metrics"
    assert set(listed.split()) | {"versions"} <= set(values)
    assert {"total", "load", "risk", "master", "network"} <= set(values["seconds"])
    assert values["gap"] == 0.5
    assert values["relative_gap"] == 0.5
    assert values["seconds"]["risk"] == 0.1
    assert values["status"] == "CONVERGED"
    assert {"bmrm", "python", "numpy"} <= set(values["versions"])


def test_without_a_bound_the_summary_has_nulls_and_is_still_json():
    values = summary(solution(-math.inf))
    assert (values["lower_bound"], values["gap"], values["relative_gap"]) == (None, None, None)
    json.dumps(values, allow_nan=False)


def test_history_has_a_line_per_iteration_and_every_bit():
    rows = list(csv.DictReader(io.StringIO(history_csv(solution(1 / 3)))))
    assert [row["iteration"] for row in rows] == ["0", "1", "2"]
    assert float(rows[0]["lower_bound"]) == 1 / 3
    unbounded = list(csv.DictReader(io.StringIO(history_csv(solution(-math.inf)))))
    assert unbounded[0]["lower_bound"] == unbounded[0]["gap"] == unbounded[0]["relative_gap"] == ""


def shown(table):
    console = Console(file=io.StringIO(), width=120)
    console.print(table)
    return console.file.getvalue()


def test_the_table_shows_status_numbers_and_metrics():
    text = shown(summary_table(summary(solution()), "title here"))
    for part in ("title here", "CONVERGED", "bundle: why", "accuracy 0.5", "10 rows"):
        assert part in text
    assert "lower bound" in shown(summary_table(summary(solution(-math.inf, lines=0)), ""))


def progress(monkeypatch, seconds, **options):
    clock = iter(seconds)
    monkeypatch.setattr("bmrm.report.time.monotonic", lambda: next(clock))
    console = Console(file=io.StringIO(), width=200, force_terminal=options.pop("terminal", False))
    with Progress(console, **options) as show:
        for line in solution().history:
            show(line)
    return console.file.getvalue()


def test_plain_lines_come_every_few_seconds(monkeypatch):
    text = progress(monkeypatch, [0.0, 1.0, 6.0, 7.0])
    assert len(text.splitlines()) == 1
    for part in ("iteration     1", "objective", "bound", "relative gap", "passes", " s"):
        assert part in text


def test_quiet_prints_nothing(monkeypatch):
    assert progress(monkeypatch, [0.0, 10.0, 20.0, 30.0], quiet=True) == ""


def test_a_terminal_gets_one_line_that_lives():
    console = Console(file=io.StringIO(), width=200, force_terminal=True)
    with Progress(console) as show:
        for line in solution().history:
            show(line)
    assert "iteration     2" in console.file.getvalue()


@pytest.mark.parametrize("bound", [0.5, -math.inf, 1.0])
@pytest.mark.parametrize("lines", [0, 1, 3, 60])
def test_the_plot_is_a_png_whatever_the_history(bound, lines):
    from bmrm.plots import convergence, save_convergence

    stream = io.BytesIO()
    figure = convergence(solution(bound, lines).history, title="t", tolerance=1e-3)
    save_convergence(figure, stream)
    assert stream.getvalue().startswith(b"\x89PNG")
    above, below = figure.axes
    if lines:
        assert len(above.get_lines()) == (2 if math.isfinite(bound) else 1)
        assert below.get_yscale() == ("log" if math.isfinite(bound) else "linear")
