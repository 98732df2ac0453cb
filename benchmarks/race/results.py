"""Results on disk: `race.json` of one race, and the results that the repository keeps, by commit and class.

A race is a dict: `schema`, `commit` and its `date`, `clock`, `machine`, `versions`, `runs` (command, time, rules),
`missing` (who did not take part, and why), `problems` (records as `contest.hold` returns them), and `source` where the
figures were not written by the race itself.
"""

from __future__ import annotations

import copy
import csv
import importlib.metadata
import json
import math
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.race.contest import finite, suboptimality

SCHEMA = 2
KEPT = Path(__file__).resolve().parents[1] / "results"
"""A folder for each commit, in it a file for each class."""
PACKAGES = (
    "numpy",
    "scipy",
    "numba",
    "scikit-learn",
    "liblinear-official",
    "skglm",
    "celer",
    "snapml",
    "statsmodels",
    "sklearn-contrib-lightning",
    "python-crfsuite",
    "lightgbm",
    "dlib",
    "cyanure",
    "rehline",
    "glum",
)
COLUMNS = (
    "kind",
    "problem",
    "accuracy",
    "entrant",
    "family",
    "rung",
    "median_seconds",
    "low",
    "high",
    "runs",
    "status",
)

Race = dict[str, Any]


def machine() -> dict[str, Any]:
    """What the figures were measured on; no name of it."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = lines[0] if lines else model
    return {"processor": model, "cores": os.cpu_count(), "python": platform.python_version()}


def commit() -> dict[str, str]:
    """`commit`, with a plus where files have been changed since, and its `date`; both empty where they are unknown."""
    git = ("git", "-C", str(Path(__file__).parent))
    describe, show = ("describe", "--always", "--dirty=+", "--exclude", "*"), ("show", "-s", "--format=%cI")
    try:
        name, date = (
            subprocess.run([*git, *words], capture_output=True, text=True, check=True).stdout.strip()
            for words in (describe, show)
        )
    except (OSError, subprocess.CalledProcessError):
        name = date = ""
    return {"commit": name, "date": date}


def versions() -> dict[str, str]:
    """Of the packages that take part; those missing are left out."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def write(folder: Path, race: Mapping[str, Any]) -> None:
    """`race.json` and `race.csv` (a line for each problem, accuracy and entrant) into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    _dump(folder / "race.json", race)
    with open(folder / "race.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(_lines(race["problems"]))


def read(path: Path) -> Race:
    """The race in a file, or in the folder that holds its `race.json`."""
    file = path / "race.json" if path.is_dir() else path
    found: Race = json.loads(file.read_text())
    if found.get("schema") != SCHEMA:
        raise SystemExit(f"{file}: schema {found.get('schema')!r}, expected {SCHEMA}")
    return found


def keep(race: Race, folder: Path = KEPT) -> list[Path]:
    """Put a race into the results of its commit, a file for each class; returns the files.

    Records replace those of the same problems; the histories, which only plots of single problems need, are left out.
    """
    check_commit(race["commit"])
    written = []
    for kind in dict.fromkeys(record["kind"] for record in race["problems"]):
        path = folder / race["commit"] / f"{kind}.json"
        new = {**race, "problems": [_short(record) for record in race["problems"] if record["kind"] == kind]}
        if path.exists():
            old = read(path)
            if not comparable(new, old):
                raise SystemExit(f"{path} is of another machine or clock")
            names = {record["name"] for record in new["problems"]}
            new["runs"] = old["runs"] + [run for run in new["runs"] if run not in old["runs"]]
            new["problems"] = [one for one in old["problems"] if one["name"] not in names] + new["problems"]
        path.parent.mkdir(parents=True, exist_ok=True)
        _dump(path, new)
        written.append(path)
    return written


def check_commit(*names: str) -> None:
    """Raise SystemExit unless results measured at these commits can be kept: there is one, without changes."""
    if len(set(names)) > 1 or not names[0] or names[0].endswith("+"):
        raise SystemExit(f"results are kept by commit; these are of {' and '.join(map(repr, names))}")


def kept(folder: Path = KEPT) -> list[Race]:
    """All results of the repository, the newest commit first."""
    found = [read(path) for path in sorted(folder.glob("*/*.json"))]
    return sorted(found, key=lambda race: str(race["date"]), reverse=True)


def comparable(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether times of two races may be set against one another."""
    return bool(one["machine"] == other["machine"] and one["clock"] == other["clock"])


def joined(races: Sequence[Race]) -> list[dict[str, Any]]:
    """One record for each problem, from races given newest first.

    Ours is what the newest race says. Peers that it left out are taken over from older races of the same machine and
    clock: they do not change with our commit.
    """
    found: dict[str, tuple[Race, dict[str, Any]]] = {}
    for race in races:
        for record in race["problems"]:
            newest, taken = found.setdefault(record["name"], (race, copy.deepcopy(record)))
            if newest is not race and comparable(newest, race):
                take_over(taken, record)
    return [record for _, record in found.values()]


def take_over(record: dict[str, Any], old: Mapping[str, Any]) -> None:
    """The peers of an older race that a record has not got, judged by the smaller of the two minima."""
    names = {entrant["name"] for entrant in record["entrants"]}
    missing = [one for one in old["entrants"] if not one["ours"] and one["name"] not in names]
    if not missing:
        return
    minima = [one for one in (record["minimum"], old["minimum"]) if one is not None]
    record["minimum"] = minimum = min(minima, default=None)
    record.pop("given", None)
    for entrant in copy.deepcopy(missing):
        off = {line["rung"]: _off(line, entrant, minimum) for line in entrant["ladder"]}
        best = {key: one for key, one in entrant["best"].items() if (off.get(one["rung"]) or 0.0) <= float(key)}
        record["entrants"].append({**entrant, "best": best, "earlier": True})


def _off(line: dict[str, Any], entrant: Mapping[str, Any], minimum: float | None) -> float | None:
    """The suboptimality of a line, judged again where its objective is known."""
    if not entrant["own_space"] and line.get("objective") is not None:
        base = math.inf if minimum is None else minimum
        line["suboptimality"] = finite(suboptimality(float(line["objective"]), base))
    return line.get("suboptimality")


def _short(record: Mapping[str, Any]) -> dict[str, Any]:
    """Without the details of runs and what is not known."""
    entrants = [
        {**each, "ladder": [{key: line[key] for key in line if key != "details"} for line in each["ladder"]]}
        for each in record["entrants"]
    ]
    return {**{key: record[key] for key in record if key != "reference"}, "entrants": entrants}


def _dump(path: Path, race: Mapping[str, Any]) -> None:
    """JSON with a line for each problem."""
    head = json.dumps({key: value for key, value in race.items() if key != "problems"}, allow_nan=False, indent=1)
    lines = ",\n".join(json.dumps(record, allow_nan=False) for record in race["problems"])
    path.write_text(f'{head[:-2]},\n "problems": [\n{lines}\n]}}\n')


def _lines(records: Iterable[Mapping[str, Any]]) -> Iterable[list[Any]]:
    for record in records:
        for entrant in record["entrants"]:
            for accuracy in record["accuracies"]:
                start = [record["kind"], record["name"], f"{accuracy:g}", entrant["name"], entrant["family"]]
                best = entrant["best"].get(f"{accuracy:g}")
                if best is None:
                    last = entrant["ladder"][-1] if entrant["ladder"] else {"status": "not run", "rung": ""}
                    yield [*start, last["rung"], "", "", "", 0, f"not reached ({last['status']})"]
                    continue
                low, middle, high = np.quantile(best["seconds"], [0.05, 0.5, 0.95])
                figures = [f"{value:.6g}" for value in (middle, low, high)]
                status = "ok" if best["in_rounds"] else "first run only"
                yield [*start, best["rung"], *figures, best.get("runs", len(best["seconds"])), status]
