"""`bmrm report`: finished runs as an HTML page."""

from __future__ import annotations

from collections.abc import Sequence

from bmrm.cli._core.parser import Namespace, Parser


def add_arguments(parser: Parser) -> None:
    """Folders of runs, and the file."""
    parser.examples("bmrm report runs/a9a\nbmrm report runs/a9a runs/b9b --out both.html\nbmrm report runs/a9a --png")
    parser.add_argument("runs", nargs="+", metavar="RUN", help="output folder of a run")
    parser.add_argument("--out", default="report.html", metavar="FILE", help="the file to write; default: %(default)s")
    parser.add_argument(
        "--png", action="store_true", help="also draw the convergence of each run as convergence.png in its folder"
    )


def run(parsed: Namespace) -> int:
    """Write it, print its name."""
    from bmrm.app.html.page import write_report

    if parsed.png:
        _draw(parsed.runs)
    print(write_report(parsed.runs, parsed.out))
    return 0


def _draw(folders: Sequence[str]) -> None:
    """A picture in the folder of each run, and its name."""
    from bmrm.app.html.runs import read_runs
    from bmrm.app.pipeline.run_folder import PNG
    from bmrm.app.plots import caption, convergence, save_convergence
    from bmrm.data.files import whole_file

    for run in read_runs(folders):
        words = caption(run.title, run.summary.status, run.summary.relative_gap)
        figure = convergence(run.history, title=words, tolerance=run.tolerance)
        with whole_file(run.directory / PNG) as stream:
            save_convergence(figure, stream)
        print(run.directory / PNG)
