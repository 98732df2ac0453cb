"""A description of the problem as plain JSON, to decide whether two runs have the same one and what differs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bmrm.app.config.relative import in_words
from bmrm.data.dataset import Dataset
from bmrm.data.digest import digests, totals
from bmrm.mpi.group import Group

Facts = dict[str, Any]
BITS, WORD = 32, 1 << 64
"""Bits of the pieces of a digest, and 2^64. Digests are summed over ranks as floats, which are exact for such
pieces."""
DATA = {"data": "training data", "validation": "validation data"}
"""Names in messages of the facts about rows."""
OPTIONAL = "class_weight", "classes", "labels", "features", "calibrate"
"""Names of facts that are there where they are given; files of earlier versions have none."""
LAMBDA = "lambda"
"""Name of the fact with the value of a lambda that depends on the rows."""


def of_settings(settings: Mapping[str, Any]) -> Facts:
    """The settings that define the minimiser, without those of how it is found."""
    data = settings["data"]
    facts = {"loss": settings["loss"], "regularizer": with_content(settings["regularizer"])}
    facts["search"] = settings["search"]
    facts |= {name: data[name] for name in ("bias", "scale", "positive_label")}
    given = {"calibrate": settings["calibrate"]} | {name: data[name] for name in ("class_weight", "features")}
    given |= {name: None if data[name] == "together" else data[name] for name in ("classes", "labels")}
    facts |= {name: given[name] for name in OPTIONAL if given[name] is not None}
    plain: Facts = json.loads(json.dumps(facts))
    return plain


def with_content(section: Mapping[str, Any]) -> Mapping[str, Any]:
    """A regularizer as configs name it, a model file that is its center being named by what it holds.

    Parameters
    ----------
    section : its name and options; of a regularizer with `center` a file that cannot be read is left as it is.
    """
    path = section.get("center")
    if not isinstance(path, str):
        return section
    try:
        digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]
    except OSError:
        return section
    return {**section, "center": f"a model file of digest {digest}"}


def of_rows(data: Dataset, group: Group) -> Facts:
    """Collective: digests of the training rows of all ranks; reads them once.

    `content` depends neither on the order nor on the distribution of the rows, `order` depends on the order.
    """
    counts = group.broadcast(group.gather(data.rows))
    mine = totals(digests(data), sum(counts[: group.rank]))
    pieces = [float(number >> shift & (1 << BITS) - 1) for number in mine for shift in (0, BITS)]
    low, high, low_order, high_order = (int(piece) for piece in group.sum(np.array(pieces)))
    return {
        "rows": sum(counts),
        "features": data.features,
        "content": _hex(low + (high << BITS)),
        "order": _hex(low_order + (high_order << BITS)),
    }


def _hex(number: int) -> str:
    return f"{number % WORD:016x}"


def difference(there: Any, here: Facts) -> str | None:
    """The difference between two problems in words, None if there is none; missing data count as equal."""
    if not isinstance(there, Mapping):
        return "what it is of is not said there"
    names = [name for name in here if name not in (*DATA, LAMBDA)]
    names += [name for name in OPTIONAL if name in there and name not in here]
    theirs, ours = _with_values(there, here)
    settings = [one for name in names for one in _unequal(name, theirs.get(name), ours.get(name))]
    if settings:
        more = f", and {len(settings) - 3} more" if len(settings) > 3 else ""
        return "; ".join(settings[:3]) + more
    if "data" not in here:
        return None
    found = (_other_rows(what, there.get(name), here.get(name)) for name, what in DATA.items())
    return next(filter(None, found), None)


def _with_values(there: Mapping[str, Any], here: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both with lambdas that can be compared: the same rule is equal to itself, another is its value, in words.

    A rule whose value is not known here yet, before the rows are read, is taken for equal.
    """
    both = [dict(there), dict(here)]
    found = [facts.get("regularizer") for facts in both]
    sections = [section for section in found if isinstance(section, Mapping) and "lambda" in section]
    if len(sections) < 2:
        return both[0], both[1]
    rules = [section["lambda"] for section in sections]
    values = [rule if isinstance(rule, (int, float)) else facts.get(LAMBDA) for rule, facts in zip(rules, both)]
    unknown = values[1] is None or (values[0] is None and "data" not in here)
    equal = rules[0] == rules[1] or unknown or values[0] == values[1]
    for facts, section, rule, value in zip(both, sections, rules, values):
        facts["regularizer"] = {**section, "lambda": None if equal else in_words(rule, value)}
    return both[0], both[1]


def same(problems: Sequence[Any]) -> bool:
    """Whether all are one problem, so that objectives can be compared; rows may come in any order."""
    return bool(problems and problems[0]) and all(difference(other, problems[0]) is None for other in problems[1:])


def _other_rows(what: str, theirs: Any, ours: Facts | None) -> str | None:
    """How rows differ in words; those of training are never missing here."""
    if ours is None:
        return None if theirs is None else f"there are {what} there, none here"
    if not isinstance(theirs, Mapping):
        return f"what {what} it is of is not said there"
    for name in ("rows", "features"):
        if theirs.get(name) != ours[name]:
            return f"the {what} have {theirs.get(name)!s:.20} {name} there, {ours[name]} here"
    return None if theirs.get("content") == ours["content"] else f"the {what} differ in features, labels or weights"


def _unequal(name: str, there: Any, here: Any) -> Iterator[str]:
    if isinstance(there, Mapping) and isinstance(here, Mapping) and there.get("name") == here.get("name"):
        for key in {**here, **there}:
            yield from _unequal(f"{name}.{key}", there.get(key), here.get(key))
    elif there != here:
        yield f"{name} is {_shown(there)} there, {_shown(here)} here"


def _shown(value: Any) -> str:
    value = value["name"] if isinstance(value, Mapping) and "name" in value else value
    return "null" if value is None else f"{value!s:.60}"
