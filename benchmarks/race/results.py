"""Results on disk: one JSON with everything, a CSV line per problem, accuracy and entrant."""

from __future__ import annotations

import csv
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

SCHEMA = 1
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


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = lines[0] if lines else model
    return {"processor": model, "cores": os.cpu_count(), "python": platform.python_version(), "node": platform.node()}


def commit() -> str:
    """The state of the checkout, with a plus where files have been changed since; empty where that is unknown."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty=+", "--exclude", "*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def versions() -> dict[str, str]:
    """Of the packages that take part; those missing are left out."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def write(folder: Path, results: Mapping[str, Any]) -> None:
    """`race.json`, a line for each problem, and `race.csv` into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    head = {key: value for key, value in results.items() if key != "problems"}
    lines = ",\n".join(json.dumps(record, allow_nan=False) for record in results["problems"])
    start = json.dumps(head, allow_nan=False)[:-1]
    (folder / "race.json").write_text(f'{start}, "problems": [\n{lines}\n]}}\n')
    with open(folder / "race.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(_lines(results["problems"]))


def read(path: Path) -> dict[str, Any]:
    """The results in a file, or in the folder that holds it."""
    file = path / "race.json" if path.is_dir() else path
    found: dict[str, Any] = json.loads(file.read_text())
    if found.get("schema") != SCHEMA:
        raise SystemExit(f"{file}: schema {found.get('schema')!r}, expected {SCHEMA}")
    return found


def joined(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One race from several that shared out the problems; of a problem in several the latest race counts.

    Raises SystemExit where they are not of the same machine, versions and clock, or where a race is given twice.
    """
    first = parts[0]
    for other in parts[1:]:
        for what in ("machine", "versions"):
            if other[what] != first[what]:
                raise SystemExit(f"races of different {what} cannot be joined: {first[what]} and {other[what]}")
        if other["options"]["clock"] != first["options"]["clock"]:
            raise SystemExit("races of different clocks cannot be joined")
    latest: dict[str, str] = {}
    for part in parts:
        for record in part["problems"]:
            latest[record["name"]] = max(latest.get(record["name"], ""), part["started"])
    used = [[record for record in part["problems"] if latest[record["name"]] == part["started"]] for part in parts]
    records = [record for some in used for record in some]
    names = [record["name"] for record in records]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SystemExit(f"twice in races of one time: {', '.join(twice)}")
    missing = {one["name"]: one for part in parts for one in part["missing"] if one["name"] not in names}
    return {
        "schema": SCHEMA,
        "started": min(part["started"] for part in parts),
        "machine": first["machine"],
        "versions": first["versions"],
        "runs": [
            {key: part[key] for key in ("command", "commit", "options")}
            for part, some in zip(parts, used, strict=True)
            if some
        ],
        "options": first["options"],
        "missing": list(missing.values()),
        "extras": [extra for part in parts for extra in part["extras"]],
        "problems": records,
    }


def _lines(records: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    lines = []
    for record in records:
        for entrant in record["entrants"]:
            for accuracy in record["accuracies"]:
                start = [record["kind"], record["name"], f"{accuracy:g}", entrant["name"], entrant["family"]]
                best = entrant["best"].get(f"{accuracy:g}")
                if best is None:
                    last = entrant["ladder"][-1] if entrant["ladder"] else {"status": "not run", "rung": ""}
                    lines.append([*start, last["rung"], "", "", "", 0, f"not reached ({last['status']})"])
                    continue
                low, middle, high = np.quantile(best["seconds"], [0.05, 0.5, 0.95])
                figures = [f"{value:.6g}" for value in (middle, low, high)]
                status = "ok" if best["in_rounds"] else "first run only"
                lines.append([*start, best["rung"], *figures, len(best["seconds"]), status])
    return lines
