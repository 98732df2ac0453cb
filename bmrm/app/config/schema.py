"""The schema of config files as JSON Schema and as a page of tables, both from the models and the registries."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from pydantic import TypeAdapter

from bmrm.app.config.config import AUTO, FORMATS, MAPS, PLUG_INS, SEARCH, PlugIn
from bmrm.app.config.fields import is_table, option_types
from bmrm.app.config.relative import SCHEMA
from bmrm.app.config.sections import DataSection, MpiSection, OutputSection, Settings
from bmrm.app.config.words import default_in_words, standard, type_in_words
from bmrm.registry import Entry, Range, option_name


def json_schema() -> dict[str, Any]:
    """JSON Schema of a config: what an editor needs to complete and check one."""
    schema = Settings.model_json_schema(by_alias=True, mode="validation")
    for section, plug_in in PLUG_INS.items():
        schema["properties"][section] = _plug_in_schema(plug_in)
    schema["$defs"]["DataSection"]["properties"]["format"] = {"anyOf": [{"const": AUTO}, _plug_in_schema(FORMATS)]}
    schema["$defs"]["DataSection"]["properties"]["features"] = {
        "anyOf": [_plug_in_schema(MAPS), {"type": "null"}],
        "default": None,
    }
    schema["properties"]["loss"]["anyOf"].append({"type": "null"})
    schema["properties"]["search"] = {"anyOf": [_plug_in_schema(SEARCH), {"type": "null"}], "default": None}
    schema["required"] = ["data"]
    found: dict[str, Any] = standard(schema)
    return found


def _plug_in_schema(plug_in: PlugIn) -> dict[str, Any]:
    entries = plug_in.registry.all()
    names = {"type": "string", "enum": [entry.name for entry in entries]}
    outside = {"type": "string", "pattern": ":", "description": "module:attribute, a class of your own"}
    return {"anyOf": [names, outside, *(_entry_schema(entry, plug_in) for entry in entries)]}


def _entry_schema(entry: Entry[Any], plug_in: PlugIn) -> dict[str, Any]:
    types = option_types(entry.cls)
    properties: dict[str, Any] = {"name": {"const": entry.name}}
    for key, (kind, default, doc) in plug_in.extra.items():
        properties[key] = TypeAdapter(kind).json_schema() | {"default": default, "description": doc}
    required = ["name"]
    for field in entry.parameters:
        option = TypeAdapter(types[field.name]).json_schema()
        if is_table(types[field.name]):
            option = {"anyOf": [option, {"type": "string", "description": "a file of its rows"}]}
        limits: Range | None = field.metadata.get("range")
        if limits is not None:
            option |= {"description": f"{limits.doc}; {type_in_words(types[field.name], limits)}"}
        if _is_lambda(field, plug_in):
            null = {"type": "null", "description": "1 / m, m the rows of positive weight"}
            option = {"anyOf": [option, SCHEMA, null], "description": option.pop("description", ""), "default": None}
        elif field.default is dataclasses.MISSING:
            required.append(option_name(field.name))
        if field.default is not dataclasses.MISSING:
            option["default"] = field.default
        properties[option_name(field.name)] = option
    return {
        "type": "object",
        "description": entry.headline,
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _is_lambda(field: dataclasses.Field[Any], plug_in: PlugIn) -> bool:
    """Whether it is the lambda of a regularizer, which may be left out."""
    return plug_in is PLUG_INS["regularizer"] and option_name(field.name) == "lambda"


def markdown() -> str:
    """The tables of every section, for the documentation."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    for name, model in (("data", DataSection), ("output", OutputSection), ("mpi", MpiSection)):
        yield from (f"## `{name}`", "", "| field | default | meaning |", "|---|---|---|")
        for key, field in model.model_fields.items():
            default = "required" if field.is_required() else _yaml(field.default)
            choices = _choices(field.annotation)
            yield f"| `{key}` | {default} | {field.description}{choices} |"
        yield ""
    yield from ("## `calibrate`", "", f"{Settings.model_fields['calibrate'].description}.", "")
    yield from ("## `seed`", "", f"{Settings.model_fields['seed'].description}; default 0.", "")
    for section, plug_in in {**PLUG_INS, "search": SEARCH, "data.format": FORMATS, "data.features": MAPS}.items():
        yield from (f"## `{section}`", "")
        if section == "loss":
            yield from (f"{Settings.model_fields['loss'].description}.", "")
        if plug_in.extra:
            yield from ("For every name:", "", "| option | default | meaning |", "|---|---|---|")
            for key, (_, default, doc) in plug_in.extra.items():
                yield f"| `{key}` | {_yaml(default)} | {doc} |"
            yield ""
        yield from ("| name | what it is | options |", "|---|---|---|")
        for entry in plug_in.registry.all():
            types = option_types(entry.cls)
            options = "<br>".join(_option(field, types[field.name]) for field in entry.parameters) or "none"
            yield f"| `{entry.name}` | {_cell(entry.headline)} | {options} |"
        yield ""


def _option(field: dataclasses.Field[Any], kind: Any) -> str:
    default = "required" if field.default is dataclasses.MISSING else f"default {_yaml(field.default)}"
    if option_name(field.name) == "lambda" and field.default is dataclasses.MISSING:
        default = "default 1 / m"
    limits: Range | None = field.metadata.get("range")
    doc = f": {limits.doc} ({type_in_words(kind, limits)})" if limits is not None else ""
    return _cell(f"`{option_name(field.name)}`, {default}{doc}")


def _choices(annotation: Any) -> str:
    known = TypeAdapter(annotation).json_schema().get("enum")
    return f" (one of {', '.join(f'`{choice}`' for choice in known)})" if known else ""


def _yaml(value: Any) -> str:
    return f"`{default_in_words(value)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
