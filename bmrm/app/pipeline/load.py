"""From the section `data` to datasets, each rank with its own rows; ranks agree here on labels, features and layout."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bmrm.data.class_weights import ClassWeight, checked, factors, of_stored
from bmrm.data.dataset import Dataset, near_one
from bmrm.data.encoding import Encoding, Unknown, merged, notes_of, unknown_in_words
from bmrm.data.files import about
from bmrm.data.label_types import shown_label, stored
from bmrm.data.layout import Alike, Layout
from bmrm.data.matrix import features_of
from bmrm.data.raw_columns import Coding
from bmrm.data.readers._core.raw import Raw, nothing
from bmrm.data.reading import from_one, is_made, read_offset, read_weights, scan, with_columns
from bmrm.data.text_reader import TextReader
from bmrm.data.vocabulary import NamedColumns, Vocabulary, counts_of
from bmrm.mpi.group import Group, together
from bmrm.problem import IncompatibleError, InputError, Summary, Vector, facts_of, shown
from bmrm.registry import nearest

PARTS = ("train", "validation", "test")


@dataclass(frozen=True, eq=False)
class Loaded:
    """This rank's rows of each part that the config names, all with the same number of features."""

    parts: dict[str, Dataset]
    rows: int
    """Of the training data, over all ranks."""
    nnz: int
    """Likewise."""
    notes: tuple[str, ...] = ()
    """What was decided in reading them, for the user; on rank 0."""

    @property
    def train(self) -> Dataset:
        """The training rows."""
        return self.parts["train"]


def load(section: Mapping[str, Any], seed: int, group: Group) -> Loaded:
    """Collective: read what the section `data` (plain, checked) names.

    Raises
    ------
    InputError
        On rank 0, with the first failing rank's message (`OtherRankError` on the others).
    """
    format = section["format"]
    with together(group):
        format = with_columns(format, section["header"], section["ignore"])
        coding = coding_of(section)
    if group.size > 1 and not all(map(is_made, section["train"])):
        group.first_per_node(lambda: compile_reader(section["format"]))

    def scanned(part: str, alike: Alike | None = None) -> Raw:
        sources = [seeded(source, seed) for source in section[part]]
        source = sources[0] if len(sources) == 1 else sources
        wanted = coding if part == "train" else None
        return scan(source, format=format, part=group.rank, parts=group.size, alike=alike, coding=wanted)

    raws: dict[str, Raw] = {}
    failed: InputError | None = None
    try:
        raws["train"] = scanned("train")
    except InputError as error:
        failed, raws["train"] = error, nothing("")
    layout = agreed_layout(raws["train"], group)
    with together(group):
        if failed is not None and layout.labels is None:
            raise failed
        found = raws["train"].layout
        if failed is not None or (found is not None and found.labels != layout.labels):
            raws["train"] = scanned("train", Alike(layout))  # with the labels where another rank's files have them
        raws["train"] = raws["train"].aligned(layout.names)
    layout, columns = agreed_encoding(raws["train"], layout, coding, group)
    with together(group):
        if layout.encoding is not None:
            raws["train"] = raws["train"].encoded(layout.encoding)
        layout, files = _offset(section, layout)
        if layout.offset is not None:
            raws["train"] = raws["train"].with_offset(layout.offset)
        for part in PARTS[1:]:
            if section[part] is not None:
                with about(f"data.{part}"):
                    raws[part] = scanned(part, Alike(layout))
    reader = agreed_reader(raws["train"], group)
    with together(group):
        raws = {part: _indexed(part, raw, reader) for part, raw in raws.items()}
    extents = {part: group.max(raw.extent) for part, raw in raws.items()}
    parts: dict[str, Dataset] = {}
    numbered = group.max(np.array([float(raws["train"].first is not None)]))[0]
    one_based = from_one(extents["train"]) if numbered else None
    with together(group):
        check_width(raws["train"], extents["train"])
        parts["train"] = raws["train"].dataset(extents["train"], features=section["dimension"])
        for part, raw in raws.items():
            if part != "train":
                parts[part] = _like_training(part, raw, extents[part], parts["train"], one_based)
    if reader is not None:
        parts = {part: _own_groups(data, group) for part, data in parts.items()}
    if section["weights"] is not None:
        parts["train"] = weighted(parts["train"], section["weights"], group)
    for part, path in files.items():
        parts[part] = _with_offset(part, parts[part], path, group)
    if layout.offset is not None:
        parts = {part: _offset_there(part, data, layout.offset, group) for part, data in parts.items()}
    sizes = group.sum(np.array([parts["train"].rows, parts["train"].nnz], np.float64))
    train = parts["train"]
    stated = section["dimension"] is not None
    layout = replace(layout, features=train.features, one_based=one_based, text=reader, stated=stated)
    parts["train"] = replace(train, layout=layout)
    return Loaded(parts, int(sizes[0]), int(sizes[1]), (*_notes(raws, group), *columns, *_unknown(raws, group)))


def _notes(raws: Mapping[str, Raw], group: Group) -> tuple[str, ...]:
    """Collective: what all ranks have decided in reading, each once, those of the training data first."""
    mine = [[part, note] for part, raw in raws.items() if raw.layout is not None for note in raw.layout.notes]
    told = [(part, note) for said in group.gather(mine) or [] for part, note in said]
    seen: dict[str, str] = {}
    for part, note in sorted(told, key=lambda one: PARTS.index(one[0])):
        seen.setdefault(note, part)
    return tuple(f"data.{part}: {note}" for note, part in seen.items())


def _unknown(raws: Mapping[str, Raw], group: Group) -> tuple[str, ...]:
    """Collective: what the other parts have that the training data had not, in all ranks."""
    mine = [
        [part, one.column, one.rows, one.level]
        for part, raw in raws.items()
        if raw.layout
        for one in raw.layout.unknown
    ]
    told = [one for said in group.gather(mine) or [] for one in said]
    found = ((part, [Unknown(*one) for of, *one in told if of == part]) for part in PARTS)
    return tuple(f"data.{part}: {unknown_in_words(some)}" for part, some in found if some)


def coding_of(section: Mapping[str, Any]) -> Coding:
    """What the section `data` wants of columns."""
    return Coding.checked(**{name: section[name] for name in ("categorical", "text", "missing", "drop_first", "rare")})


def agreed_encoding(raw: Raw, layout: Layout, coding: Coding, group: Group) -> tuple[Layout, tuple[str, ...]]:
    """Collective: the layout with an encoding of the columns by what all ranks have, and what to say of it.

    The layout stays as it is where the columns of all ranks are numbers that are features themselves.
    """
    if not group.max(np.array([float(raw.table is not None)]))[0]:
        return layout, ()
    mine: Any = None
    with together(group):
        if raw.data.rows:
            mine = [raw.columns().names, raw.columns().headed, raw.summaries(), raw.origin]
    told = [one for one in group.gather(mine) or [] if one is not None]
    agreed: Any = None
    with together(group):
        if group.rank == 0:
            names, headed, _, origin = told[0]
            if any(len(one[0]) != len(names) for one in told):
                raise InputError(f"{origin}: {len(names)} columns, the files of other ranks have another number")
            agreed = [names, headed, merged([one[2] for one in told], names, "data.train")]
    names, headed, found = group.broadcast(agreed)
    with together(group):
        encoding = Encoding.fitted(found, names, headed, coding, "data.train")
        layout = replace(layout, encoding=encoding, names=encoding.names, features=encoding.width)
    return layout, tuple(f"data.train: {note}" for note in notes_of(found, names))


def agreed_layout(raw: Raw, group: Group) -> Layout:
    """Collective: the layout of the files of the first rank with rows; empty if it is unknown."""
    mine = raw.layout if raw.data.rows else None
    said = None if mine is None else [mine.described(), mine.names]
    told = group.broadcast(next((one for one in group.gather(said) or [] if one is not None), None))
    if told is None:
        return Layout()
    layout = Layout.from_described(told[0], names=None if told[1] is None else tuple(told[1]))
    return replace(layout, format=None if told[0] is None else told[0]["format"])


def agreed_reader(raw: Raw, group: Group) -> TextReader | None:
    """Collective: the columns of features that are text, by their counts on all ranks; None where they are numbers."""
    mine = raw.names
    said = None if mine is None else {"min_count": mine.min_count, "hash_bits": mine.hash_bits, "format": mine.format}
    rule = group.broadcast(next((rule for rule in group.gather(said) or [] if rule is not None), None))
    if rule is None:
        return None
    empty = mine is None or rule["hash_bits"] is not None or features_of(raw.data.X).entries is None
    counts = group.gather([[], []] if empty else [list(mine.names), counts_of(raw.data.X)])  # type: ignore[union-attr, arg-type]
    names: list[str] = []
    with together(group):
        if counts is not None:
            named = NamedColumns((), rule["min_count"], rule["hash_bits"])
            names = list(named.vocabulary((pair[0], pair[1]) for pair in counts).names)
    return TextReader(rule["format"], Vocabulary(tuple(group.broadcast(names)), rule["hash_bits"]))


def _indexed(part: str, raw: Raw, reader: TextReader | None) -> Raw:
    if raw.names is not None and reader is None:
        raise InputError(f"data.{part}: {raw.origin}: the features have names, those of the training data numbers")
    if raw.names is None and reader is not None and raw.data.rows:
        raise InputError(f"data.{part}: {raw.origin}: the features have numbers, those of the training data names")
    return raw if reader is None else raw.indexed(reader.vocabulary)


def _own_groups(data: Dataset, group: Group) -> Dataset:
    """Collective: sentences numbered across all ranks, so that all numbers are different."""
    groups = data.targets.groups
    counts = group.broadcast(group.gather(0 if groups is None else int(groups.max(initial=-1)) + 1))
    if groups is None:
        return data
    return replace(data, targets=replace(data.targets, groups=groups + sum(counts[: group.rank])))


def compile_reader(format: Any) -> None:
    """Read two lines: the first process of a node compiles the reader, the others load it."""
    if format != "auto" and format != "svmlight" and not (isinstance(format, Mapping) and format["name"] == "svmlight"):
        return
    with tempfile.TemporaryDirectory() as folder:
        sample = Path(folder) / "sample.svm"
        sample.write_text("1 1:0.5 3:-1.25e-7 # two lines\n-1 2:3\n")
        scan(sample, format="svmlight" if format == "auto" else format)


def _like_training(part: str, raw: Raw, extent: Vector, train: Dataset, one_based: bool | None) -> Dataset:
    check_width(raw, extent)
    try:
        return raw.dataset(extent, features=train.features, one_based=one_based if raw.first is not None else None)
    except InputError as error:
        raise InputError(f"data.{part}: {error} (the training data have {train.features} features)") from error


def seeded(source: str, seed: int) -> str:
    """A `synthetic:` source that names no seed gets that of the config."""
    if not source.startswith("synthetic:") or "seed=" in source:
        return source
    return f"{source}{'&' if '?' in source else '?'}seed={seed}"


def check_width(raw: Raw, extent: Vector) -> None:
    """The number of columns without numbers must be the same on every rank."""
    if raw.first is None and raw.data.rows and raw.data.features != int(extent[1]):
        raise InputError(f"{raw.origin}: {raw.data.features} features, the files of other ranks have {int(extent[1])}")


def weighted(data: Dataset, path: str, group: Group) -> Dataset:
    """Collective: `data` with its share of the weights in a file, one per row in the order of all rows."""
    counts = group.broadcast(group.gather(data.rows))
    mine = data
    with together(group):
        weights = read_weights(path)
        if len(weights) != sum(counts):
            raise InputError(f"{path}: {len(weights)} weights, the training data have {sum(counts)} rows")
        if not weights.any():
            raise InputError(f"{path}: all weights are 0, expected at least one above 0")
        first = sum(counts[: group.rank])
        share = weights[first : first + data.rows].copy()
        mine = replace(data, targets=replace(data.targets, weights=share))
    return mine


def class_weighted(
    data: Dataset, given: ClassWeight, loss: Any, summary: Summary, group: Group
) -> tuple[Dataset, Summary]:
    """Collective: this rank's rows, their weights times the factors of their classes, and the summary with these.

    Raises
    ------
    IncompatibleError
        The rows of the loss have no class.
    InputError
        As of `bmrm.data.class_weights.factors`; all rows have a factor of 0.
    """
    if given is None:
        return data, summary
    with together(group):
        if facts_of(loss).task not in ("binary", "multiclass", "ontology"):
            raise IncompatibleError(f"{loss.title}: class_weight needs a loss of rows that have one class each")
    targets, labels = data.targets, sorted(summary.labels)
    weights = np.ones(data.rows) if targets.weights is None else np.asarray(targets.weights, np.float64)
    own = near_one(weights, float(group.max(np.array([weights.max(initial=0.0)]))[0]))
    place = np.zeros(0, np.int64)
    if data.rows:  # rows of weight 0 may have other labels, which do not count
        place = np.minimum(np.searchsorted(np.array(labels), targets.y), len(labels) - 1)
    masses = group.sum(np.bincount(place, own, len(labels)).astype(np.float64))
    with together(group):
        own = own * factors(of_stored(checked(given)), labels, masses)[place]
    total = float(group.sum(np.array([own.sum()]))[0])
    with together(group):
        if not total > 0.0:
            raise InputError("class_weight: all rows have a factor of 0, expected at least one above 0")
    weighted = replace(data, targets=replace(targets, weights=own, classes=tuple(labels)))
    return weighted, replace(summary, weight=total)


def _offset(section: Mapping[str, Any], layout: Layout) -> tuple[Layout, dict[str, str]]:
    """The layout without the column of the offset, where `data.offset` names one, and else the files of the offset."""
    given, names = section["offset"], layout.names or ()
    there = [part for part in PARTS if section[part] is not None]
    if given is None:
        return layout, {}
    if isinstance(given, str) and given in names:
        kept = tuple(name for name in names if name != given)
        return replace(layout, names=kept, offset=given), {}
    if isinstance(given, str) and not Path(given).is_file():
        told = f"no column of this name{nearest(given, names)}" if names else "the columns of data.train have no names"
        raise InputError(f"data.offset is {shown(given)}, expected the name of a column or a file; {told}, and no file")
    files = {"train": given} if isinstance(given, str) else dict(given)
    wrong = next((part for part in (*files, *there) if (part in files) != (part in there)), None)
    if wrong is not None:
        told = f"data.{wrong} has none" if wrong in there else f"there is no data.{wrong}"
        raise InputError(
            f"data.offset names files for {', '.join(files)}, {told}; expected {{train: FILE, test: FILE}}"
        )
    return layout, files


def _with_offset(part: str, data: Dataset, path: str, group: Group) -> Dataset:
    """Collective: `data` with its share of the offset in a file, one per row in the order of all rows."""
    counts = group.broadcast(group.gather(data.rows))
    mine = data
    with together(group):
        offset = read_offset(path)
        if len(offset) != sum(counts):
            raise InputError(f"{path}: the offset of {len(offset)} rows, data.{part} has {sum(counts)} rows")
        first = sum(counts[: group.rank])
        mine = data.with_offset(offset[first : first + data.rows].copy())
    return mine


def _offset_there(part: str, data: Dataset, name: str, group: Group) -> Dataset:
    """Collective: `data`; zeros of a rank without rows; InputError where rows have no offset."""
    mine = data
    with together(group):
        if data.targets.offset is None and data.rows:
            raise InputError(f"data.{part}: no column {shown(name)}, which is data.offset")
        mine = data if data.rows else data.with_offset(np.zeros(0))
    return mine


def positive_last(summary: Summary, positive: Any) -> Summary:
    """The summary with `positive` as the second of its two labels; unchanged if None."""
    if positive is None:
        return summary
    if len(summary.labels) != 2:
        raise InputError(
            f"data.positive_label is {shown(positive)}, which needs two labels; there are {len(summary.labels)}"
        )
    if np.ndim(positive) or isinstance(positive, (dict, set, frozenset)):
        raise InputError(f"data.positive_label is {shown(positive)}, expected one label")
    coded = positive if isinstance(positive, str) else stored(np.array([positive]), "positive_label")[0][0].item()
    if coded not in summary.labels:
        known = " and ".join(shown_label(label, summary.dtype) for label in summary.labels)
        raise InputError(f"data.positive_label is {shown(positive)}, but the labels are {known}")
    if summary.labels[1] == coded:
        return summary
    return replace(summary, labels=summary.labels[::-1], counts=summary.counts[::-1])
