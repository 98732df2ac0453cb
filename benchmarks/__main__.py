"""`python -m benchmarks [NAME ...]`: run the benchmarks, print their tables, write the page of the documentation."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import benchmarks  # noqa: E402
from benchmarks.harness import Table, machine  # noqa: E402

PAGE = Path(__file__).resolve().parents[1] / "docs" / "measurements.md"
HEAD = """# Measurements

Written by `make bench`; every figure can be produced again by it. Medians, with the 5 % and 95 % quantiles of the
repetitions where times are compared. Machine: {machine}.
"""


def main() -> None:
    """All benchmarks, or those named; the page is written only by a run of all."""
    names = [module.name for module in pkgutil.iter_modules(benchmarks.__path__)]
    known = [name for name in names if name not in ("harness", "__main__")]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*known, []], help="benchmarks to run; all without a name")
    wanted = parser.parse_args().names or known
    pages = [HEAD.format(machine=machine())]
    for name in wanted:
        table: Table | None = importlib.import_module(f"benchmarks.{name}").measure()
        text = table.markdown() if table is not None else f"({name}: skipped, the shared data are missing)\n"
        print(text, flush=True)
        pages.append(text)
    if wanted == known:
        PAGE.write_text("\n".join(pages))
        print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
