"""`python -m benchmarks [NAME ...]`: run the benchmarks, print their tables, write the page of the documentation."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import benchmarks  # noqa: E402
from benchmarks.harness import Table, machine  # noqa: E402

PAGE = Path(__file__).resolve().parents[1] / "docs" / "measurements.md"
HEAD = """# Measurements

Written by `make measurements`; every section can be produced again by it, or by the command that it names. Medians,
with the 5 % and 95 % quantiles of the repetitions where times are compared. Machine: {machine}.
"""
COMMANDS = ("race", "papers", "two_trees", "decisions", "proved_choices", "out_of_core")
"""What has a command of its own."""
APART = ("harness", "simulator", "__main__", *COMMANDS)
"""What measures nothing for this page."""
MARK = re.compile(r"^<!-- (\w+) -->$", re.MULTILINE)
"""Stands before the section of a benchmark."""


def main() -> None:
    """Run all benchmarks, or those named, and put their sections into the page; the others stay as they are."""
    known = names()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*known, []], help="benchmarks to run; all without a name")
    sections = _sections()
    for name in parser.parse_args().names or known:
        table: Table | None = importlib.import_module(f"benchmarks.{name}").measure()
        if table is None:
            print(f"({name}: skipped: shared data, or a program that it runs, are missing)", flush=True)
            continue
        sections[name] = section(name, table)
        print(sections[name], flush=True)
    parts = [f"<!-- {name} -->\n{sections[name]}" for name in known if name in sections]
    PAGE.write_text("\n".join([HEAD.format(machine=machine()), *parts]))
    print(f"written: {PAGE}")


def names() -> Sequence[str]:
    """The benchmarks, in the order of the page."""
    return [module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name not in APART]


def section(name: str, table: Table) -> str:
    """The table as the page has it, with the command that makes it."""
    return replace(table, note=f"By `python -m benchmarks {name}`.\n\n{table.note}").markdown()


def _sections() -> dict[str, str]:
    """The sections of the page as it is, by benchmark."""
    pieces = MARK.split(PAGE.read_text()) if PAGE.exists() else [""]
    return {name: text.strip() + "\n" for name, text in zip(pieces[1::2], pieces[2::2], strict=True)}


if __name__ == "__main__":
    main()
