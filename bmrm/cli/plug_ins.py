"""`bmrm losses`, `regularizers`, `solvers`: a line for each, or all about one."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from bmrm.app.tables import print_json, print_lines, print_pairs
from bmrm.cli._core.parser import Namespace, Parser
from bmrm.problem import facts_of
from bmrm.registry import Entry, Range, Registry, option_name

Column = Callable[[Entry[Any]], str]
"""A column of a table: entry -> text of the cell."""


def _fact(name: str) -> Column:
    return lambda entry: str(entry.facts.get(name) or "-")


def _streams(entry: Entry[Any]) -> str:
    from bmrm.solvers import reads_at_random

    return "no" if reads_at_random(entry) else "yes"


def _headline(entry: Entry[Any]) -> str:
    return entry.headline


def _meaning(entry: Entry[Any]) -> str:
    """The first line of the docstring, behind its formula."""
    return entry.headline.partition(": ")[2] or entry.headline


SUMS_OVER = {"rows": "rows", "groups": "groups", "no": "whole sample"}
LISTED: Mapping[str, Mapping[str, Column]] = {
    "losses": {"task": lambda entry: facts_of(entry.cls).task or "-", "what it is": _meaning},
    "regularizers": {"what it is": _headline},
    "solvers": {"what it is": _headline},
}
"""Columns of a listing besides the name, by the kind of plug-in."""
DETAILS: Mapping[str, Mapping[str, Column]] = {
    "losses": {
        "task": lambda entry: facts_of(entry.cls).task or "-",
        "formula": lambda entry: facts_of(entry.cls).formula or "-",
        "sum over": lambda entry: SUMS_OVER.get(facts_of(entry.cls).decomposes, "-"),
        "smooth": lambda entry: "yes" if facts_of(entry.cls).smooth else "no",
        "source": lambda entry: facts_of(entry.cls).source or "-",
    },
    "regularizers": {"what it is": _headline},
    "solvers": {
        "what it is": _headline,
        "problem": _fact("problem"),
        "needs": _fact("needs"),
        "rows larger than memory": _streams,
        "lower bound": _fact("certificate"),
        "an iteration costs": _fact("cost"),
        "source": _fact("source"),
    },
}
EXAMPLE = {"losses": "huber", "regularizers": "elastic_net", "solvers": "newton"}
IN_JSON = {"-": None, "yes": True, "no": False}
"""JSON values of cells that are not text."""


def add_arguments(parser: Parser) -> None:
    """One of them, or none; `--json`."""
    table = parser.get_default("command")
    parser.examples(f"bmrm {table}\nbmrm {table} {EXAMPLE[table]}\nbmrm {table} --json")
    parser.add_argument("name", nargs="?", metavar="NAME", help="one of them, with its options; or module:Class")
    parser.add_argument("--json", action="store_true", help="the same as JSON, for programs")


def run(parsed: Namespace) -> int:
    """Print them."""
    table, registry = parsed.command, registry_of(parsed.command)
    entries = registry.all() if parsed.name is None else (registry.get(parsed.name),)
    if parsed.json:
        found = [described(entry, DETAILS[table]) for entry in entries]
        print_json(found if parsed.name is None else found[0])
    elif parsed.name is None:
        columns = LISTED[table]
        print_lines(
            ("name", *columns), [(entry.name, *(text(entry) for text in columns.values())) for entry in entries]
        )
    else:
        _print_one(entries[0], DETAILS[table])
    return 0


def registry_of(table: str) -> Registry[Any]:
    """The registry of a listing."""
    from bmrm.losses import LOSSES
    from bmrm.regularizers import REGULARIZERS
    from bmrm.solvers import SOLVERS

    registries: dict[str, Registry[Any]] = {"losses": LOSSES, "regularizers": REGULARIZERS, "solvers": SOLVERS}
    return registries[table]


def _print_one(entry: Entry[Any], columns: Mapping[str, Column]) -> None:
    print_pairs(entry.name, {heading: text(entry) for heading, text in columns.items()})
    print(f"\n{inspect.cleandoc(entry.cls.__doc__ or '')}\n")
    options = explained(entry)
    print_pairs("options", options) if options else print("no options")


def explained(entry: Entry[Any]) -> dict[str, str]:
    """`option = default`, and what it means and may be."""
    from bmrm.app.config.fields import option_types
    from bmrm.app.config.words import default_in_words, type_in_words

    types, found = option_types(entry.cls), {}
    for field in entry.parameters:
        limits = field.metadata.get("range")
        words = f"({type_in_words(types[field.name], limits)})"
        name = f"{option_name(field.name)} = {default_in_words(field.default)}"
        found[name] = words if limits is None else f"{limits.doc} {words}"
    return found


def described(entry: Entry[Any], columns: Mapping[str, Column]) -> dict[str, Any]:
    """For programs: the name, the facts of the table, and each option with types, range, default and meaning."""
    from bmrm.app.config.fields import option_types

    facts = {heading.replace(" ", "_"): text(entry) for heading, text in columns.items()}
    types = option_types(entry.cls)
    return {
        "name": entry.name,
        **{heading: IN_JSON.get(cell, cell) for heading, cell in facts.items()},
        "options": [_option(field, types[field.name]) for field in entry.parameters],
    }


def _option(field: dataclasses.Field[Any], kind: Any) -> dict[str, Any]:
    from pydantic import TypeAdapter

    limits = field.metadata.get("range", Range())
    required = field.default is dataclasses.MISSING
    return {
        "name": option_name(field.name),
        "types": _json_types(TypeAdapter(kind).json_schema()),
        "range": sides(limits),
        "required": required,
        "default": None if required else field.default,
        "doc": limits.doc,
    }


def sides(limits: Range) -> dict[str, Any]:
    """The bounds that there are."""
    found = {side: limit for side, limit in dataclasses.asdict(limits).items() if side not in ("doc", "renamed")}
    return {side: limit for side, limit in found.items() if limit not in (None, math.inf)}


def _json_types(schema: Mapping[str, Any]) -> list[str]:
    """The types of JSON that a value may have."""
    if "type" in schema:
        return [schema["type"]]
    return list(dict.fromkeys(name for one in schema.get("anyOf", ()) for name in _json_types(one)))
