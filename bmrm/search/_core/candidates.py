"""What a search tries: values of fields of a config, and the problem that has them."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bmrm.app.pipeline.solve import BIASES, Problem
from bmrm.data.class_weights import checked
from bmrm.losses import LOSSES
from bmrm.losses._core.per_column import PerColumn
from bmrm.problem import InputError, shown
from bmrm.registry import Registry, field_name, nearest, option_name
from bmrm.regularizers import REGULARIZERS
from bmrm.risk.scaling import SCALINGS
from bmrm.solvers import SOLVERS
from bmrm.vocabulary import canonical

LAMBDA = "regularizer.lambda"
Values = Mapping[str, Any]
"""A value for each field."""
PLUG_INS: Mapping[str, Registry[Any]] = {"loss": LOSSES, "regularizer": REGULARIZERS, "solver": SOLVERS}
DATA = {"bias": tuple(BIASES), "scale": tuple(name for name in SCALINGS if name != "unit_norm"), "class_weight": None}
"""Fields of the section `data` that may be tried, with their values where these are a few."""


@dataclass(frozen=True)
class Candidate:
    """One setting.

    Attributes
    ----------
    values : of the fields that are searched; {} where there are none.
    problem : that has them.
    """

    values: Values
    problem: Problem

    @property
    def lam(self) -> float:
        """The lambda of its regularizer; 0 where that has none."""
        return float(getattr(self.problem.regularizer, "lam", 0.0))  # a regularizer of a user's may have none


def is_field(name: str) -> bool:
    """Whether a key of a search is a field that is tried: `loss`, `regularizer.lambda`, `data.scale`."""
    return "." in name or name in PLUG_INS


def checked_fields(fields: Any, lists: bool = True) -> dict[str, Any]:
    """Fields by their names in configs, each with its values as a list; values are checked where they are tried.

    Parameters
    ----------
    fields : a mapping.
    lists : whether values must be lists; a random search also takes ranges.

    Raises
    ------
    InputError
        For no fields, an empty list, a section that cannot be tried, and a field that is given twice.
    """
    if not isinstance(fields, Mapping) or not fields:
        raise InputError(
            f"search: fields is {shown(fields)}, expected such as {{regularizer.lambda: [1.0e-4, 1.0e-3]}}"
        )
    found: dict[str, Any] = {}
    for word, values in fields.items():
        name = canonical_field(str(word))
        if name in found:
            raise InputError(f"search: {word} and another field are the same setting, expected one of them")
        listed = isinstance(values, Sequence) and not isinstance(values, str)
        if listed and not len(values):
            raise InputError(f"search: {word} has no values, expected a list of one or more")
        if not listed and (lists or not isinstance(values, Mapping)):
            raise InputError(f"search: {word} is {shown(values)}, expected a list of values")
        found[name] = list(values) if listed else dict(values)
    return found


def canonical_field(word: str) -> str:
    """The field by its name in configs; InputError for one that cannot be tried."""
    section, _, option = word.partition(".")
    if section in PLUG_INS and option:
        names = {option_name(f.name) for entry in PLUG_INS[section].all() for f in entry.parameters}
        own = canonical(option, names)
        if own is None and "." not in option:
            own = option if ":" in option else None  # of a plug-in outside it is looked for in its class
        if own is not None:
            return f"{section}.{own}"
        raise InputError(f"search: unknown field {shown(word)}{nearest(word, [f'{section}.{one}' for one in names])}")
    if section in PLUG_INS or (section == "data" and option in DATA):
        return word
    known = [*PLUG_INS, LAMBDA, *(f"data.{name}" for name in DATA)]
    raise InputError(
        f"search: unknown field {shown(word)}{nearest(word, known)}; expected loss, regularizer or solver, an option "
        "of theirs such as regularizer.lambda, or data.bias, data.scale, data.class_weight"
    )


def grid(fields: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All combinations, the last field varying first."""
    names = list(fields)
    return [dict(zip(names, values)) for values in itertools.product(*fields.values())]


def candidates_of(problem: Problem, tried: Iterable[Values]) -> list[Candidate]:
    """The candidates, in order; InputError for values that a field cannot have."""
    return [Candidate(dict(values), with_values(problem, values)) for values in tried]


def with_values(problem: Problem, values: Values) -> Problem:
    """The problem with these values; whole plug-ins before their options."""
    for name in sorted(values, key=lambda name: "." in name):
        section, _, option = name.partition(".")
        problem = _with(problem, section, option, values[name], name)
    return problem


def _with(problem: Problem, section: str, option: str, value: Any, name: str) -> Problem:
    if section == "data":
        return _with_data(problem, option, value)
    per_column = problem.loss if section == "loss" and isinstance(problem.loss, PerColumn) else None
    before = per_column.loss if per_column is not None else getattr(problem, section)
    if before is None:  # the solver of a rank that answers
        return problem
    after = _with_option(before, option, value, name) if option else _instance(section, before, value)
    if per_column is not None:
        after = replace(per_column, loss=after)
    relative = None if section == "regularizer" and option == "lambda" else problem.relative
    return replace(problem, **{section: after}, relative=relative)


def _instance(section: str, before: Any, value: Any) -> Any:
    """A whole plug-in; a regularizer without a lambda has that of the one before."""
    given = {"name": value} if isinstance(value, str) else value
    if section == "regularizer" and isinstance(given, Mapping):
        names = REGULARIZERS.options(str(given.get("name")))
        if "lambda" in names and not any(canonical(str(word), ("lambda",)) for word in given):
            given = {**given, "lambda": before.lam}
    return PLUG_INS[section].instance(given)


def _with_option(before: Any, option: str, value: Any, name: str) -> Any:
    fields = [field.name for field in dataclasses.fields(before) if field.init]
    if field_name(option) not in fields:
        own = [option_name(field) for field in fields]
        title = getattr(type(before), "name", type(before).__name__)
        raise InputError(f"search: {name}: {title} has no option {shown(option)}{nearest(option, own)}")
    if isinstance(value, np.generic):
        value = value.item()
    if (
        isinstance(value, int)
        and not isinstance(value, bool)
        and isinstance(getattr(before, field_name(option)), float)
    ):
        value = float(value)
    try:
        return replace(before, **{field_name(option): value})
    except InputError as error:
        raise InputError(f"search: {name}: {error}") from error


def _with_data(problem: Problem, option: str, value: Any) -> Problem:
    known = DATA[option]
    if known is not None and value not in known:
        close = nearest(value, known) if isinstance(value, str) else ""
        raise InputError(f"search: data.{option} is {shown(value)}, expected one of {', '.join(known)}{close}")
    if option == "scale" and problem.mapped:
        raise InputError("search: data.scale cannot be tried beside data.features, which are made of scaled rows")
    if option == "scale" and problem.scale == "unit_norm":
        raise InputError("search: data.scale cannot be tried beside data.scale: unit_norm, which changes the rows")
    change: dict[str, Any] = {option: checked(value) if option == "class_weight" else value}
    return replace(problem, **change)
