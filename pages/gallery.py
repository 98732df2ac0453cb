"""`python -m pages.gallery [NAME ...]`: run examples and keep what the page Gallery shows of them, in `docs/gallery/`.

By hand, after a change that the pictures would show: it takes some minutes. The page itself is written from what is
kept, so that it does not wait for a training.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from markupsafe import escape

from bmrm.app.charts import Axis, Chart, Line
from bmrm.app.html.curves import judged
from bmrm.app.html.page import template
from bmrm.app.html.runs import Run, named, read_runs
from bmrm.app.report import number

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "docs" / "gallery"
EXAMPLES = {
    "breast_cancer": "Two classes",
    "pay": "Categories and missing values",
    "sparse_text": "Sparse rows of ones",
    "roc_area": "The area under the ROC curve",
    "f_measure": "The F measure of a rare class",
    "digits": "Ten classes",
    "twenty_classes": "Twenty classes, each against the others",
    "kernel_features": "Features of a kernel",
    "ontology": "Classes in a tree",
    "ordinal": "Ordered grades",
    "group_lasso": "Groups of features",
    "quantile": "A quantile",
    "poisson_counts": "Counts",
    "insurance": "Counts with exposure and categories",
    "ranking_pairs": "Rankings by pairs",
    "ranking_ndcg": "Rankings by NDCG",
    "chunking": "Labels of sequences",
}
"""The examples of `mpi_examples` with their titles, in the order of the page."""


def gallery() -> str:
    """The sections of the page, from what is kept."""
    return "\n\n".join(_section(name, title) for name, title in EXAMPLES.items())


def _section(name: str, title: str) -> str:
    folder = ROOT / "mpi_examples" / name
    first = (folder / "README.md").read_text(encoding="utf-8").split("\n\n")[1].strip()
    config = (folder / "config.yaml").read_text(encoding="utf-8").strip()
    return "\n\n".join(
        [
            f"## {title}",
            first,
            f"```yaml\n{config}\n```",
            (KEPT / f"{name}.html").read_text(encoding="utf-8").strip(),
        ]
    )


def shown(run: Run) -> str:
    """The result of a run with its pictures, in one line, as Markdown wants HTML."""
    s = run.summary
    facts = [f"{s.status}: objective {number(s.objective, 6)}, relative gap {number(s.relative_gap, 2)}"]
    facts.append(f"{s.passes:,.4g} passes over {s.rows:,} rows")
    measures = [f"{name} {number(value, 4)}" for name, value in list(s.metrics[run.part].items())[:3]]
    facts.append(f"of the {named(run.part)} rows {', '.join(measures)}")
    x = [line.passes for line in run.history]
    gap = Line("relative gap", x, [line.relative_gap for line in run.history])
    goal = None if run.tolerance is None else (run.tolerance, f"tolerance {run.tolerance:g}")
    axes = Axis("passes over the data"), Axis("relative gap", log=True)
    charts = [Chart("Gap by passes", [gap], *axes, goal), *judged([run])[:2]]
    macros = template("parts.html").module
    pictures = macros.charts(charts)
    if len(charts) == 1 and run.curves is not None and run.curves.curves.confusion is not None:
        pictures += macros.confusion(run.curves.curves.confusion)
    return f"<div><p>{escape('; '.join(facts))}.</p>{' '.join(pictures.split())}</div>"


def main(names: list[str]) -> None:
    """Prepare the data, train, keep."""
    for name in names or EXAMPLES:
        python = [sys.executable, "-m"]
        if (ROOT / "mpi_examples" / name / "data.py").exists():
            subprocess.run([*python, "mpi_examples.prepare", name], cwd=ROOT, check=True)
        folder = ROOT / "build" / "gallery" / name
        config = ["bmrm.run", f"mpi_examples/{name}/config.yaml", "--quiet", "--overwrite"]
        subprocess.run([*python, *config, "--set", f"output.directory={folder}"], cwd=ROOT, check=True)
        KEPT.mkdir(exist_ok=True)
        (KEPT / f"{name}.html").write_text(shown(read_runs([folder])[0]) + "\n", encoding="utf-8")
        print(name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
