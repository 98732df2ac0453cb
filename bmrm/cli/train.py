"""`bmrm train`: the fields of a config as options, with a config file or without."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bmrm.app.phases import process_begin
from bmrm.cli._core.parser import Namespace, Parser
from bmrm.run import run as run_settings
from bmrm.vocabulary import CONFIGS, answer

if TYPE_CHECKING:
    from bmrm.app.config.config import Given
    from bmrm.app.config.marks import Place
    from bmrm.app.config.options import Option
    from bmrm.mpi.group import Group

EXAMPLES = """
bmrm train a9a.svm --loss hinge --lambda 1e-4 --test a9a.t --output runs/a9a
bmrm train houses.csv --format '{name: csv, label: price}' --loss huber --loss.delta 2 --bias free
bmrm train 'shards/part-*.svm' --loss softmax --tolerance 1e-6 --json
bmrm train config.yaml --loss logistic --output runs/logistic
mpirun -n 4 bmrm train config.yaml
bmrm train --loss huber --help           # with the options of that loss
"""
FIELD = "field "
"""Prefix of the argparse destinations of fields."""
_OF_PLUG_IN = re.compile(
    r"--((?:loss|regularizer|solver|search|data\.format|data\.features)\.[\w.]+)(?:=.*)?$", re.DOTALL
)


def add_arguments(parser: Parser) -> None:
    """The data, the switches of a run, and the fields of the config."""
    parser.examples(EXAMPLES)
    parser.several = "data"
    parser.usage = "bmrm train DATA ... [options]\n       bmrm train CONFIG [options]"
    add_config(parser)
    parser.add_argument(
        "--resume", action="store_true", help="go on from what an earlier run of the same problem left in the folder"
    )
    parser.add_argument("--json", action="store_true", help="print summary.json at the end, in place of the table")
    parser.add_argument("--quiet", action="store_true", help="no progress, no table: nothing but errors")


def add_config(parser: Parser, without: Sequence[str] = (), nor: Sequence[Place] = ()) -> None:
    """The data, or a config, and its fields as options.

    Parameters
    ----------
    parser : of the command.
    without : sections whose fields are no options.
    nor : fields that are none either.
    """
    parser.add_argument(
        "data",
        nargs="*",
        metavar="DATA",
        help="training rows: files, globs, `sklearn:NAME`, `synthetic:NAME`; or a config, which ends in .yaml or .yml. "
        "A lambda that is left out is 1 / m, m the rows of positive weight.",
    )
    parser.add_argument("--config", metavar="FILE", help="a config whose name does not end in .yaml or .yml")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="a field of the config in YAML, such as solver.tolerance=1e-4; may be repeated",
    )
    _add_fields(parser, without, nor)


def run(group: Group, parsed: Namespace | None, *, started: bool) -> int:
    """Collective: one training; `parsed` on rank 0, None elsewhere. `started`: the process was started for it."""
    switches = group.broadcast(None if parsed is None else [parsed.quiet, parsed.resume, parsed.json])
    quiet, resume, as_json = switches
    begin = process_begin() if started else None
    return run_settings(
        group, lambda: settings_of(parsed, "train"), quiet=quiet, resume=resume, as_json=as_json, begin=begin
    )


def settings_of(parsed: Namespace | None, command: str, unused: Sequence[str] = ()) -> dict[str, Any]:
    """The checked config as plain JSON.

    Parameters
    ----------
    parsed : of a command with `add_config`.
    command : its name, for messages.
    unused : sections that it does not take: InputError where the config has one.
    """
    from bmrm.app.config.config import load_settings
    from bmrm.problem import InputError

    assert parsed is not None
    configs = [word for word in parsed.data if word.endswith(CONFIGS)]
    data = [word for word in parsed.data if not word.endswith(CONFIGS)]
    configs += [] if parsed.config is None else [parsed.config]
    if len(configs) > 1:
        raise InputError(f"two configs, {configs[0]} and {configs[1]}, expected one")
    if not configs and not data:
        raise InputError(
            f"bmrm {command}: expected data or a config, such as `bmrm {command} rows.svm` (`--help` says more)"
        )
    settings = load_settings(configs[0] if configs else None, parsed.set, list(_given(parsed, data))).plain()
    for name in unused:
        if settings[name] is not None:
            raise InputError(f"{name} is for `bmrm train`; leave it out of what `bmrm {command}` takes")
    if command != "train" and configs and not parsed.quiet:
        _say_unused_output(settings["output"], configs[0], command)
    return settings


def _say_unused_output(output: dict[str, Any], config: str, command: str) -> None:
    """Say what a config has of the output of a training that this command does not write."""
    if output["directory"] != f"runs/{Path(config).stem}":
        instead = "standard output, or --out" if command == "complete" else "--out DIR"
        print(f"bmrm: output.directory is for `bmrm train`; `bmrm {command}` writes to {instead}", file=sys.stderr)
    if output["follow"]:
        print(f"bmrm: output.follow is for `bmrm train`; `bmrm {command}` measures trained models", file=sys.stderr)


def _given(parsed: Namespace, data: Sequence[str]) -> Iterator[Given]:
    """The fields that the command line gives."""
    from bmrm.app.config.config import Given

    if data:
        yield Given(("data", "train"), list(data), "DATA")
    for option in parsed.options:
        texts = getattr(parsed, FIELD + ".".join(option.place))
        if texts is not None:
            yield Given(option.place, texts, option.flags[0]) if option.switch else option.given(texts)


def _add_fields(parser: Parser, without: Sequence[str] = (), nor: Sequence[Place] = ()) -> None:
    """All fields but some; of plug-ins the options of those that the words name, all where there are no words."""
    from bmrm.app.config.options import all_options, flag_of, other_names, section_options

    parser.answer = lambda word: answer(word, (), flag_of)
    if parser.words is None:
        options = list(all_options())
    else:
        found = {option.place: option for option in (*section_options(), *other_names())}
        for option in _of_plug_ins(parser.words):
            found.setdefault(option.place, option)
        options = list(found.values())
    options = [option for option in options if option.place[0] not in without and option.place not in nor]
    groups: dict[str, Any] = {}
    for option in options:
        section = option.place[0]
        if section not in groups:
            groups[section] = parser.add_argument_group(f"the config: {section}")
        _add(groups[section], option)
    parser.set_defaults(options=options)


def _add(group: Any, option: Option) -> None:
    from argparse import BooleanOptionalAction

    dest, help = FIELD + ".".join(option.place), option.doc.replace("%", "%%")
    if option.switch:
        group.add_argument(option.flags[0], dest=dest, action=BooleanOptionalAction, default=None, help=help)
        return
    action = group.add_argument(
        *option.flags, dest=dest, action="append", default=None, metavar=option.value, help=help
    )
    action.names = option.choices  # for completion; `choices` would refuse others in words of argparse's


def _of_plug_ins(words: Sequence[str]) -> Iterator[Option]:
    """Options of the plug-ins that the words name, or that are the default; others that stand there."""
    from bmrm.app.config.options import OPTIONS, SHORT, plug_in_options, unlisted
    from bmrm.problem import InputError

    for section, plug_in in OPTIONS.items():
        name = _name_of(section[0], words) or plug_in.default
        try:
            yield from plug_in_options(section, name) if name else ()
        except InputError:  # the config says so, with the nearest name
            continue
    for word in words:
        if match := _OF_PLUG_IN.match(word):
            yield unlisted(_place(match[1]))
    yield from (unlisted(place) for place in SHORT if (place[0],) in OPTIONS)  # whatever plug-in a config names


def _place(name: str) -> Place:
    return tuple(name.split("."))


def _name_of(section: str, words: Sequence[str]) -> str | None:
    """The plug-in that the words name: by `--loss NAME`, `--loss '{name: NAME, ...}'` or `--loss.name NAME`."""
    from bmrm.app.config.marks import yaml_value
    from bmrm.problem import InputError

    try:
        value = yaml_value(_value_of(f"--{section}", words) or "", f"--{section}")
    except InputError:  # said where the value is read
        return None
    name = value.get("name") if isinstance(value, dict) else value
    return _value_of(f"--{section}.name", words) or (name if isinstance(name, str) else None)


def _value_of(flag: str, words: Sequence[str]) -> str | None:
    """What follows an option, or stands behind its `=`, where it is given last."""
    found = None
    for word, after in zip(words, [*words[1:], None]):
        if word == flag:
            found = after
        elif word.startswith(f"{flag}="):
            found = word[len(flag) + 1 :]
    return found
