"""What a run prints and writes about itself."""

import csv
import io
import json
import math
import re
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console

from bmrm.app.phases import NAMES, Phases
from bmrm.app.plots import convergence, convergence_svg, save_convergence
from bmrm.app.progress import Progress, progress_line
from bmrm.app.report import history_csv, number, summarize, summary_rows
from bmrm.app.tables import pair_lines
from bmrm.kernels.compiling import working_clock
from bmrm.problem import Iteration, Solution, Status
from bmrm.problem.solution import significant_figures


def solution(bound=0.5, lines=3):
    history = tuple(
        Iteration(k, 2.0 - k / 2, bound, 1.0 * k, 0.1 * k, 0.05 * k, 0.02 * k, 0.01 * k) for k in range(lines)
    )
    return Solution(np.zeros(2), 1.0, bound, Status.CONVERGED, lines - 1, 2.0, 0.2, history, "bundle: why")


def summary(of):
    seconds = {"total": 2.0, "load": 1.5, "risk": 0.1, "master": 0.4}
    return summarize(
        of, seconds=seconds, ranks=2, threads=1, rows=10, dim=2, nnz=20, metrics={"train": {"accuracy": 0.5}}
    )


def test_the_summary_has_what_the_design_lists():
    values = summary(solution())
    listed = "objective lower_bound gap relative_gap status iterations passes seconds ranks rows dim nnz solver metrics"
    assert set(listed.split()) | {"versions"} <= set(values)
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


def test_significant_figures_are_those_of_equation_16():
    """Teo, Smola, Vishwanathan & Le, KDD 2007: log10 of the mean size of the two values over their difference."""
    values = summary(solution(1 / 3))
    objective, bound = values["objective"], values["lower_bound"]
    assert values["significant_figures"] == pytest.approx(np.log10((objective + bound) / 2.0 / (objective - bound)))
    assert summary(solution(-math.inf))["significant_figures"] is None
    assert significant_figures(-2.0, -2.0002) == pytest.approx(4.0, abs=1e-4)
    assert significant_figures(3.0, 3.0) == significant_figures(0.0, 0.0) == pytest.approx(15.65, abs=0.01)
    assert np.isnan(significant_figures(1.0, 1.5))
    rows = list(csv.DictReader(io.StringIO(history_csv(solution(1 / 3)))))
    assert float(rows[-1]["significant_figures"]) == values["significant_figures"]


def test_the_table_shows_status_numbers_and_metrics():
    rows = summary_rows(summary(solution()))
    text = "\n".join(pair_lines(rows, 120))
    for part in ("CONVERGED", "bundle: why", "accuracy 0.5", "10 rows"):
        assert part in text
    assert summary_rows(summary(solution(-math.inf, lines=0)))["lower bound"] == "-"


def progress(**options):
    console = Console(file=io.StringIO(), width=200, force_terminal=options.pop("terminal", False))
    return console.file, Progress(console, **options)


def test_plain_lines_come_every_few_seconds():
    phases = Phases()
    file, show = progress(phases=phases, every=0.0, tick=60.0)
    with show, phases("solve"):
        for line in solution().history:
            show(line)
    assert len(file.getvalue().splitlines()) == 3
    for part in ("iteration     1", "objective", "bound", "relative gap", "passes", " s"):
        assert part in file.getvalue()


def test_plain_lines_name_each_phase_that_lasts():
    """Whether an iteration ends or not."""
    phases = Phases()
    file, show = progress(phases=phases, first_after=0.02, tick=0.01)
    with show:
        for name, detail in (("load", "a9a.svm"), ("solve", ""), ("measure", ""), ("draw", "")):
            with phases(name, detail):
                time.sleep(0.1)
    said = file.getvalue().splitlines()
    assert [line.split("  ")[0] for line in said] == ["reading a9a.svm", "solving", "measuring", "drawing"]


def test_quiet_prints_nothing():
    file, show = progress(quiet=True, every=0.0)
    with show:
        for line in solution().history:
            show(line)
    assert file.getvalue() == ""


def test_a_terminal_gets_one_line_whose_clock_runs_while_an_iteration_lasts():
    phases = Phases()
    file, show = progress(terminal=True, phases=phases)
    with show, phases("solve"):
        time.sleep(0.3)
        assert "solving" in file.getvalue()
        for line in solution().history:
            show(line)
        time.sleep(0.8)
    lines = [part for part in file.getvalue().split("\r") if "iteration     2" in part]
    clocks = {float(part.split("passes")[1].split()[1]) for part in lines}
    assert len(clocks) > 2, "the clock stood still"


def test_phases_add_up_to_the_time_that_has_passed(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("bmrm.app.phases.time", SimpleNamespace(perf_counter=lambda: clock[0]))

    def pass_by(seconds):
        clock[0] += seconds

    phases = Phases(clock[0])
    pass_by(1.0)
    phases.started()
    with phases("load"):
        pass_by(0.02)
        with phases("measure"):
            pass_by(0.01)
        pass_by(0.02)
    with phases("solve"):
        pass_by(0.05)
    phases.solved(Iteration(1, 1.0, 0.0, 1.0, 0.05, 0.02, 0.01, 0.003, 0.005))
    seconds = phases.seconds()
    assert sum(seconds[name] for name in NAMES) == pytest.approx(seconds["total"], rel=1e-9)
    assert seconds["total"] == pytest.approx(1.1)
    assert seconds["start"] == pytest.approx(1.0)
    assert seconds["load"] == pytest.approx(0.04)
    assert seconds["measure"] == pytest.approx(0.01)
    assert [seconds[name] for name in ("risk", "master", "waiting", "network")] == [0.02, 0.01, 0.003, 0.005]
    assert seconds["solver"] == pytest.approx(0.012)


def test_a_process_knows_when_it_was_started():
    code = "import time; from bmrm.app.phases import process_begin; print(time.perf_counter() - process_begin())"
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0.0 < float(done.stdout) <= time.perf_counter() - begin + 0.02


@pytest.mark.parametrize("bound", [0.5, -math.inf, 1.0])
@pytest.mark.parametrize("lines", [0, 1, 3, 60])
def test_the_plot_is_a_png_whatever_the_history(bound, lines):
    stream = io.BytesIO()
    figure = convergence(solution(bound, lines).history, title="t", tolerance=1e-3)
    save_convergence(figure, stream)
    assert stream.getvalue().startswith(b"\x89PNG")
    above, below = figure.axes
    if lines:
        assert len(above.get_lines()) == (2 if math.isfinite(bound) else 1)
        assert below.get_yscale() == ("log" if math.isfinite(bound) else "linear")


SVG = "{http://www.w3.org/2000/svg}"


def drawn(bound, lines, title="t", tolerance=1e-3):
    """The SVG of a history, and its marks: (panel, tooltip)."""
    root = ElementTree.fromstring(convergence_svg(solution(bound, lines).history, title=title, tolerance=tolerance))
    panels = root.findall(f"./{SVG}svg")
    return root, [[mark.text for mark in panel.iter(f"{SVG}title")] for panel in panels]


@pytest.mark.parametrize("bound", [0.5, -math.inf, 1.0])
@pytest.mark.parametrize("lines", [0, 1, 3, 60])
def test_the_picture_of_a_run_is_svg_whatever_the_history(bound, lines):
    root, marks = drawn(bound, lines)
    assert root.tag == f"{SVG}svg"
    text = ElementTree.tostring(root, encoding="unicode")
    assert "nan" not in text
    assert "inf" not in text
    assert len(marks) == (0 if lines == 0 else 1 if bound == -math.inf else 2)
    words = "".join(root.itertext())
    assert ("no lower bound" in words) == (bound == -math.inf or lines == 0)
    assert ("lower bound" in words.replace("no lower bound", "")) == (bound != -math.inf and lines > 0)


def test_the_picture_shows_the_numbers_of_the_history():
    _, (above, below) = drawn(0.5, 3)
    assert above == [
        *(f"objective (best so far): {k}, {2.0 - k / 2:.10g}" for k in range(3)),
        *(f"lower bound: {k}, 0.5" for k in range(3)),
    ]
    gaps = [line.relative_gap for line in solution(0.5, 3).history]
    assert below == [f"relative gap: {k}, {gap:.10g}" for k, gap in enumerate(gaps)]


def test_the_picture_has_its_whole_title_in_lines_that_fit_and_iterations_are_whole():
    title = "hinge + l2 on " + ", ".join(f"shards/part-{k:03d}.svm" for k in range(20)) + " & <more>: CONVERGED"
    root, _ = drawn(0.5, 2, title)
    lines = [line.text for line in root.findall(f"./{SVG}text")]
    assert " ".join(lines) == title
    assert max(map(len, lines)) <= 64
    ticks = [mark.text for mark in root.iter(f"{SVG}text") if mark.get("text-anchor") == "middle"]
    ticks = [text for text in ticks if text not in ("iteration", "objective", "relative gap")]
    assert {"0", "1"} <= set(ticks)
    assert all(tick.isdigit() for tick in ticks)


def test_a_tolerance_is_a_line_of_the_picture():
    assert "tolerance 0.001" in "".join(drawn(0.5, 3)[0].itertext())
    assert "tolerance" not in "".join(drawn(0.5, 3, tolerance=None)[0].itertext())
    assert "tolerance" not in "".join(drawn(0.5, 3, tolerance=0.0)[0].itertext())


LINE = Iteration(12, 0.35117412345, 0.35102590123, 28.7318, 0.13)
PARTS = ("seconds", "iteration", "objective", "bound", "passes")


@pytest.mark.parametrize(
    ("width", "parts"), [(None, 5), (120, 5), (109, 5), (100, 4), (80, 3), (60, 2), (40, 1), (22, 0), (20, 0), (12, 0)]
)
@pytest.mark.parametrize("bound", [0.35102590123, -math.inf, -1.2345678e-300])
def test_the_gap_is_in_the_progress_line_of_any_terminal(width, parts, bound):
    line = replace(LINE, lower_bound=bound)
    words = progress_line(line, 7.25, width)
    assert width is None or len(words) <= width
    assert words.rstrip().endswith(" s") == (parts > 0)
    assert f"gap {number(line.relative_gap, 2)}" in " ".join(words.split())
    if bound > 0.0:
        found = [part for part in PARTS if part in words or (part == "seconds" and words.endswith("7.2 s"))]
        assert found == list(PARTS[:parts])


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_terminal_shows_the_gap_and_the_clock_whole(width):
    phases = Phases()
    show = Progress(Console(file=io.StringIO(), force_terminal=True, width=width), phases=phases)
    with phases("load", ", ".join(f"a-folder/part-{k}.svm" for k in range(30))):
        words = show._renderable().plain
    assert len(words) == width
    assert words.startswith("reading a-folder/part-0.svm, a-folder")
    assert re.search(r"…  \d+\.\d s$", words)
    with phases("solve"):
        show._line = LINE, working_clock()
        words = show._renderable().plain
    assert len(words) <= width
    assert "relative gap  0.00042" in words
    assert words.endswith(" s")


def test_a_terminal_that_becomes_narrow_still_shows_the_gap():
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=100)
    show, phases = Progress(console, phases=(phases := Phases())), phases
    with show, phases("solve"):
        show(LINE)
        console.width = 60
        show._live.refresh()
        last = file.getvalue().rsplit("iteration", 1)[1]
    assert "relative gap  0.00042" in last
    assert "objective" not in last
    assert "…" not in last
