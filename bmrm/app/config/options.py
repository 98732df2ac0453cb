"""The fields of a config as options of a command line, made from the schema: `--data.test`, or `--test` for short."""

from __future__ import annotations

from argparse import SUPPRESS
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_origin

from pydantic import BaseModel

from bmrm.app.config.config import FORMATS, MAPS, PLUG_INS, SEARCH, Given, PlugIn
from bmrm.app.config.fields import option_types
from bmrm.app.config.marks import Place, yaml_value
from bmrm.app.config.sections import Columns, Files, Settings
from bmrm.app.config.words import default_in_words, parts_of, type_in_words
from bmrm.registry import Entry, option_name
from bmrm.vocabulary import KEPT_APART, SETTINGS, Setting

LAMBDA: Place = ("regularizer", "lambda")
SHORT: Mapping[Place, str] = {
    ("data", "validation"): "validation",
    ("data", "test"): "test",
    ("data", "format"): "format",
    ("data", "ignore"): "ignore",
    ("data", "categorical"): "categorical",
    ("data", "text"): "text",
    ("data", "missing"): "missing",
    ("data", "drop_first"): "drop-first",
    ("data", "rare"): "rare",
    ("data", "dimension"): "dimension",
    ("data", "bias"): "bias",
    ("data", "scale"): "scale",
    ("data", "weights"): "weights",
    ("data", "offset"): "offset",
    ("data", "positive_label"): "positive-label",
    ("data", "class_weight"): "class-weight",
    ("data", "classes"): "classes",
    ("data", "labels"): "labels",
    ("data", "features"): "features",
    LAMBDA: "lambda",
    ("solver", "tolerance"): "tolerance",
    ("solver", "max_iterations"): "max-iterations",
    ("solver", "time_limit"): "time-limit",
    ("solver", "threads"): "threads",
    ("output", "directory"): "output",
    ("output", "metrics"): "metrics",
    ("output", "overwrite"): "overwrite",
}
"""Short names of common fields."""
OPTIONS: Mapping[Place, PlugIn] = {
    **{(section,): plug_in for section, plug_in in PLUG_INS.items()},
    ("search",): SEARCH,
}
SECTIONS: Mapping[Place, PlugIn] = {**OPTIONS, ("data", "format"): FORMATS, ("data", "features"): MAPS}
"""Fields that name a plug-in, whose options are fields below them."""
PATHS = ("weights", "start")
"""Fields that are a path."""
FIXED = ("version", "train")
"""Fields without an option: the version of the schema, and the data, which are an argument."""


@dataclass(frozen=True)
class Option:
    """A field of the config.

    Attributes
    ----------
    place : of the field.
    doc : what it is, what it may be, its default.
    read : from the texts of the command line, one for each time that it was given, to the value.
    choices : names that it may be, for completion.
    switch : whether it is true or false.
    hidden : whether it is another name of a field, which no help lists.
    """

    place: Place
    doc: str
    read: Callable[[Sequence[str], str], Any]
    choices: tuple[str, ...] = ()
    switch: bool = False
    hidden: bool = False

    @property
    def value(self) -> str:
        """What the help calls the value."""
        return "FILE" if self.read is _paths or self.place[-1] in PATHS else self.place[-1].upper()

    @property
    def flags(self) -> tuple[str, ...]:
        """The short name, if there is one, and the full one."""
        full = f"--{'.'.join(self.place)}"
        if self.hidden:
            return tuple(dict.fromkeys((f"--{self.place[-1].replace('_', '-')}", f"--{self.place[-1]}", full)))
        short = SHORT.get(self.place)
        return (full,) if short is None or f"--{short}" == full else (f"--{short}", full)

    def given(self, texts: Sequence[str]) -> Given:
        """The field with what the command line says of it."""
        flag = self.flags[0]
        return Given(self.place, self.read(texts, flag), flag)


def section_options() -> Iterator[Option]:
    """Every field that a config has whatever its plug-ins are."""
    for name, field in Settings.model_fields.items():
        kind = field.annotation
        # get_origin: in Python 3.10 dict[str, Any] is an instance of type
        if isinstance(kind, type) and get_origin(kind) is None and issubclass(kind, BaseModel):
            for key, inner in kind.model_fields.items():
                if key not in FIXED:
                    yield _of_field((name, key), inner)
        elif name not in FIXED:
            yield _of_field((name,), field)


def plug_in_options(section: Place, name: str) -> Iterator[Option]:
    """The options of one plug-in, such as those of `hinge` for ("loss",); InputError if there is none of that name."""
    plug_in = SECTIONS[section]
    yield from _of_entry(section, plug_in.registry.get(name))
    for key, (kind, default, doc) in plug_in.extra.items():
        yield Option((*section, key), _doc(doc, type_in_words(kind), default), last_yaml)


def all_options() -> Iterator[Option]:
    """Every option of a config, those of all plug-ins too; one for each name."""
    found = {option.place: option for option in section_options()}
    for section, plug_in in SECTIONS.items():
        for entry in plug_in.registry.all():
            for option in plug_in_options(section, entry.name):
                found.setdefault(option.place, option)
    yield from found.values()


def other_names() -> Iterator[Option]:
    """The fields under the names that they have at other doors (`bmrm.vocabulary`)."""
    for setting in SETTINGS:
        *section, own = setting.config.split(".")
        for word in set(setting.names) - {own} - KEPT_APART if own else ():
            yield Option((*section, word), SUPPRESS, last_yaml, hidden=True)


def flag_of(setting: Setting) -> str:
    """The option of `bmrm train` for a setting; "" where there is none."""
    place = tuple(setting.config.split("."))
    return f"--{SHORT.get(place, setting.config)}" if setting.config else ""


def unlisted(place: Place) -> Option:
    """An option of a plug-in that only the config knows."""
    return Option(place, f"of the {place[-2]}", last_yaml)


def last_yaml(texts: Sequence[str], flag: str) -> Any:
    """The last of the texts as YAML."""
    return yaml_value(texts[-1], flag)


def _last_text(texts: Sequence[str], flag: str) -> str | None:
    return None if texts[-1] == "null" else texts[-1]


def _text_or_table(texts: Sequence[str], flag: str) -> Any:
    return last_yaml(texts, flag) if texts[-1].startswith("{") else _last_text(texts, flag)


def _paths(texts: Sequence[str], flag: str) -> list[str] | None:
    return None if list(texts) == ["null"] else list(texts)


def columns(texts: Sequence[str], flag: str) -> list[Any] | None:
    """The columns that texts name: one each, by its name or else its number, or a list in YAML."""
    if list(texts) == ["null"]:
        return None
    return [one for text in texts for one in (yaml_value(text, flag) if text.startswith("[") else [text])]


def _names(texts: Sequence[str], flag: str) -> list[str] | None:
    names = [name for text in texts for name in text.strip("[]").replace(",", " ").split()]
    return None if names == ["null"] else names


_READERS: Mapping[str, Callable[[Sequence[str], str], Any]] = {"array": _names, "string": _last_text}
"""Parser of the text of an option, by the JSON type of the field; YAML for all others."""


def _of_field(place: Place, field: Any) -> Option:
    if place in SECTIONS:
        plug_in = SECTIONS[place]
        return Option(place, f"{field.description} (default {plug_in.default or 'null'})", last_yaml)
    checks = (field.annotation, *field.metadata)
    kind = Annotated[checks] if field.metadata else field.annotation  # pydantic keeps checks apart
    parts = parts_of(kind)
    files = kind in (Files, Files | None)
    words = (
        "a path; may be repeated" if files else "a column; may be repeated" if kind in (Columns, Columns | None) else ""
    )
    doc = _doc(field.description, words or type_in_words(kind), field.default)
    choices = tuple(choice for part in parts for choice in part.get("enum", ()))
    listed = kind in (Columns, Columns | None)
    tables = {"string", "object"} <= {str(part.get("type")) for part in parts}
    plain = _text_or_table if tables else _READERS.get(str(parts[0].get("type")), last_yaml)
    read = _paths if files else columns if listed else plain
    return Option(place, doc, read, choices, switch=field.annotation is bool)


def _of_entry(section: Place, entry: Entry[Any]) -> Iterator[Option]:
    types = option_types(entry.cls)
    for field in entry.parameters:
        limits = field.metadata.get("range")
        words = type_in_words(types[field.name], limits)
        place = (*section, option_name(field.name))
        doc = _doc("" if limits is None else limits.doc, words, field.default)
        if place == LAMBDA:
            doc = doc.replace("required", "default: 1 / m, m the rows of positive weight")
        choices: Iterable[Any] = () if limits is None or limits.choices is None else limits.choices
        yield Option(place, doc, last_yaml, tuple(map(str, choices)))


def _doc(text: str, words: str, default: Any) -> str:
    return f"{text} ({words}; {_default(default)})" if text else f"{words}; {_default(default)}"


def _default(default: Any) -> str:
    said = default_in_words(default)
    return said if said == "required" else f"default {said}"
