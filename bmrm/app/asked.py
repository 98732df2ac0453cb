"""What arguments of Python stand for: rows, a solver with options, a regularizer without lambda; and what to say."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bmrm.app.chunks import are_chunks, rows_of_chunks
from bmrm.app.defaults import default_lambda, needs_lambda
from bmrm.app.measure import name_of_targets
from bmrm.app.pipeline.several import CLASSES, LABELS
from bmrm.app.pipeline.solve import BIASES
from bmrm.data.dataset import Dataset, refuse_weightless
from bmrm.data.layout import Layout, aligned
from bmrm.data.matrix import features_of, with_columns
from bmrm.data.raw_columns import Coding
from bmrm.losses import LOSSES
from bmrm.problem import InputError, Solver, facts_of, shown
from bmrm.registry import Registry, given_fields, nearest
from bmrm.regularizers import REGULARIZERS
from bmrm.risk.scaling import SCALINGS
from bmrm.solvers import SOLVERS
from bmrm.vocabulary import ANSWERS, once

CHOICES: Mapping[str, Sequence[str]] = {
    "bias": tuple(BIASES),
    "scale": tuple(SCALINGS),
    "classes": CLASSES,
    "labels": LABELS,
}
"""Values of arguments that have a few."""


def plug_in_of(word: str, given: Mapping[str, Any]) -> str:
    """Where an option of a plug-in belongs that is given beside its name; "" for a word of other programs."""
    registries: dict[str, Registry[Any]] = {"solver": SOLVERS, "loss": LOSSES, "regularizer": REGULARIZERS}
    for argument, registry in registries.items():
        name = given.get(argument, "auto" if argument == "solver" else None)
        name = name.get("name") if isinstance(name, Mapping) else name
        if isinstance(name, str) and word in registry.options(name):
            return _place_of(word, argument, [name])
    if word.lower() in ANSWERS:
        return ""
    kind, _, rest = word.partition("_")
    if kind in registries and rest in ("options", "params", "kwargs", "args"):
        return "; use solver_options" if kind == "solver" else f"; use {kind}={{'name': ..., option: value}}"
    for argument, registry in registries.items():
        owners = [entry.name for entry in registry.all() if word in registry.options(entry.name)]
        if owners:
            return _place_of(word, argument, owners)
    return ""


def _place_of(word: str, argument: str, owners: Sequence[str]) -> str:
    said = f"; it is an option of {argument} {', '.join(owners)}: "
    mapping = f"{{'name': {owners[0]!r}, {word!r}: ...}}"
    return said + (f"solver_options={{{word!r}: ...}}" if argument == "solver" else f"{argument}={mapping}")


def check_choices(**given: Any) -> None:
    """InputError for a value that is none of `CHOICES`; `bias` may be None."""
    for name, value in given.items():
        known = CHOICES[name]
        if not (name == "bias" and value is None) and not (isinstance(value, str) and value in known):
            close = nearest(value, known) if isinstance(value, str) else ""
            raise InputError(f"{name} is {shown(value)}, expected one of {', '.join(known)}{close}")


def rows_of(X: Any, y: Any, sample_weight: Any, offset: Any, groups: Any, coding: Coding) -> Dataset:
    """The rows; those of a Dataset, or of chunks, bring all else.

    Raises
    ------
    InputError
        For wrong arrays, for more beside a Dataset, and where no row has a weight above 0.
    """
    if isinstance(X, Dataset):
        if not all(given is None for given in (y, sample_weight, offset, groups)):
            raise InputError("y, sample_weight, offset or groups beside a Dataset, which brings its own")
        if coding.stated:
            raise InputError(f"{coding.stated[0]} beside a Dataset, whose columns are features already")
        plain = X.checked()
    elif are_chunks(X):
        plain = rows_of_chunks(X, y, sample_weight, offset, groups, coding, logging.getLogger("bmrm").info)
    else:
        plain = Dataset.from_arrays(X, y, sample_weight, groups, offset=offset, coding=coding)
    refuse_weightless(plain.targets.weights)
    return plain


def without_lambda(regularizer: Any) -> dict[str, Any] | None:
    """The section of a name or a mapping that leaves lambda to the number of rows, by absence or None; else None."""
    if isinstance(regularizer, str):
        return {"name": regularizer} if needs_lambda(REGULARIZERS.get(regularizer)) else None
    section = regularizer
    if not isinstance(section, Mapping) or not isinstance(section.get("name"), str):
        return None
    entry = REGULARIZERS.get(section["name"])
    options = {option: value for option, value in section.items() if option != "name"}
    given = given_fields(f"regularizer {entry.name!r}", entry.options, options)
    if not needs_lambda(entry) or given.pop("lam", None) is not None:
        return None
    return {"name": section["name"], **given}


def regularizer_of(data: Dataset, regularizer: Any, lam: float | None) -> tuple[Any, bool]:
    """The instance, of `l2` for None, and whether its lambda is 1 / m since none is given."""
    regularizer, word = "l2" if regularizer is None else regularizer, "lam"
    section = without_lambda(regularizer) if lam is None else None
    if section is not None:
        regularizer, lam, word = section if len(section) > 1 else section["name"], default_lambda(data), "lambda"
    elif isinstance(regularizer, Mapping) and "lambda" in regularizer:
        word = "lambda"  # as it stands there
    return REGULARIZERS.instance(regularizer, {} if lam is None else {word: lam}), section is not None


def refuse_unlabelled(data: Dataset, loss: Any) -> None:
    """InputError for rows without the targets that the loss needs."""
    if not data.labelled and facts_of(loss).needs_targets:
        raise InputError(f"y is None, expected {name_of_targets(loss)} for each row of X")


def like(train: Dataset, validation: Any) -> Dataset:
    """Validation rows with the columns of the training rows."""
    layout = train.layout or Layout()
    if isinstance(validation, Dataset):
        rows = validation.checked()
    else:
        values, *targets = validation
        rows = Dataset.from_arrays(values, *targets, coding=layout.encoding)  # type: ignore[misc]
    if layout.offset is not None and rows.targets.offset is None:
        rows = rows.with_offset(layout.offset)
    X = aligned(rows.X, rows.feature_names, train.feature_names, "validation")
    if not features_of(X).fits(train.features):
        raise InputError(f"validation has {X.shape[1]} features, X has {train.features}")
    return replace(rows, X=with_columns(X, train.features), layout=train.layout)


def solver_of(
    solver: str | Mapping[str, Any] | Solver,
    common: Mapping[str, Any],
    seed: int | None,
    more: Mapping[str, Any] | None,
) -> Solver:
    """The solver with the options that are given beside it, those that are not None.

    Raises
    ------
    InputError
        For options beside an instance, and for one that is given twice.
    """
    if more is not None and not isinstance(more, Mapping):
        raise InputError(f"solver_options is {shown(more)}, expected {{option: value}}")
    options = {name: value for name, value in common.items() if value is not None}
    name = solver.get("name") if isinstance(solver, Mapping) else solver
    if seed is not None and (not isinstance(name, str) or "seed" in SOLVERS.options(name)):
        options["seed"] = seed
    return SOLVERS.instance(solver, once("solver_options", more or {}, options))
