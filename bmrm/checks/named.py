"""The plug-in that somebody means: an instance, a class, or a name as configs have it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from bmrm.checks import plug_in
from bmrm.checks.cases import name_of
from bmrm.checks.targets import example_of
from bmrm.losses import LOSSES
from bmrm.problem import InputError, lacking
from bmrm.registry import Registry, called_here, given_fields
from bmrm.regularizers import REGULARIZERS
from bmrm.vocabulary import elsewhere


def instance_of(registry: Registry[Any], given: Any, options: Mapping[str, Any] | None = None) -> Any:
    """An instance; parameters without a default are at their example.

    Raises InputError for an unknown name or option, and for options beside an instance.
    """
    if isinstance(given, str):
        given = registry.get(given).cls
    if not isinstance(given, type):
        if options:
            raise InputError(f"options {', '.join(options)} beside a {registry.kind} that is made already")
        return given
    if next(plug_in.declared_class(given), None) is not None:
        return given()
    fields = dataclasses.fields(given)
    return example_of(given, given_fields(f"{registry.kind} {name_of(given)!r}", fields, options or {}))


def kind_of(name: str) -> Literal["loss", "regularizer"]:
    """What a name is the name of; InputError where it is neither."""
    if ":" in name:
        cls = LOSSES.get(name).cls
        return "regularizer" if [*lacking(cls, ("prepare", "subgradient"))] == ["prepare"] else "loss"
    known = {entry.name for entry in LOSSES.all()}
    if name in known:
        return "loss"
    regularizers = {entry.name for entry in REGULARIZERS.all()}
    if name in regularizers:
        return "regularizer"
    kind = "loss" if elsewhere("loss", name) else "regularizer"
    raise InputError(f"no loss or regularizer {name!r}{called_here(kind, name, known | regularizers)}")


def title_of(one: Any) -> str:
    """The object with its options, else its name."""
    text = str(one)
    return name_of(one) if " object at 0x" in text else text
