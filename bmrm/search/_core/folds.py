"""Folds: which rows are held out, and which are trained on, by the splitters of scikit-learn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.data.label_types import shown_label
from bmrm.data.labels import LabelSets
from bmrm.mpi.dealing import gather_targets
from bmrm.mpi.group import Group, together
from bmrm.problem import InputError, Targets, facts_of, shown
from bmrm.registry import Range, checked_value, nearest

Indices = NDArray[np.int64]
NEVER = -1
"""Number of the fold of rows that are never held out."""
SPLITS = ("auto", "stratified", "random", "grouped", "time")
"""How rows are divided: "auto" keeps groups whole where the loss is of groups, and else the shares of the classes."""
ONE_CLASS_EACH = ("binary", "multiclass", "ontology", "ordinal")
"""Tasks whose rows have a class."""


@dataclass(frozen=True)
class AskedFolds:
    """What is wanted of folds.

    Attributes
    ----------
    count : how many, or the fold of each row: an array, the path of a file with a number on each line (-1 for rows
        that are never held out), a splitter of scikit-learn, or pairs of numbers of rows (trained on, held out).
    split : one of `SPLITS`.
    repeats : times that the rows are divided anew.
    seed : of the draws.
    origin : what messages call folds that are given; None for "folds", or their file.
    """

    count: Any = 10
    split: str = "auto"
    repeats: int = 1
    seed: int = 0
    origin: str | None = None

    def __post_init__(self) -> None:
        if self.split not in SPLITS:
            raise InputError(f"split is {shown(self.split)}, expected one of {', '.join(SPLITS)}{_near(self.split)}")
        checked_value("repeats", self.repeats, (int,), Range(least=1))
        checked_value("seed", self.seed, (int,), Range(least=0))
        if self.repeats > 1 and (self.given or self.split == "time"):
            what = "given folds are" if self.given else "time has one order, so that it is"
            raise InputError(f"repeats is {self.repeats}, but {what} divided once")
        if not self.given:
            checked_value("folds", self.count, (int,), Range(least=2))

    @property
    def given(self) -> bool:
        """Whether the folds are given, not drawn."""
        return not isinstance(self.count, (int, np.integer)) or isinstance(self.count, bool)


def _near(word: Any) -> str:
    return nearest(word, SPLITS) if isinstance(word, str) else ""


@dataclass(frozen=True)
class Split:
    """One division of this rank's rows.

    Attributes
    ----------
    name : for tables: `3`, or `2.3` for the third fold of the second repeat.
    train, held : numbers of rows, ascending.
    """

    name: str
    train: Indices
    held: Indices

    def rows(self, data: Dataset, which: Indices) -> Dataset:
        """Some rows: a view where they follow one another, else a copy, of which there is one at a time."""
        if len(which) and which[-1] - which[0] + 1 == len(which):
            found = data.part(int(which[0]), int(which[-1]) + 1)
        else:
            found = data.select(which)
        return found


@dataclass(frozen=True)
class Folds:
    """All divisions.

    Attributes
    ----------
    splits : in order.
    words : what they are: `10 stratified folds`.
    numbers : of this rank's rows, (rows, repeats): the fold in which each is held out, from 1; 0 where in none.
    """

    splits: tuple[Split, ...]
    words: str
    numbers: Indices

    @classmethod
    def prepared(cls, asked: AskedFolds, data: Dataset, loss: Any, group: Group) -> Folds:
        """Collective: the folds of the rows of all ranks, which depend on the order of rows, not on who has them.

        Raises
        ------
        InputError
            More folds than rows, groups, or rows of a class; folds that are given for another number of rows; a fold
            without rows, or that leaves none to train on.
        """
        counts: list[int] = group.broadcast(group.gather(data.rows))
        targets = gather_targets(data.targets, group)
        total, found, words = sum(counts), None, ""
        pairs: list[tuple[Indices, Indices]] = []
        with together(group):
            if targets is not None:
                if asked.given:
                    pairs, words = _given(asked.count, total, targets, asked.origin or "folds")
                else:
                    pairs, words = _drawn(asked, targets, loss)
                _refuse_empty(pairs)
                found = _table(pairs, total)
        words = group.broadcast(words)
        table = group.broadcast_array(found).astype(np.int8)
        first = sum(counts[: group.rank])
        mine = table[:, first : first + data.rows]
        repeats = 1 if asked.given else asked.repeats
        each = len(mine) // repeats
        splits = tuple(
            Split(
                f"{k % each + 1}" if repeats == 1 else f"{k // each + 1}.{k % each + 1}",
                np.flatnonzero(line == TRAINED),
                np.flatnonzero(line == HELD),
            )
            for k, line in enumerate(mine)
        )
        numbers = np.zeros((data.rows, repeats), np.int64)
        for k, split in enumerate(splits):
            numbers[split.held, k // each] = k % each + 1
        return cls(splits, words, numbers)


LEFT_OUT, TRAINED, HELD = 0, 1, 2
"""What a row is in a division."""


def _table(pairs: Sequence[tuple[Indices, Indices]], rows: int) -> NDArray[np.float64]:
    table = np.zeros((len(pairs), rows))
    for line, (train, held) in zip(table, pairs):
        line[train], line[held] = TRAINED, HELD
    return table


def _refuse_empty(pairs: Sequence[tuple[Indices, Indices]]) -> None:
    for k, (train, held) in enumerate(pairs):
        if not len(train) or not len(held):
            raise InputError(f"fold {k + 1} of {len(pairs)} has no rows to {'judge by' if len(train) else 'train on'}")


def _given(given: Any, rows: int, targets: Targets, origin: str) -> tuple[list[tuple[Indices, Indices]], str]:
    """Pairs of rows, and what they are, from a file, an array, a splitter or pairs."""
    if isinstance(given, (str, Path)):
        origin, given = str(given), read_numbers(given)
    elif callable(getattr(given, "split", None)):
        y = None if isinstance(targets.y, LabelSets) else targets.y
        given = list(given.split(np.zeros((rows, 1)), y, targets.groups))
        return [_pair(one, rows) for one in given], f"{len(given)} given folds"
    elif isinstance(given, Iterable) and not isinstance(given, np.ndarray):
        given = list(given)
        if given and all(isinstance(one, tuple) and len(one) == 2 for one in given):
            return [_pair(one, rows) for one in given], f"{len(given)} given folds"
    fold = _numbers(given, rows, origin)
    names = np.unique(fold[fold != NEVER])
    if len(names) < 2 and not (len(names) == 1 and np.any(fold == NEVER)):
        raise InputError(f"{origin}: {len(names)} folds, expected two or more")
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in names], f"{len(names)} given folds"


def read_numbers(path: Path | str) -> Any:
    """Whole numbers of a file, one on each line; InputError for others, and for a file that cannot be read."""
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").split()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    found = np.zeros(len(lines), np.int64)
    for k, text in enumerate(lines):
        try:
            found[k] = int(text)
        except (ValueError, OverflowError):
            raise InputError(f"{path}, line {k + 1}: {shown(text)}, expected the number of a fold") from None
    return found


def _numbers(given: Any, rows: int, origin: str) -> Indices:
    try:
        fold = np.asarray(given)
    except ValueError:
        fold = np.empty((0, 0))
    if fold.ndim != 1 or (fold.size and fold.dtype.kind not in "iu"):
        raise InputError(f"{origin} are {shown(given)}, expected how many, or a whole number for each row")
    if len(fold) != rows:
        raise InputError(f"{origin}: {len(fold)} numbers of folds, the training data have {rows} rows")
    return fold.astype(np.int64)


def _pair(given: Any, rows: int) -> tuple[Indices, Indices]:
    """Rows to train on and to hold out, ascending; InputError for numbers that no row has, or that both have."""
    train, held = (np.unique(np.asarray(one, np.int64).reshape(-1)) for one in given)
    for one in (train, held):
        if len(one) and (one[0] < 0 or one[-1] >= rows):
            raise InputError(f"folds: row {one[0] if one[0] < 0 else one[-1]}, the training data have {rows} rows")
    both = np.intersect1d(train, held)
    if both.size:
        raise InputError(f"folds: row {both[0]} is trained on and held out, expected one of the two")
    return train, held


def _drawn(asked: AskedFolds, targets: Targets, loss: Any) -> tuple[list[tuple[Indices, Indices]], str]:
    """Pairs of rows by a splitter of scikit-learn, and what they are."""
    from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, TimeSeriesSplit

    facts, count, rows = facts_of(loss), int(asked.count), targets.rows
    split = _kind(asked.split, targets, facts)
    classes = _classes(targets, facts)
    if rows < 2:
        raise InputError(f"folds: the training data have n_samples = {rows}, expected two or more")
    if count > rows:
        raise InputError(f"folds is {count}, expected a number from 2 to the {rows} rows")
    if split == "time":
        if count >= rows:
            raise InputError(f"folds is {count}, expected fewer than the {rows} rows for folds in the order of time")
        pairs = list(TimeSeriesSplit(count).split(np.zeros((rows, 1))))
        return [_pair(one, rows) for one in pairs], f"{count} folds in the order of time"
    groups = None
    if split == "grouped":
        assert targets.groups is not None
        groups = np.unique(targets.groups, return_inverse=True)[1].reshape(-1)
        if count > (known := int(groups.max(initial=-1)) + 1):
            raise InputError(f"folds is {count}, expected a number from 2 to the {known} groups")
    elif split == "stratified":
        assert classes is not None
        _refuse_rare(classes, targets, count)
    makers: dict[str, Any] = {"stratified": StratifiedKFold, "random": KFold}
    makers["grouped"] = GroupKFold if classes is None else StratifiedGroupKFold
    pairs = []
    for k in range(asked.repeats):
        splitter = makers[split](count, shuffle=True, random_state=(asked.seed + k) % 2**32)
        y = None if classes is None else classes
        pairs += list(splitter.split(np.zeros((rows, 1)), y, groups))
    again = f", divided {asked.repeats} times" if asked.repeats > 1 else ""
    return [_pair(one, rows) for one in pairs], f"{count} {split} folds{again}"


def _kind(split: str, targets: Targets, facts: Any) -> str:
    """How rows are divided; InputError where they cannot be so."""
    whole = facts.by_group or facts.decomposes == "groups"
    classes = _classes(targets, facts) is not None
    if split == "auto":
        return "grouped" if whole and targets.groups is not None else "stratified" if classes else "random"
    if split == "grouped" and targets.groups is None:
        raise InputError("split is 'grouped', but the rows have no groups")
    if split == "stratified" and not classes:
        raise InputError(f"split is 'stratified', but rows of {facts.title} have no classes; expected auto or random")
    if whole and targets.groups is not None and split != "grouped":
        raise InputError(f"split is {shown(split)}, but {facts.title} needs whole groups; expected grouped")
    return split


def _classes(targets: Targets, facts: Any) -> Any:
    """The class of each row; None where they have none, or shares."""
    y = targets.y
    if facts.task not in ONE_CLASS_EACH or isinstance(y, LabelSets) or y.ndim != 1:
        return None
    shares = facts.takes_shares and y.dtype.kind == "f" and np.any(y % 1.0)
    return None if shares else np.unique(y, return_inverse=True)[1].reshape(-1)


def _refuse_rare(classes: Indices, targets: Targets, count: int) -> None:
    """InputError for a class with fewer rows than folds: some folds would lack it."""
    sizes = np.bincount(classes)
    rare = int(np.argmin(sizes))
    if len(sizes) < 2:
        raise InputError("folds: all rows have one class, expected two or more")
    if sizes[rare] < count:
        label = shown_label(np.unique(targets.y)[rare].item(), targets.dtype)
        raise InputError(
            f"folds is {count}, but the label {label} has {sizes[rare]} row{'' if sizes[rare] == 1 else 's'}, so that "
            "some folds would lack it; expected fewer folds, or split: random"
        )
