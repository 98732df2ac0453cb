"""Short texts on twenty topics as counts of words: news20, or texts that are made by code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from bmrm.data.dataset import Dataset
from mpi_examples.prepare import write_split

ROWS, WORDS, TOPICS, LENGTH = 6_000, 5_000, 20, 40


def write(folder: Path, shared: Path | None) -> str:
    """`train.npz` and, a fifth of the rows, `test.npz`."""
    random = np.random.default_rng(0)
    topic = random.integers(0, TOPICS, ROWS)
    frequent = 1.0 / (10.0 + np.arange(WORDS))
    own = np.array([np.where(random.random(WORDS) < 0.02, 20.0, 1.0) for _ in range(TOPICS)]) * frequent
    words = np.concatenate([random.choice(WORDS, LENGTH, p=own[k] / own[k].sum()) for k in topic])
    places = np.repeat(np.arange(ROWS), LENGTH), words
    counts = csr_array((np.ones(len(words)), places), shape=(ROWS, WORDS))
    counts.sum_duplicates()
    names = np.array([f"topic {k:02d}" for k in range(TOPICS)])
    write_split(folder, Dataset.from_arrays(counts, names[topic]))
    return "no ../shared/data is needed: 6,000 made texts of 40 words on twenty topics"
