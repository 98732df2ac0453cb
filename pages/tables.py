"""Tables of the site, from the registries and the schema."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import bmrm
from bmrm import extend
from bmrm.app.config.options import flag_of
from bmrm.app.config.schema import markdown
from bmrm.app.config.words import default_in_words
from bmrm.data.readers._core.formats import formats
from bmrm.losses import LOSSES
from bmrm.metrics import MEASURES, TASKS
from bmrm.problem import facts_of
from bmrm.registry import Entry, Registry, option_name
from bmrm.regularizers import REGULARIZERS
from bmrm.solvers import SOLVERS, reads_at_random
from bmrm.solvers._core.auto.rules import ALONE, NUMBERS, RULES, WORDS
from bmrm.vocabulary import ANSWERS, ELSEWHERE, SETTINGS
from pages.coverage import Cell, coverage
from pages.plain_formulas import typeset_plain
from pages.reference import described_plug_in
from pages.text import code, plain, prose, table

OVER = {"rows": "rows", "groups": "groups", "no": "the whole sample"}


def losses() -> str:
    """All of them."""
    rows = [
        [
            code(entry.name),
            facts_of(entry.cls).task,
            typeset_plain(facts_of(entry.cls).formula),
            OVER[facts_of(entry.cls).decomposes],
            "yes" if facts_of(entry.cls).smooth else "no",
            plain(facts_of(entry.cls).source),
        ]
        for entry in LOSSES.all()
    ]
    return table(["loss", "task", "formula", "sum over", "smooth", "source"], rows)


def options_text(entry: Entry[Any]) -> str:
    """Options with their defaults."""
    defaults = ((option_name(field.name), field.default) for field in entry.parameters)
    words = [f"{name}={'required' if one is dataclasses.MISSING else default_in_words(one)}" for name, one in defaults]
    return ", ".join(words) or "-"


def regularizers() -> str:
    """All of them."""
    rows = [[code(entry.name), plain(entry.headline), code(options_text(entry))] for entry in REGULARIZERS.all()]
    return table(["regularizer", "what it is", "options"], rows)


def solvers() -> str:
    """All of them, with what they need and what they prove."""
    facts = {"problem": "problem", "needs": "needs", "lower bound": "certificate", "an iteration costs": "cost"}
    facts |= {"source": "source"}
    rows = [
        [
            code(entry.name),
            *(plain(str(getattr(entry.cls, fact, "") or "")) for fact in facts.values()),
            "no" if reads_at_random(entry) else "yes",
            plain(entry.headline),
        ]
        for entry in SOLVERS.all()
    ]
    return table(["solver", *facts, "rows larger than memory", "what it does"], rows)


def solvers_by_problem() -> str:
    """Which solvers take a loss with a regularizer, with a lower bound or without."""
    rows = []
    for losses, cells in coverage().items():
        alike: dict[Cell, list[str]] = {}
        for regularizer, cell in cells.items():
            alike.setdefault(cell, []).append(regularizer)
        for cell, regularizers in alike.items():
            by_bound = [", ".join(code(name) for name, proved in cell if proved is wanted) for wanted in (True, False)]
            rows.append(
                [", ".join(map(code, losses)), ", ".join(map(code, regularizers)), *(one or "-" for one in by_bound)]
            )
    return table(["loss", "regularizer", "solvers with a lower bound", "without"], rows)


def measures() -> str:
    """By task."""
    parts = []
    for task in TASKS:
        found = sorted((one for one in MEASURES.values() if task in one.tasks), key=lambda one: one.spelling)
        rows = [[code(one.spelling), plain(one.formula), one.weighted, plain(one.source)] for one in found]
        parts.append(f"## {task}\n\n{table(['measure', 'what it is', 'weights', 'source'], rows)}\n")
    return "\n".join(parts)


def rules() -> str:
    """By which `auto` chooses."""
    rows = [[plain(str(rule)), ", ".join(one if one == ALONE else code(one) for one in rule.solvers)] for rule in RULES]
    words = "; ".join(f"*{word}*: {plain(meaning)}" for word, meaning in WORDS.items())
    numbers = ", ".join(map(plain, NUMBERS.values()))
    return "\n".join([table(["problem", "solvers"], rows), "", f"Words: {words}.", "", f"Numbers: {numbers}."])


def data_formats() -> str:
    """Options of the readers."""
    rows = [
        [
            code(entry.name),
            code(option_name(field.name)),
            code(default_in_words(field.default)),
            prose(field.metadata["range"].doc),
        ]
        for entry in formats.all()
        for field in entry.parameters
    ]
    return table(["format", "option", "default", "meaning"], rows)


def public_names() -> str:
    """What can be imported from the package itself."""
    rows = [[code(f"bmrm.{name}"), prose(_first_line(getattr(bmrm, name)))] for name in bmrm.__all__]
    return table(["name", "what it is"], rows)


def extend_names() -> str:
    """What can be imported from `bmrm.extend`."""
    rows = [[code(f"extend.{name}"), prose(_first_line(getattr(extend, name)))] for name in extend.__all__]
    return table(["name", "what it is"], rows)


def settings() -> str:
    """What a setting is called at each door, and its default."""
    rows = []
    for setting in SETTINGS:
        doors = (setting.fit, setting.estimator, setting.config, flag_of(setting))
        others = [name for name in setting.others if name not in doors]
        rows.append([*(code(name) if name else "" for name in doors), ", ".join(map(code, others))])
    return table(["`bmrm.fit`", "estimators", "config", "`bmrm train`", "accepted everywhere, too"], rows)


def words() -> str:
    """Words of other programs, with the setting that serves them at each door."""
    by_fit = {setting.fit: setting for setting in SETTINGS}
    grouped: dict[tuple[str, str], list[str]] = {}
    for word, meaning in ANSWERS.items():
        grouped.setdefault(meaning, []).append(word)
    rows = []
    for (name, text), theirs in grouped.items():
        doors = [by_fit[name].fit, by_fit[name].estimator, flag_of(by_fit[name])] if name else []
        here = ", ".join(map(code, dict.fromkeys(filter(None, doors))))
        rows.append([", ".join(map(code, theirs)), here, prose(text)])
    return table(["there", "here: `fit`, estimators, `bmrm train`", "what to write"], rows)


def names_elsewhere(kind: str) -> Callable[[], str]:
    """Names that losses, regularizers or solvers have in other programs."""
    grouped: dict[str, list[str]] = {}
    for name, text in ELSEWHERE[kind].items():
        grouped.setdefault(text, []).append(name)
    rows = [[", ".join(map(code, names)), prose(text)] for text, names in grouped.items()]
    return lambda: table(["there", "here"], rows)


def _first_line(one: object) -> str:
    if isinstance(one, str):
        return "the version"
    documented = one is not Any and (inspect.isclass(one) or inspect.isroutine(one))
    return (inspect.getdoc(one) or "").split("\n")[0] if documented else "a type, for annotations"


def references(registry: Registry[Any]) -> Callable[[], str]:
    """The reference of every plug-in of a registry."""
    return lambda: "\n\n".join(map(described_plug_in, registry.all()))


def commands() -> str:
    """The reference of the command line."""
    from bmrm.cli._core.reference import markdown

    return markdown()


TABLES: dict[str, Callable[[], str]] = {
    "schema": markdown,
    "losses": losses,
    "regularizers": regularizers,
    "solvers": solvers,
    "solvers-by-problem": solvers_by_problem,
    "measures": measures,
    "rules": rules,
    "formats": data_formats,
    "commands": commands,
    "public-names": public_names,
    "extend-names": extend_names,
    "settings": settings,
    "words": words,
    "loss-names": names_elsewhere("loss"),
    "regularizer-names": names_elsewhere("regularizer"),
    "solver-names": names_elsewhere("solver"),
    "format-names": names_elsewhere("data format"),
    "solver-reference": references(SOLVERS),
    "regularizer-reference": references(REGULARIZERS),
    "loss-reference": references(LOSSES),
}
