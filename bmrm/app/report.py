"""The report at the end of a run: the table, summary.json and history.csv."""

from __future__ import annotations

import csv
import io
import math
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from bmrm.app.config.relative import in_words
from bmrm.app.phases import in_words as seconds_in_words
from bmrm.app.profile import text_of
from bmrm.problem import Iteration, Solution, shown

HISTORY_COLUMNS = (
    "iteration",
    "objective",
    "lower_bound",
    "gap",
    "relative_gap",
    "significant_figures",
    "passes",
    "seconds",
    "seconds_risk",
    "seconds_master",
    "seconds_waiting",
    "seconds_network",
)

LONGEST = 80
"""Characters of an option of a regularizer, such as a list with a number for each feature, that are shown."""
PACKAGES = ("bmrm", "numpy", "scipy", "numba", "scikit-learn", "cvxopt", "mpi4py")


def finite(value: float) -> float | None:
    """`value`, or None where it is not finite: JSON has no infinity."""
    return float(value) if math.isfinite(value) else None


def number(value: float | None, digits: int = 6) -> str:
    """A number for a table; a dash if there is none."""
    return "-" if value is None or not math.isfinite(value) else f"{value:.{digits}g}"


def history_csv(solution: Solution) -> str:
    """A line per iteration; an empty field where there is no bound."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HISTORY_COLUMNS)
    for line in solution.history:
        values = (getattr(line, name) for name in HISTORY_COLUMNS)
        writer.writerow(["" if not math.isfinite(value) else repr(value) for value in values])
    return text.getvalue()


def history_of(text: str) -> list[Iteration]:
    """The lines of a history.csv, without the parts of their seconds; ValueError names the first invalid line."""

    def number(text: str, absent: float) -> float:
        return float(text) if text else absent

    reader, lines = csv.DictReader(io.StringIO(text)), []
    for row in reader:
        try:
            lines.append(
                Iteration(
                    int(row["iteration"]),
                    number(row["objective"], math.inf),
                    number(row["lower_bound"], -math.inf),
                    float(row["passes"]),
                    float(row["seconds"]),
                )
            )
        except KeyError as error:
            raise ValueError(f"it has no column {error.args[0]}") from error
        except (TypeError, ValueError) as error:  # TypeError: a line that is cut off has None
            raise ValueError(f"line {reader.line_num} is cut off or has text for a number") from error
    return lines


def summarize(
    solution: Solution,
    *,
    seconds: Mapping[str, float],
    ranks: int,
    threads: int,
    rows: int,
    dim: int,
    nnz: int,
    metrics: Mapping[str, Mapping[str, float | None]],
) -> dict[str, Any]:
    """summary.json; null where there is no bound. `seconds` as of `Phases`; `threads` of each rank."""
    return {
        "objective": finite(solution.objective),
        "lower_bound": finite(solution.lower_bound),
        "gap": finite(solution.gap),
        "relative_gap": finite(solution.relative_gap),
        "significant_figures": finite(solution.significant_figures),
        "status": solution.status.name,
        "advice": solution.status.advice,
        "message": solution.message,
        "iterations": solution.iterations,
        "passes": solution.passes,
        "seconds": dict(seconds),
        "ranks": ranks,
        "threads": threads,
        "rows": rows,
        "dim": dim,
        "nnz": nnz,
        "solver": solution.solver,
        "metrics": {part: dict(values) for part, values in metrics.items()},
        "versions": versions(),
    }


def in_ranks(ranks: int, threads: int | None) -> str:
    """On what a run computes: "2, one thread each"; runs of older versions do not say how many threads."""
    if threads is None:
        return str(ranks)
    return f"{ranks}, {'one thread' if threads == 1 else f'{threads} threads'}{' each' if ranks > 1 else ''}"


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that can affect a result."""
    table = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            table[name] = version(name)
        except PackageNotFoundError:
            if name in PACKAGES:  # an import path without an installed distribution
                table[name] = "unknown"
    return table


def _ranks(summary: Mapping[str, Any]) -> str:
    """How many; of several what they sent, and what it costs where they keep their rows."""
    how = in_ranks(summary["ranks"], summary.get("threads"))
    if "sent" not in summary:
        return how
    sent, seconds = summary["sent"], summary["spread"]["seconds"]
    parts = [f"{sent['messages']:,} messages, {sent['bytes'] / 1e6:.3g} MB"]
    parts += [f"computing {min(seconds):.2f} to {max(seconds):.2f} s"]
    parts.append(moved(summary.get("row_sharing", {"allowed": summary["share_rows"]})))
    return f"{how}: {'; '.join(parts)}"


def moved(sharing: Mapping[str, Any]) -> str:
    """What has become of the rows of a run over ranks, from its summary."""
    if not sharing["allowed"]:
        return "rows stay where they are: no start from a sample, no small problem solved on one rank"
    done = "rows were dealt out by chance" if sharing.get("dealt_out") else "rows were not dealt out"
    return f"{done}, rank 0 solved alone with all of them" if sharing.get("rank_0_alone") else done


def regularizer_in_words(section: Mapping[str, Any] | None, rule: str | None = None) -> str:
    """`l2, lambda 0.00175747 (1 / m)`.

    Parameters
    ----------
    section : its name and options, lambda as a number.
    rule : by which lambda follows from the rows.
    """
    if section is None:
        return "-"
    options = {key: _brief(value) for key, value in section.items() if key not in ("name", "engine")}
    if "lambda" in options:
        options["lambda"] = number(section["lambda"]) + (f" ({rule})" if rule else "")
    return ", ".join([str(section["name"]), *(f"{key} {text}" for key, text in options.items())])


def _brief(value: Any) -> str:
    text = text_of(value)
    return text if len(text) <= LONGEST else shown(value, LONGEST)


def rule_of_lambda(problem: Any, section: Mapping[str, Any] | None) -> str | None:
    """The rule by which lambda follows from the rows, such as "1 / m"; None where it was given as a number."""
    there = problem.get("regularizer") if isinstance(problem, Mapping) else None
    if not isinstance(there, Mapping) or "lambda" not in there or "lambda" not in (section or {}):
        return None
    return None if isinstance(there["lambda"], (int, float)) else str(in_words(there["lambda"]))


def _problem_rows(summary: Mapping[str, Any]) -> dict[str, str]:
    """Regularizer and intercept; none of runs of older versions."""
    section = summary.get("regularizer")
    if section is None:
        return {}
    words = regularizer_in_words(section, rule_of_lambda(summary.get("problem"), section))
    return {"regularizer": words, "intercept": summary["intercept"]}


def summary_rows(summary: Mapping[str, Any]) -> dict[str, str]:
    """The names and values of the table at the end of a run."""
    rows: dict[str, str] = {
        "status": f"{summary['status']}: {summary['advice']}",
        **({"found": summary["message"]} if summary["message"] else {}),
        **_problem_rows(summary),
        "objective": number(summary["objective"], 10),
        "lower bound": number(summary["lower_bound"], 10),
        "relative gap": number(summary["relative_gap"], 3),
        "iterations, passes": f"{summary['iterations']}, {summary['passes']:g}",
        "seconds": seconds_in_words(summary["seconds"]),
        "data": f"{summary['rows']} rows, {summary['dim']} weights, {summary['nnz']} non-zeros",
        **({"read": "; ".join(summary["notes"])} if summary.get("notes") else {}),
        "ranks": _ranks(summary),
        "solver": str(summary["solver"]),
    }
    for part, values in summary["metrics"].items():
        if values:
            rows[part] = ", ".join(f"{name} {number(value, 5)}" for name, value in values.items())
    return rows
