"""The pages of the studies: verdicts, what the papers say, what we see, all from the rows of CSV files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from benchmarks.papers import claims
from benchmarks.papers.claims import CLAIMS, Claim
from benchmarks.papers.results import KEPT, SECONDS, SEED, Results, identity
from benchmarks.papers.study import OPEN, Finding, Study, studies, verdict

DOCS = Path(__file__).resolve().parents[2] / "docs"
FIGURES = "figures/papers"
PAGE = "papers-answered.md"
HEAD = """# The papers, answered

Do the tables and figures of the five papers hold when they are made again? A claim is split into parts; the rule that
decides about each was committed before anything was run (`benchmarks/papers/claims.py`). *Reproduced*: all parts that
could be settled hold; *refuted*: none does; *quick run*: only some of the cells stand behind it yet. Where we lack the
data of a paper, its claim is tried on other data and no number is compared with a printed one. Times are ratios within
one run.

This page is written from the CSV files in `benchmarks/results/papers` by `python -m benchmarks.papers --page`; seed 0.

KDD is Teo et al. (2007), PROBE Smith et al. (2012), Pegasos Ryu & Choi (2009), F-measure the paper on BM-ls-CS, and
Thesis Komarek (2004); see [the papers' solvers](papers.md).

## Verdicts

"""
USAGE = """
## How to run it

<!-- not run: hours of measuring, on data that the repository does not have -->
```console
$ make papers          # all, by two processes, into runs/papers
$ python -m benchmarks.papers --quick   # some cells
$ # another seed; rows that are there already are not made again
$ python -m benchmarks.papers kdd_7 --seed 1
$ # into the repository, with the pages
$ python -m benchmarks.papers kdd_7 --keep
```
"""
NAMES = {claims.KDD: "KDD", claims.PROBE: "PROBE", claims.PEGASOS: "Pegasos", claims.F_MEASURE: "F-measure"}
NAMES[claims.THESIS] = "Thesis"
ANSWERS = {True: "yes", False: "no", None: "not settled"}


def write(folder: Path = KEPT, docs: Path = DOCS) -> Iterator[str]:
    """Write pages and pictures; yields what was written."""
    (docs / FIGURES).mkdir(parents=True, exist_ok=True)
    for name, text in written(folder).items():
        (docs / name).write_text(text, encoding="utf-8")
        yield f"written: {docs / name}"
    for study, rows in _with_rows(folder):
        study.plot(rows, docs / FIGURES / f"{study.name}.png")
        yield f"written: {docs / FIGURES / study.name}.png"


def written(folder: Path = KEPT) -> dict[str, str]:
    """The pages by name: the common one, and those of studies that have their own."""
    run = {study.name: (study, rows) for study, rows in _with_rows(folder)}
    pages = {PAGE: "".join([HEAD, _verdicts(run, folder), _sections(run, folder), _misprints(), _not_run(run), USAGE])}
    for study, rows in run.values():
        if study.page:
            title = f"# {study.claim.where}\n\n*{study.claim.paper}*\n\n"
            pages[study.page] = title + _section(study, rows, folder)
    return pages


def _with_rows(folder: Path) -> Iterator[tuple[Study, pd.DataFrame]]:
    """Studies that have rows of seed 0, with these."""
    for study in studies().values():
        rows = Results(study, folder).frame(0)
        if len(rows):
            yield study, rows


def _verdicts(run: Mapping[str, tuple[Study, pd.DataFrame]], folder: Path) -> str:
    rows = []
    for name, claim in CLAIMS.items():
        if name not in run:
            rows.append([_title(claim), OPEN, "", "", "", ""])
            continue
        study, frame = run[name]
        findings = study.findings(frame)
        settled = [one for one in findings.values() if one.holds is not None]
        holds = f"{sum(bool(one.holds) for one in settled)} of {len(findings)}"
        title = f"[{_title(claim)}]({study.page or '#' + name})"
        line = [title, _word(study, findings, folder), holds, _decisive(study, findings)]
        rows.append([*line, _extent(study, folder), _again(study, folder)])
    hours = sum(_minutes(study, folder) for study, _ in run.values()) / 60.0
    names = ["table or figure", "verdict", "parts that hold", "what decides", "cells", "other seeds"]
    return f"{_table(names, rows)}\nAll cells together took {hours:.1f} hours of one process; `make papers` has two.\n"


def _word(study: Study, findings: Mapping[str, Finding], folder: Path) -> str:
    """The verdict, and whether all cells stand behind it."""
    whole = _ready(study, folder) == len(study.cells("full"))
    return f"**{verdict(findings)}**{'' if whole else ' (quick run)'}"


def _ready(study: Study, folder: Path) -> int:
    """How many of all cells have been run."""
    done = Results(study, folder).done(0)
    return sum(identity(cell) in done for cell in study.cells("full"))


def _decisive(study: Study, findings: Mapping[str, Finding]) -> str:
    """A part and its number, for the verdict."""
    failed = [key for key, one in findings.items() if one.holds is False]
    key = study.decides or next(iter(failed or findings))
    return f"{study.claim.parts[key].says} {ANSWERS[findings[key].holds].capitalize()}: {findings[key].number}"


def _title(claim: Claim) -> str:
    return f"{NAMES[claim.paper]}: {claim.where}"


def _extent(study: Study, folder: Path) -> str:
    """How many of all cells have been run, and how long they took."""
    return f"{_ready(study, folder)} of {len(study.cells('full'))}; {_minutes(study, folder):.1f} min"


def _minutes(study: Study, folder: Path) -> float:
    cells = study.cells("full")
    return float(Results(study, folder).frame(0).drop_duplicates(list(cells[0]))[SECONDS].sum()) / 60.0


def _again(study: Study, folder: Path) -> str:
    """The verdicts of other seeds."""
    frame = Results(study, folder).frame()
    seeds = sorted(set(frame[SEED]) - {0})
    return "; ".join(f"{seed}: {verdict(study.findings(frame[frame[SEED] == seed]))}" for seed in seeds)


def _sections(run: Mapping[str, tuple[Study, pd.DataFrame]], folder: Path) -> str:
    parts = []
    for study, rows in run.values():
        if study.page:
            continue
        parts.append(f"\n## {_title(study.claim)} {{ #{study.name} }}\n\n{_section(study, rows, folder)}")
    return "".join(parts)


def _section(study: Study, rows: pd.DataFrame, folder: Path) -> str:
    """What the paper says, what we see, and why."""
    findings = study.findings(rows)
    lines = [
        study.claim.about,
        "",
        f"Verdict: {_word(study, findings, folder)}. {_decisive(study, findings)}.",
        "",
        _parts(study.claim, findings),
        "",
    ]
    lines += [f"![{study.claim.where}]({FIGURES}/{study.name}.png)", ""]
    lines += [_table(*study.table(rows))]
    lines += [f"\n*Why.* {study.why}"] if study.why else []
    lines += [f"\n*Not here.* {study.lacks}"] if study.lacks else []
    return "\n".join([*lines, ""])


def _parts(claim: Claim, findings: Mapping[str, Finding]) -> str:
    rows = [
        [part.says, part.rule, findings[key].number, f"**{ANSWERS[findings[key].holds]}**"]
        for key, part in claim.parts.items()
    ]
    return _table(["the paper says", "it counts as true if", "we see", "true"], rows)


def _misprints() -> str:
    found = [f"- {NAMES[study.claim.paper]}: {one}" for study in studies().values() for one in study.misprints]
    return "\n".join(["\n## Misprints found", "", *found, ""]) if found else ""


def _not_run(run: Mapping[str, object]) -> str:
    """The claims without rows, with their rules."""
    left = {name: claim for name, claim in CLAIMS.items() if name not in run}
    if not left:
        return ""
    parts = ["\n## Not run yet\n"]
    for claim in left.values():
        rows = [[part.says, part.rule] for part in claim.parts.values()]
        parts.append(f"\n{_title(claim)}. {claim.about}\n\n{_table(['the paper says', 'it counts as true if'], rows)}")
    return "".join(parts)


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows), ""])
