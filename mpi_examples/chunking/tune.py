"""`python -m mpi_examples.chunking.tune`: chunk F1 on held-out folds of the training sentences, for several lambda."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import bmrm
from bmrm.data.dataset import Dataset
from bmrm.data.readers.conll import Conll, read_conll
from bmrm.metrics.sequences import counts_of_chunks, total

TRAIN = Path("runs/data/chunking/train.txt")
LAMBDAS = {"chain_crf": (2.5e-5, 5e-5, 1e-4, 2e-4, 4e-4), "chain_margin": (5e-4, 1e-3, 2e-3)}
TOLERANCE = {"chain_crf": 1e-2, "chain_margin": 5e-2}


def main() -> None:
    """Print a line per loss and lambda."""
    parser = argparse.ArgumentParser(prog="python -m mpi_examples.chunking.tune", description=__doc__)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--evaluated", type=int, default=3, help="folds to evaluate")
    parser.add_argument("--losses", nargs="*", default=list(LAMBDAS), choices=list(LAMBDAS))
    options = parser.parse_args()
    data, _ = read_conll(TRAIN, Conll(min_count=3))
    fold = np.asarray(data.targets.groups) % options.folds
    for loss in options.losses:
        for lam in LAMBDAS[loss]:
            values = [
                held_out(data.select(np.flatnonzero(fold != k)), data.select(np.flatnonzero(fold == k)), loss, lam)
                for k in range(options.evaluated)
            ]
            print(f"{loss} lambda {lam:g}: {np.mean(values):.4f} ({', '.join(f'{v:.4f}' for v in values)})", flush=True)


def held_out(train: Dataset, test: Dataset, loss: str, lam: float) -> float:
    """Chunk F1 on `test` of the model for `train`."""
    model = bmrm.fit(
        train.X,
        train.targets.y,
        groups=train.targets.groups,
        loss=loss,
        regularizer=bmrm.L2(lam),
        bias="none",
        tolerance=TOLERANCE[loss],
    )
    starts = [0, *(np.flatnonzero(np.diff(np.asarray(test.targets.groups))) + 1).tolist()]
    return total(counts_of_chunks(test.targets.y.tolist(), model.predict(test).tolist(), starts).values()).f1


if __name__ == "__main__":
    main()
