"""`python -m mpi_examples.outputs [NAME ...]`: run examples on 1, 2 and 4 ranks and write what they print into READMEs.

Their data must be prepared. Everything between the marks in a README is replaced.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bmrm.app.report import in_ranks, number
from bmrm.kernels.workers import usable_cores
from mpi_examples.tour import mpirun

HERE = Path(__file__).resolve().parent
RANKS = (1, 2, 4)
OWN_RANKS = {"two_owners": (2,)}
"""Of examples in which each rank has rows of its own."""
BEGIN, END = "<!-- python -m mpi_examples.outputs {name} -->", "<!-- end of outputs -->"
COLUMNS = ("ranks", "status", "objective", "lower bound", "relative gap", "passes", "measures", "seconds", "solver")
TIMES = ("seconds", "solver")
"""Columns that are of one day and one machine."""
NOTE = (
    "`seconds` is the whole command by the clock, `solver` the part in the solver, on a machine of {cores}\n"
    "cores that may have had other work{measures}."
)
Row = tuple[str, ...]


def main() -> int:
    """Run the examples named, or all; returns the worst exit status."""
    known = sorted({path.parent.name for path in (*HERE.glob("*/*.yaml"), *HERE.glob("*/run.py"))})
    parser = argparse.ArgumentParser(prog="python -m mpi_examples.outputs", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", choices=[*known, []], help="examples; all without a name")
    for name in parser.parse_args().names or known:
        put(HERE / name / "README.md", name, section(name, ranks_of(name)))
        print(f"{name}: written", flush=True)
    return 0


def ranks_of(name: str) -> Sequence[int]:
    """The numbers of ranks that an example is run on."""
    return OWN_RANKS.get(name, RANKS)


def section(name: str, ranks: Sequence[int] = RANKS) -> str:
    """What stands between the marks."""
    parts = [of_config(config, ranks) for config in sorted((HERE / name).glob("*.yaml"))]
    if (HERE / name / "run.py").exists():
        parts.append(of_module(f"mpi_examples.{name}.run", ranks))
    return "\n".join(parts)


def of_config(config: Path, ranks: Sequence[int]) -> str:
    """A table, a line for each number of ranks."""
    runs = [trained(config, count) for count in ranks]
    part = next(reversed(runs[0][0]["metrics"]), None)
    rows = [row_of(summary, wall) for summary, wall in runs]
    said = "" if part is None else f"; measures are of the {'training' if part == 'train' else part} rows"
    note = NOTE.format(cores=usable_cores(), measures=said)
    return f"`{config.name}`: {note}\n\n{markdown(COLUMNS, rows)}\n"


def trained(config: Path, ranks: int) -> tuple[dict[str, Any], float]:
    """summary.json of a run, and how long the command took."""
    with tempfile.TemporaryDirectory() as folder:
        seconds = launched([*_ranks(ranks), "-m", "bmrm.run", str(config), "--set", f"output.directory={folder}/out"])[
            1
        ]
        return json.loads((Path(folder) / "out" / "summary.json").read_text()), seconds


def of_module(module: str, ranks: Sequence[int]) -> str:
    """What a script prints, and how long it takes on so many ranks; it must be the same on all."""
    found = [launched([*_ranks(count), "-m", module]) for count in ranks]
    (printed, _), *others = found
    different = [count for count, (text, _) in zip(ranks[1:], others, strict=True) if text != printed]
    said = f"\nOn {different[0]} ranks it prints something else.\n" if different else ""
    rows = [(str(count), f"{seconds:.1f}") for count, (_, seconds) in zip(ranks, found, strict=True)]
    return f"```console\n{printed.strip()}\n```\n{said}\n{markdown(('ranks', 'seconds'), rows)}\n"


def row_of(summary: dict[str, Any], wall: float) -> Row:
    """A line of the table."""
    seconds = sum(summary["seconds"][part] for part in ("risk", "master", "waiting", "network", "solver"))
    measures = [{}, *summary["metrics"].values()][-1]
    return (
        in_ranks(summary["ranks"], summary["threads"]),
        summary["status"],
        number(summary["objective"], 6),
        number(summary["lower_bound"], 6),
        number(summary["relative_gap"], 2),
        f"{summary['passes']:.0f}",
        ", ".join(f"{name} {number(value, 3)}" for name, value in measures.items()) or "-",
        f"{wall:.1f}",
        f"{seconds:.2f}",
    )


def markdown(columns: Sequence[str], rows: Sequence[Row]) -> str:
    """A table."""
    lines = ["| " + " | ".join(cells) + " |" for cells in (columns, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(columns), *lines[1:]])


def rows_in(text: str) -> list[dict[str, str]]:
    """The lines of all tables between the marks, by column."""
    found: list[dict[str, str]] = []
    columns: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            columns = []
        elif not columns:
            columns = cells
        elif not line.startswith("|---"):
            found.append(dict(zip(columns, cells, strict=True)))
    return found


def between_marks(text: str, name: str) -> str | None:
    """What stands there now; None without marks."""
    _, mark, rest = text.partition(BEGIN.format(name=name))
    return rest.partition(END)[0] if mark else None


def put(readme: Path, name: str, content: str) -> None:
    """Write it between the marks, which are put at the end where there are none."""
    text, begin = readme.read_text(), BEGIN.format(name=name)
    if begin not in text:
        *some, last = map(str, ranks_of(name))
        numbers = f"{', '.join(some)} and {last}" if some else last
        text = f"{text.rstrip()}\n\n## On {numbers} ranks\n\n{begin}\n{END}\n"
    head, _, rest = text.partition(begin)
    readme.write_text(f"{head}{begin}\n{content.strip()}\n\n{END}{rest.partition(END)[2]}")


def _ranks(count: int) -> list[str]:
    launcher = mpirun()
    if launcher is None:
        raise SystemExit("no mpirun found: install the extra `mpirun`, or put one on the path")
    return [*([launcher, "-n", str(count)] if count > 1 else []), sys.executable]


def launched(command: list[str]) -> tuple[str, float]:
    """What a command has printed, and its seconds; ends with its error where it fails."""
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout, time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main())
