"""What the scripts `tune.py` share: every choice is made on rows that the reported figures never see."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bmrm
from bmrm.app.model import Model
from bmrm.data.dataset import Dataset

Array = NDArray[np.float64]
Measure = Callable[[Model, Dataset], float]
LAMBDAS = tuple(10.0**-k for k in range(3, 9))


@dataclass(frozen=True)
class Contender:
    """A way to learn: `train(rows, validation, lam)` gives the model.

    The validation rows are for what is chosen besides lambda, a threshold say.
    """

    name: str
    train: Callable[[Dataset, Dataset, float], Model]


@dataclass(frozen=True)
class Choice:
    """The lambda of the best validation figure."""

    lam: float
    validation: float
    model: Model


def trainer(loss: Any, tolerance: float = 1e-3, **options: Any) -> Callable[[Dataset, Dataset, float], Model]:
    """For `Contender`: a loss and options of `bmrm.fit`; one solver, one thread, so that figures stay the same.

    There is no intercept unless `bias` is among the options.
    """
    chosen = {"bias": "none", **options}

    def train(rows: Dataset, validation: Dataset, lam: float) -> Model:
        return bmrm.fit(
            rows.X,
            rows.targets.y,
            groups=rows.targets.groups,
            loss=loss,
            regularizer=bmrm.L2(lam),
            solver="line_search_bundle",
            tolerance=tolerance,
            threads=1,
            **chosen,
        )

    return train


def choose(
    contender: Contender, lambdas: Sequence[float], rows: Dataset, validation: Dataset, measure: Measure
) -> Choice:
    """Train for every lambda and keep the model best on `validation`; of equals the first."""
    tried = []
    for lam in lambdas:
        model = contender.train(rows, validation, lam)
        tried.append(Choice(lam, measure(model, validation), model))
    return max(tried, key=lambda choice: choice.validation)


def splits(data: Dataset, count: int) -> Iterator[tuple[Dataset, Dataset, Dataset]]:
    """Random rows to learn from (60 %), to choose on (20 %) and held out (20 %), `count` times.

    Those held out first are the test rows of the example, see `mpi_examples.prepare.write_split`.
    """
    fifth = round(0.2 * data.rows)
    for seed in range(count):
        order = np.random.default_rng(seed).permutation(data.rows)
        held_out, validation, rows = np.split(order, [fifth, 2 * fifth])
        yield data.select(np.sort(rows)), data.select(np.sort(validation)), data.select(np.sort(held_out))


def compare(data: Dataset, contenders: Sequence[Contender], measure: Measure, given: argparse.Namespace) -> None:
    """Print a line per contender, means over splits; the first is held against each other on the rows held out."""
    figures: dict[str, list[tuple[float, float, float]]] = {contender.name: [] for contender in contenders}
    for rows, validation, held_out in splits(data, given.splits):
        for contender in contenders:
            choice = choose(contender, given.lambdas, rows, validation, measure)
            figures[contender.name].append((choice.lam, choice.validation, measure(choice.model, held_out)))
    first = contenders[0].name
    against = np.array(figures[first])
    lines = [_line(name, np.array(lines), against, name == first) for name, lines in figures.items()]
    print_table(("loss", "lambda: splits", "validation", "held out", f"{first} ahead on the same rows"), lines)


def _line(name: str, figures: Array, first: Array, is_first: bool) -> list[str]:
    """Of two (splits, 3): lambda, validation figure, figure on the rows held out."""
    lambdas, validation, held_out = figures.T
    ahead = first[:, 2] - held_out
    return [
        name,
        counts(lambdas),
        f"{validation.mean():.4f}",
        f"{held_out.mean():.4f} ± {held_out.std():.4f}",
        "" if is_first else f"{ahead.mean():+.4f}, in {np.sum(ahead > 0)} of {ahead.size} splits",
    ]


def counts(lambdas: Array) -> str:
    """How often each was chosen, the largest first."""
    return ", ".join(f"{lam:.0e}: {np.sum(lambdas == lam)}" for lam in np.unique(lambdas)[::-1])


def print_table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """A table as the READMEs have it."""
    for line in (headings, ["---"] * len(headings), *lines):
        print(f"| {' | '.join(line)} |", flush=True)


def options(name: str, doc: str | None, lambdas: Sequence[float] = LAMBDAS) -> argparse.ArgumentParser:
    """The command line of a script."""
    parser = argparse.ArgumentParser(prog=f"python -m mpi_examples.{name}.tune", description=doc)
    parser.add_argument("--without-shared", action="store_true", help="as where there is no ../shared/data")
    parser.add_argument("--lambdas", type=float, nargs="+", default=lambdas, help="to choose among, falling")
    return parser


def options_of_splits(name: str, doc: str | None) -> argparse.ArgumentParser:
    """That of a script that calls `compare`."""
    parser = options(name, doc)
    parser.add_argument("--splits", type=int, default=10, help="how often the rows are parted")
    return parser
