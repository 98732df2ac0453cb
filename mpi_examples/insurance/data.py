"""Claims of insured cars: a table as an insurer has it, made by code, with exposures and categories."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from bmrm.data.files import whole_file

ROWS, NEW = 20_000, 5
AREA = {"village": -0.4, "suburb": 0.0, "city": 0.3, "centre": 0.5}
MAKE = {"Adler": 0.0, "Borgward": -0.2, "Cyklon": 0.4, "Dixi": -0.1, "Elite": 0.6, "Fafnir": 0.1}
FUEL = {"petrol": 0.0, "diesel": 0.15}
HEADER = "age,power,area,make,fuel,log_exposure,claims"


def write(folder: Path, shared: Path | None) -> str:
    """`train.csv`, a fifth of the rows as `test.csv`, and `new.csv`: policies without claims, one of a new make."""
    random = np.random.default_rng(0)
    lines = table(random, ROWS)
    tested = random.random(len(lines)) < 0.2
    new = [line.rpartition(",")[0] for line in table(random, NEW)]
    new[-1] = "30,90,city,Zündapp,petrol,0.0"
    parts = {
        "train": [HEADER, *(line for line, one in zip(lines, tested) if not one)],
        "test": [HEADER, *(line for line, one in zip(lines, tested) if one)],
        "new": [HEADER.rpartition(",")[0], *new],
    }
    for name, rows in parts.items():
        with whole_file(folder / f"{name}.csv") as file:
            file.write("".join(f"{row}\n" for row in rows).encode())
    return "no ../shared/data is needed: a made table"


def table(random: np.random.Generator, rows: int) -> list[str]:
    """The lines of the table; the number of claims is Poisson, its mean exp(score) times the years insured."""
    age, power = random.integers(18, 80, rows), random.integers(40, 200, rows)
    area, make, fuel = (random.choice(list(one), rows) for one in (AREA, MAKE, FUEL))
    years = random.integers(1, 13, rows) / 12.0
    score = -2.0 + 0.004 * (power - 100) + 0.8 * np.exp(-(age - 18) / 8.0)
    for effects, values in ((AREA, area), (MAKE, make), (FUEL, fuel)):
        score += np.array([effects[value] for value in values.tolist()])
    claims = random.poisson(years * np.exp(score))
    columns = (age, power, area, make, fuel, [f"{math.log(one):.6f}" for one in years], claims)
    return [",".join(map(str, row)) for row in zip(*columns, strict=True)]
