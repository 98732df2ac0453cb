"""config.yaml <-> typed settings (schema 2); one readable message per wrong field, with its line and the nearest name.

The sections `loss`, `regularizer` and `solver` are read against the registries, so a new plug-in needs no change here.
Only rank 0 imports this file; the others receive `Settings.plain()`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import Field, ValidationError

from bmrm.app import guarded, sliced
from bmrm.app.config.fields import checked, expected, option_types
from bmrm.app.config.marks import Document, Place, assigned
from bmrm.app.config.relative import checked_rule
from bmrm.app.config.sections import Count, Settings, Stop
from bmrm.app.defaults import default_bias, needs_lambda
from bmrm.app.measure import check_metrics
from bmrm.checks.plug_in import kind_of
from bmrm.data.features import FEATURES
from bmrm.data.files import about
from bmrm.data.readers._core.formats import formats
from bmrm.losses import LOSSES
from bmrm.problem import BmrmError, InputError, shown
from bmrm.registry import SEARCHES, Range, Registry, option_name
from bmrm.regularizers import REGULARIZERS
from bmrm.solvers import SOLVERS
from bmrm.vocabulary import SETTINGS, answer, canonical, converted


@dataclasses.dataclass(frozen=True)
class PlugIn:
    """A section whose options come from a registry, and the options that all its entries have in addition."""

    registry: Registry[Any]
    default: str
    extra: Mapping[str, tuple[Any, Any, str]] = dataclasses.field(default_factory=dict)


_THREADS = (
    Annotated[Count, Field(ge=1)] | None,
    None,
    "threads of each rank; null = its share of the cores of its node",
)
_STOP = (
    Stop,
    None,
    "`{measure: map, patience: 5}`: the solver ends after so many measurements of the validation rows (one each "
    "`output.follow_every` iterations) without a better one, and the model of the best is kept; null = by its gap",
)
PLUG_INS: Mapping[str, PlugIn] = {
    "loss": PlugIn(LOSSES, ""),
    "regularizer": PlugIn(REGULARIZERS, "l2"),
    "solver": PlugIn(SOLVERS, "auto", {"threads": _THREADS, "stop": _STOP}),
}
SEARCH = PlugIn(SEARCHES, "")
FORMATS = PlugIn(formats, "auto")
MAPS = PlugIn(FEATURES, "")
AUTO = "auto"
MOST_ERRORS = 12
"""Errors of a config that are listed; of more it is said how many."""

OLD_DEFAULTS: Mapping[int, Mapping[tuple[str, str], Any]] = {
    1: {("data", "bias"): "none", ("solver", "tolerance"): 1e-3}
}
"""Defaults of earlier versions of the schema, by version and field."""
OLD_LOSSES: Mapping[int, Mapping[str, Mapping[str, Any]]] = {
    1: {
        loss: {"joint": "ranks"}
        for loss in ("ndcg", "expected_rank_utility", "mean_reciprocal_rank", "winner_takes_all")
    }
}
"""Defaults of the options of losses in earlier versions, by version and loss."""

Problems = list[tuple[Place, str]]
"""Errors in a config: the field, and the message."""


@dataclasses.dataclass(frozen=True)
class Given:
    """A field that an option of the command line gives; messages call it `said`."""

    place: Place
    value: Any
    said: str


def load_settings(path: Path | str | None, overrides: Sequence[str] = (), given: Sequence[Given] = ()) -> Settings:
    """Read and check a config.

    Parameters
    ----------
    path : the YAML file; None where the command line says all. Then `output.directory` is by default `runs/` and the
        name of the data.
    overrides : `section.field=value`, the value in YAML; they win over the file.
    given : fields that win over both. Another name for a section keeps the options that it has, too.

    Raises
    ------
    InputError
        One message, a line per wrong field, each with file and line, or with the option.
    """
    document = Document("the command line", "") if path is None else Document.read(Path(path))
    _refuse_two_names(given)
    for assignment in overrides:
        _put(document, Given(*assigned(assignment)))
    for field in sorted(given, key=lambda field: len(field.place)):
        _put(document, dataclasses.replace(field, value=_with_options(document, field)))
    stem = run_name(document.get(("data", "train"))) if path is None else Path(path).stem
    return _settings(document, default_directory=f"runs/{stem}")


def _refuse_two_names(given: Sequence[Given]) -> None:
    """InputError for a setting that the command line gives by two names."""
    said: dict[Place, str] = {}
    for field in given:
        own = next((setting.config for setting in SETTINGS if field.place[-1] in setting.names), "")
        place = (*field.place[:-1], own.rpartition(".")[2] or field.place[-1])
        if place in said:
            raise InputError(f"{said[place]} and {field.said} are the same setting, expected one of them")
        said[place] = field.said


def _put(document: Document, given: Given) -> None:
    """Set a field by any of its names (`bmrm.vocabulary`), in place of what it is by any of them."""
    *section, word = given.place
    known, inside = _fields_of(document, tuple(section)), document.get(tuple(section))
    name = canonical(word, known) or word
    for other in [*inside] if isinstance(inside, dict) else ():
        if other not in known and canonical(str(other), known) == name:
            del inside[other]
    with about(given.said):
        value = _converted(document, word, name, given.value)
    document.put((*section, name), value, given.said)


def _converted(document: Document, word: str, name: str, value: Any) -> Any:
    """The value under the field's name; where null once meant no intercept, a wanted one is `free`."""
    found = converted(word, name, value)
    return "free" if found is None and word == "fit_intercept" and document.get(("schema",)) == 1 else found


def _fields_of(document: Document, section: Place) -> set[str]:
    """The names of the fields that a section has; none where that cannot be told."""
    if section in ((), ("data",)):
        return set(_known(section))
    plug_in = PLUG_INS.get(section[0]) if len(section) == 1 else None
    if plug_in is None:
        return set()
    content = document.get(section)
    name = content.get("name", plug_in.default) if isinstance(content, dict) else content or plug_in.default
    return {*_option_names(plug_in, str(name)), *plug_in.extra}


def _with_options(document: Document, field: Given) -> Any:
    """The value; for the name of a plug-in with the options of the section that this one has too."""
    before = document.get(field.place)
    plug_in = PLUG_INS.get(field.place[0]) if len(field.place) == 1 else None
    if plug_in is None or not isinstance(before, dict) or not isinstance(field.value, str):
        return field.value
    known = {*_option_names(plug_in, field.value), *plug_in.extra}
    kept = {key: value for key, value in before.items() if key != "name" and canonical(str(key), known)}
    return {"name": field.value} | kept


def _option_names(plug_in: PlugIn, name: str) -> set[str]:
    """Of a plug-in; none where there is no such plug-in, which is refused later."""
    try:
        return {option_name(field.name) for field in plug_in.registry.get(name).parameters}
    except InputError:
        return set()


def run_name(train: Any) -> str:
    """A name for the runs on some data: `a9a` for data/a9a.svm.gz, `iris` for sklearn:iris."""
    first = train[0] if isinstance(train, list) and train else train
    name = re.sub(r"^(sklearn|synthetic):|[?].*$", "", str(first))
    stem = re.sub(r"[^\w-]+", "", Path(name).name.partition(".")[0]).strip("-_")
    return stem or "data"


def format_section(text: str) -> str | dict[str, Any]:
    """A format given on a command line, `csv` or `{name: csv, label: 0}`, in the form of `data.format`."""
    document, problems = Document("--format", text), Problems()
    if document.value == AUTO:
        return AUTO
    section = _plug_in((), FORMATS, document.value, problems)
    _refuse(document, problems)
    return document.value if isinstance(document.value, str) else section


def named_plug_in(text: str) -> tuple[str, dict[str, Any]]:
    """A loss or regularizer given on a command line, `huber` or `{name: huber, delta: 2}`: its kind and section.

    Missing options get their defaults, or their examples if there is no default.
    """
    document, problems = Document("NAME", text), Problems()
    value = {"name": document.value} if isinstance(document.value, str) else document.value
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise InputError(f"expected a name or {{name: ..., option: value}}, found {shown(text)}")
    kind = kind_of(value["name"])
    fields = PLUG_INS[kind].registry.get(value["name"]).parameters
    needed = {option_name(f.name): f.metadata.get("example") for f in fields if f.default is dataclasses.MISSING}
    examples = {name: example for name, example in needed.items() if example is not None}
    section = _plug_in((), PLUG_INS[kind], examples | value, problems)
    _refuse(document, problems)
    return kind, section


def _refuse(document: Document, problems: Problems) -> None:
    """Raise one InputError for all errors, in the order of the file; of very many the first, unknown fields last."""
    if problems:
        listed = sorted(problems, key=lambda problem: (problem[1].startswith("unknown"), document.line(problem[0])))
        listed = sorted(listed[:MOST_ERRORS], key=lambda problem: document.line(problem[0]))
        lines = [f"{document.where(place)}: {text}" for place, text in listed]
        if len(problems) > MOST_ERRORS:
            lines.append(f"{document.where(())}: {len(problems) - MOST_ERRORS} more errors")
        raise InputError("\n".join(lines))


def _settings(document: Document, default_directory: str) -> Settings:
    value = document.value
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise InputError(f"{document.name}: expected sections such as data: and loss:, found {shown(value)}")
    problems: Problems = []
    _renamed(document, problems)
    _old_defaults(document)
    value = dict(value)
    if value.get("loss") is None and (value.get("search") is not None or value.get("schema") == 1):
        value["loss"] = "hinge"  # as before the targets told, and as searches begin
    for section in PLUG_INS if value.get("loss") is not None else [*PLUG_INS][1:]:
        value[section] = _plug_in((section,), PLUG_INS[section], value.get(section, {}), problems)
    if value.get("search") is not None:
        value["search"] = _plug_in(("search",), SEARCH, _with_fields(value["search"]), problems)
        _check_fields(value, problems)
    data = value.get("data")
    if isinstance(data, dict) and data.get("format", AUTO) != AUTO:
        value["data"] = data | {"format": _plug_in(("data", "format"), FORMATS, data["format"], problems)}
    data = value.get("data")
    if isinstance(data, dict) and data.get("features") is not None:
        value["data"] = data | {"features": _plug_in(("data", "features"), MAPS, data["features"], problems)}
    try:
        settings = Settings.model_validate(value)
    except ValidationError as error:
        for detail in error.errors():
            place = tuple(str(part) for part in detail["loc"])
            problems.append((place, _sentence(place, detail)))
    else:
        _check_metrics(settings, problems)
        for beside in (guarded, sliced):
            problems.extend(beside.refusals(settings.plain()))
    _refuse(document, problems)
    return _resolved(settings, default_directory)


def _with_fields(search: Any) -> Any:
    """The section with the fields that stand beside its options, such as `loss.epsilon`, under `fields`; a grid then.

    What has no name and no such field is left as it is.
    """
    if not isinstance(search, dict):
        return search
    beside = {key: one for key, one in search.items() if isinstance(key, str) and ("." in key or key in PLUG_INS)}
    if not beside:
        return {"name": "grid", **search} if "fields" in search else search
    options = {key: one for key, one in search.items() if key not in beside}
    given = options.pop("fields", {})
    return {"name": "grid", **options, "fields": {**given, **beside} if isinstance(given, dict) else beside}


def _check_fields(value: Mapping[str, Any], problems: Problems) -> None:
    """Add a problem for each value of a field of a search that the config could not have."""
    search: Any = value["search"]
    fields = search.get("fields") or {}
    for name, tried in fields.items():
        section, _, option = name.partition(".")
        if section not in PLUG_INS or not isinstance(tried, list) or (option and section in fields):
            continue
        if option and not value.get(section):  # wrong itself, which is said already
            continue
        for one in tried:
            found = {**(value.get(section) or {}), option: one} if option else one
            _plug_in_at(("search", name), PLUG_INS[section], found, problems)


def _plug_in_at(place: Place, plug_in: PlugIn, value: Any, problems: Problems) -> None:
    found: Problems = []
    _plug_in((place[-1].partition(".")[0],), plug_in, value, found)
    problems.extend((place, f"search: {message}") for _, message in found)


def _old_defaults(document: Document) -> None:
    """Give the fields of a file of an older schema the defaults that they had there."""
    found = document.get(("schema",))
    version = found if isinstance(found, int) else 0
    for (section, name), default in OLD_DEFAULTS.get(version, {}).items():
        known, inside = _fields_of(document, (section,)), document.get((section,))
        words = inside.items() if isinstance(inside, dict) else ()
        given = {canonical(str(word), known) for word, value in words if value is not None}
        readable = isinstance(inside, (dict, str)) or (inside is None and section in PLUG_INS)
        if readable and name in known and name not in given:
            document.put((section, name), default, f"{section}.{name}")
    loss = document.get(("loss",))
    kind = loss.get("name") if isinstance(loss, dict) else loss
    options = OLD_LOSSES.get(version, {}).get(kind, {}) if isinstance(kind, str) else {}
    for option, default in options.items():
        if not isinstance(loss, dict) or option not in loss:
            document.put(("loss", option), default, f"loss.{option}")


def _resolved(settings: Settings, directory: str) -> Settings:
    """The same in the newest schema, with what the defaults of `data.bias` and `output.directory` stand for."""
    data, output = settings.data, settings.output
    if data.bias is None and settings.loss is not None:
        data = data.model_copy(update={"bias": default_bias(LOSSES.instance(settings.loss))})
    if output.directory is None:
        output = output.model_copy(update={"directory": directory})
    return settings.model_copy(update={"version": 2, "data": data, "output": output})


def _renamed(document: Document, problems: Problems) -> None:
    """Give fields their names, where they have those of other doors (`bmrm.vocabulary`); of plug-ins see `_plug_in`."""
    for section in ((), ("data",)):
        fields, known = document.get(section), set(_known(section))
        for word in [*fields] if isinstance(fields, dict) else ():
            name = canonical(word, known) if isinstance(word, str) else None
            if name is None or name == word:
                continue
            try:
                if name in fields:
                    raise InputError(f"{word} and {name} are the same setting, expected one of them")
                document.rename((*section, word), name, _converted(document, word, name, fields[word]))
            except InputError as error:
                problems.append(((*section, word), ".".join((*section, str(error)))))
                del fields[word]


def _check_metrics(settings: Settings, problems: Problems) -> None:
    """Add a problem for measures that do not fit the loss."""
    unmeasured = settings.data.validation is None and settings.data.guard is None  # beside which nothing is
    if settings.output.follow is not None and unmeasured:
        problems.append((("output", "follow"), "output.follow measures validation rows, but data.validation is null"))
    stop = settings.solver.get("stop")
    if stop is not None and unmeasured:
        problems.append((("solver", "stop"), "solver.stop measures validation rows, but data.validation is null"))
    name: str | None = (settings.loss or {}).get("name")
    if name is None:
        return
    if stop is not None:
        try:
            check_metrics([stop["measure"]], LOSSES.get(name).cls)
        except InputError as error:
            problems.append((("solver", "stop"), f"solver.stop: {str(error).removeprefix('metrics: ')}"))
    for field in ("metrics", "follow"):
        try:
            check_metrics(getattr(settings.output, field), LOSSES.get(name).cls)
        except InputError as error:
            problems.append((("output", field), f"output.{field}: {str(error).removeprefix('metrics: ')}"))


def _plug_in(place: Place, plug_in: PlugIn, value: Any, problems: Problems) -> dict[str, Any]:
    """`{name, every option}` of the section at `place`; errors are added to `problems`."""
    section = ".".join(place)
    prefix = f"{section}." if section else ""
    if isinstance(value, str):
        value = {"name": value}
    if isinstance(value, dict):
        value = {"name": plug_in.default} | value
    if not isinstance(value, dict) or not isinstance(value["name"], str):
        problems.append((place, f"{section} is {shown(value)}, expected a name or {{name: ...}}"))
        return {}
    name = value.pop("name")
    if not name or (plug_in is FORMATS and name == AUTO):
        example = "csv" if plug_in is FORMATS else "hinge"
        expected_name = f"expected such as {{name: {example}, ...}}"
        problems.append((place, f"{section or 'format'} has options but no name, {expected_name}"))
        return {}
    try:
        entry = plug_in.registry.get(name)
    except InputError as error:
        problems.append(((*place, "name"), str(error)))
        return {}
    hints = option_types(entry.cls)
    types = {option_name(f.name): hints[f.name] for f in entry.parameters}
    extra_types = {key: kind for key, (kind, _, _) in plug_in.extra.items()}
    limits: dict[str, Range | None] = {option_name(f.name): f.metadata.get("range") for f in entry.parameters}
    before = len(problems)
    given: dict[str, Any] = {}
    relative: dict[str, Any] = {}
    met: set[str] = set()
    follows_rows = plug_in.registry is REGULARIZERS and needs_lambda(entry)
    if follows_rows and not any(canonical(str(word), ("lambda",)) for word in value):
        value = {"lambda": None} | value
    for word, raw in value.items():
        at: Place = (*place, str(word))
        key = canonical(str(word), {*types, *extra_types})
        if key is None:
            instead = answer(str(word), [*types, *extra_types], "config")
            problems.append((at, f"{plug_in.registry.kind} {shown(name)} has no option {shown(word)}{instead}"))
            continue
        if key in met:
            problems.append((at, f"{prefix}{word}: {key} stands there under another name, expected it once"))
            continue
        met.add(key)
        try:
            if key == "lambda" and (isinstance(raw, dict) or (raw is None and follows_rows)):
                relative[key] = None if raw is None else checked_rule(raw)
                given[key] = 1.0
                continue
            given[key] = checked((extra_types | types)[key], raw)
        except ValueError as error:
            problems.append((at, f"{prefix}{word} is {shown(raw)}, expected {error}"))
            continue
        limit = limits.get(key)
        if limit is not None and given[key] is not None and given[key] not in limit:
            problems.append((at, f"{prefix}{word} is {shown(raw)}, expected {limit.instead_of(given[key])}"))
    for field in entry.parameters:
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if needed and option_name(field.name) not in met:
            problems.append((place, f"{prefix}{option_name(field.name)} is missing"))
    if len(problems) > before:
        return {}
    extra = {key: given.pop(key, default) for key, (_, default, _) in plug_in.extra.items()}
    try:
        instance = plug_in.registry.make(name, given)
    except BmrmError as error:
        problems.append((place, f"{section}: {error}"))
        return {}
    options = {option_name(f.name): getattr(instance, f.name) for f in entry.parameters}
    return {"name": name} | options | relative | extra


def _sentence(place: Place, detail: Mapping[str, Any]) -> str:
    name = ".".join(part if len(part) <= 40 else f"{part[:37]}..." for part in place)
    if detail["type"] == "extra_forbidden":
        return f"unknown field {name!r}{answer(place[-1], _known(place[:-1]), 'config')}"
    if detail["type"] == "missing":
        return f"{name} is missing"
    return f"{name} is {shown(detail['input'])}, expected {expected(detail)}"


def _known(section: Place) -> Iterable[str]:
    """The fields of a section of the schema."""
    model: Any = Settings
    for part in section:
        model = model.model_fields[part].annotation
    return [field.alias or name for name, field in model.model_fields.items()]


def resolved_yaml(plain: Mapping[str, Any]) -> str:
    """The resolved `config.yaml`; reading it again gives the same settings."""
    value = {section: content for section, content in plain.items()}
    data = dict(value["data"])
    for part in ("train", "validation", "test"):
        if data[part] is not None and len(data[part]) == 1:
            data[part] = data[part][0]
    return yaml.safe_dump(value | {"data": data}, sort_keys=False, allow_unicode=True, width=120)
