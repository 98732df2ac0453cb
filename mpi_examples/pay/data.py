"""Who is paid well: a table as a census has it, made by code, with categories, missing values and rare levels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bmrm.data.files import whole_file

ROWS = 20_000
WORK = {"private": 0.0, "state": 0.3, "own business": 0.2, "without pay": -3.0}
SCHOOL = {"primary": -1.2, "secondary": -0.4, "bachelor": 0.6, "master": 1.1, "doctorate": 1.6}
TRADE = {
    "sales": 0.1,
    "crafts": -0.2,
    "care": -0.3,
    "office": 0.0,
    "engineering": 0.8,
    "management": 1.0,
    "farming": -0.8,
}
TOWNS = 60


def write(folder: Path, shared: Path | None) -> str:
    """`train.csv` and, a fifth of the rows, `test.csv`."""
    random = np.random.default_rng(0)
    lines = table(random)
    tested = random.random(len(lines)) < 0.2
    for name, wanted in (("train", ~tested), ("test", tested)):
        with whole_file(folder / f"{name}.csv") as file:
            rows = [line for line, one in zip(lines, wanted) if one]
            file.write("".join(f"{line}\n" for line in [HEADER, *rows]).encode())
    return "no ../shared/data is needed: a made table"


HEADER = "age,hours,work,school,trade,town,region,pay"


def table(random: np.random.Generator) -> list[str]:
    """The lines of the table."""
    age, hours = random.integers(17, 75, ROWS), np.clip(random.normal(38, 10, ROWS), 2, 90).round()
    work, school, trade = (random.choice(list(one), ROWS) for one in (WORK, SCHOOL, TRADE))
    place = np.minimum(random.geometric(0.07, ROWS), TOWNS) - 1  # most people live in few towns
    town = np.array([f"town {k}" for k in range(TOWNS)])[place]
    region = place % 5 + 1
    rich = random.normal(0.0, 0.5, TOWNS)[place]
    score = -0.5 + 0.04 * (hours - 38) - ((age - 50) / 20) ** 2 + rich
    for names, values in ((WORK, work), (SCHOOL, school), (TRADE, trade)):
        score += np.array([names[value] for value in values.tolist()])
    pay = np.where(score + random.logistic(size=ROWS) > 0.0, "high", "low")
    columns = [_gaps(age, 0.02, random), hours.astype(int), _gaps(work, 0.05, random), school, trade, town, region, pay]
    return [",".join(map(str, row)) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _gaps(values: NDArray, share: float, random: np.random.Generator) -> NDArray:
    """The values as text, a share of them empty."""
    return np.where(random.random(len(values)) < share, "", values.astype(str))
