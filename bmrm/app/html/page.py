"""The page: one run with all its sections, or several compared, with each below."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bmrm.app.elements import Markup, tag
from bmrm.app.html import convergence, judging, overview, weights
from bmrm.app.html.compare import comparison
from bmrm.app.html.run import Run, read_runs
from bmrm.app.html.style import STYLE
from bmrm.app.model_file import package_version
from bmrm.data.files import whole_file

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Browsers are told that the page loads and runs nothing."""
OF_A_RUN = (
    overview.certificate,
    overview.problem,
    overview.search,
    overview.data,
    convergence.convergence,
    overview.time,
    judging.metrics,
    judging.judgement,
    weights.weights,
    overview.files,
)
"""In the order of the page."""


def write_report(folders: Sequence[Path | str], out: Path | str) -> Path:
    """Write one HTML file about finished runs; returns its path.

    The file is written whole or not at all. It loads nothing, and has no script.

    Parameters
    ----------
    folders : the output folders of the runs.
    out : the file; an older one is replaced.

    Raises
    ------
    InputError
        Naming the file of a run that is missing, cut off or damaged, or that `out` cannot be written.
    OutputError
        Where the disk is full.
    """
    text = page(read_runs(folders))
    with whole_file(out) as stream:
        stream.write(text.encode())
    return Path(out)


def page(runs: Sequence[Run]) -> str:
    """The HTML of a report on one run or more."""
    one = runs[0]
    title = one.title if len(runs) == 1 else f"{len(runs)} runs compared"
    if len(runs) == 1:
        body = [tag("h1", title), tag("p", one.name, class_="faint"), overview.tiles(one), *_sections(one)]
    else:
        links = [tag("li", tag("a", run.name, href=f"#run-{k}")) for k, run in enumerate(runs)]
        body = [tag("h1", title), tag("nav", tag("ul", links)), *comparison(runs)]
        for k, run in enumerate(runs):
            inside = [tag("p", run.title, class_="faint"), overview.tiles(run), *_sections(run)]
            body.append(tag("details", tag("summary", run.name), tag("div", inside, id=f"run-{k}"), class_="run"))
    foot = tag("footer", tag("p", f"Written by bmrm {package_version()}.", class_="faint"))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{title} - bmrm report"),
        tag("style", Markup(STYLE)),
    )
    return "<!doctype html>\n" + tag("html", head, tag("body", tag("main", *body, foot)), lang="en") + "\n"


def _sections(run: Run) -> list[Markup]:
    made = (build(run) for build in OF_A_RUN)
    return [one for one in made if one is not None]
