"""`python -m mpi_examples.prepare [NAME ...]`: write the data that examples read, into `runs/data/NAME`.

An example whose config cannot name its data directly (columns to choose, rows to split) has a `data.py` with

    def write(folder: Path, shared: Path | None) -> str

which writes files into `folder` and says what they are. `shared` is the folder `../shared/data` beside the checkout
with real data sets; where it is None, the example takes bundled or generated data instead, and says so.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.data.writers import write_npz

HERE = Path(__file__).resolve().parent
SHARED = HERE.parents[1] / "shared" / "data"


def main() -> None:
    """Prepare the examples named, or all that need it."""
    known = sorted(path.parent.name for path in HERE.glob("*/data.py"))
    parser = argparse.ArgumentParser(prog="python -m mpi_examples.prepare", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", choices=[*known, []], help="examples; all that need data without a name")
    parser.add_argument("--without-shared", action="store_true", help="as where there is no ../shared/data")
    options = parser.parse_args()
    for name in options.names or known:
        print(f"{name}: {prepare(name, shared_data(options.without_shared))}")


def shared_data(without: bool = False) -> Path | None:
    """The folder of real data sets, None where there is none or none is wanted."""
    return None if without or not SHARED.is_dir() else SHARED


def prepare(name: str, shared: Path | None, below: Path = Path("runs/data")) -> str:
    """Write the data of one example; returns what they are."""
    folder = below / name
    folder.mkdir(parents=True, exist_ok=True)
    said: str = importlib.import_module(f"mpi_examples.{name}.data").write(folder, shared)
    return said


def write_split(folder: Path, data: Dataset, share: float = 0.2, seed: int = 0) -> None:
    """Write a random share of the rows as `test.npz`, the others as `train.npz`."""
    order = np.random.default_rng(seed).permutation(data.rows)
    count = round(share * data.rows)
    write_npz(folder / "test.npz", data.select(np.sort(order[:count])))
    write_npz(folder / "train.npz", data.select(np.sort(order[count:])))


if __name__ == "__main__":
    main()
