"""Sentences of CoNLL-2000, or of a small grammar: word, tag and chunk label of each token."""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from pathlib import Path

import numpy as np

PHRASES = {
    "NP": (("DT", "NN"), ("DT", "JJ", "NN"), ("NNP",), ("NNP", "NNP"), ("NNS",), ("JJ", "NNS"), ("PRP",)),
    "VP": (("VBD",), ("MD", "VB"), ("VBZ",), ("TO", "VB"), ("VBD", "RB", "VBN")),
    "PP": (("IN",), ("TO",)),
    "ADVP": (("RB",), ("RB", "RB")),
    "ADJP": (("JJ",), ("RB", "JJ")),
    "O": ((",",), ("CC",), (".",)),
}
FOLLOWS = {
    "": ("NP", "NP", "PP", "ADVP"),
    "NP": ("VP", "VP", "PP", "O", "ADVP", "NP"),
    "VP": ("NP", "NP", "PP", "ADJP", "O"),
    "PP": ("NP",),
    "ADVP": ("VP", "NP", "O"),
    "ADJP": ("PP", "O"),
    "O": ("NP", "NP", "VP", "ADVP"),
}
SPECIAL = {",": (",",), ".": (".",), "TO": ("to",), "DT": ("the", "a", "this", "no"), "CC": ("and", "but", "or")}
MISTAKEN = {"VBD": "VBN", "NN": "VB", "JJ": "NN", "RB": "IN", "NNP": "NN", "VB": "NN"}
"""Tags that a tagger takes for others, one time in twelve."""


def write(folder: Path, shared: Path | None) -> str:
    """`train.txt` and `test.txt`, a token a line, a blank line between sentences."""
    if shared is not None:
        for part in ("train", "test"):
            (folder / f"{part}.txt").write_bytes(lzma.decompress((shared / f"conll2000.{part}.txt.xz").read_bytes()))
        return "CoNLL-2000: 8936 sentences to learn, 2012 to test"
    for part, seed, count in (("train", 0, 2000), ("test", 1, 500)):
        (folder / f"{part}.txt").write_text("\n".join(sentences(seed, count)))
    return "no ../shared/data: 2500 sentences of a small grammar instead of CoNLL-2000"


def sentences(seed: int, count: int) -> Iterator[str]:
    """Generated ones, each with a line per token and an empty line at its end."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        lines, before = [], ""
        for _ in range(int(rng.integers(3, 14))):
            kind = str(rng.choice(FOLLOWS[before]))
            choices = PHRASES[kind]
            for k, tag in enumerate(choices[int(rng.integers(len(choices)))]):
                label = "O" if kind == "O" else f"{'B' if k == 0 else 'I'}-{kind}"
                lines.append(f"{_word(rng, tag)} {_tag(rng, tag)} {label}\n")
            before = kind
        yield "".join(lines)


def _word(rng: np.random.Generator, tag: str) -> str:
    """Few words are frequent; some belong to several tags."""
    if tag in SPECIAL:
        return str(rng.choice(SPECIAL[tag]))
    number = min(int(rng.zipf(1.6)), 500)
    shared = rng.random() < 0.15
    return f"word{number}" if shared else f"{tag.lower()}{number}"


def _tag(rng: np.random.Generator, tag: str) -> str:
    return MISTAKEN.get(tag, tag) if rng.random() < 1 / 12 else tag
