"""YAML text with line numbers, so that a message about a wrong field can name its line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from bmrm.problem import InputError, shown

Place = tuple[str, ...]
"""The way to a field: ("solver", "tolerance")."""


class _Loader(yaml.SafeLoader):
    """YAML 1.2 scalars (PyYAML has 1.1): 1e-4 is a number, and `no` and `off` are text, not false."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """The value of a node; text that does not fit its tag is a YAML error with its line."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, AttributeError, LookupError, OverflowError) as error:
            kind = node.tag.rpartition(":")[2]
            problem = f"{shown(node.value)} is no {kind}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error


_BOOL = "tag:yaml.org,2002:bool"
_Loader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] != _BOOL] for first, pairs in _Loader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_BOOL, re.compile(r"^(true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


LONGEST_NAME = 120
"""Most characters of a field's name in a message."""


def _cut(text: object) -> str:
    """Text for a message, truncated if it is long."""
    plain = str(text)
    return plain if len(plain) <= LONGEST_NAME else f"{plain[:LONGEST_NAME]}..."


class Document:
    """A YAML document and the line of each of its fields.

    Parameters
    ----------
    name : the file, as messages name it.
    text : its text.

    Raises
    ------
    InputError
        For text that is not YAML, or a field that is given twice.
    """

    def __init__(self, name: str, text: str) -> None:
        self.name = name = name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}..."
        self._lines: dict[Place, int] = {}
        self._overrides: dict[Place, str] = {}
        try:
            loader = _Loader(text)
            node = loader.get_single_node()
            if node is not None:
                self._check_text(node)
                self._walk(node, ())
            self.value: Any = None if node is None else loader.construct_document(node)
        except RecursionError as error:
            raise InputError(f"{name}: not YAML that can be read: nested too deeply") from error
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            where = name if mark is None else f"{name}, line {mark.line + 1}"
            raise InputError(f"{where}: not YAML: {_cut(getattr(error, 'problem', None) or error)}") from error

    @classmethod
    def read(cls, path: Path) -> Document:
        """The document in a file."""
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: not a text file: {error.reason} at byte {error.start}") from error
        except (OSError, ValueError) as error:  # ValueError: a name that no file can have
            raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
        return cls(str(path), text)

    def put(self, place: Place, value: Any, said: str) -> None:
        """Set a field; a section given by its name alone becomes a mapping. Messages call the field `said`."""
        if self.value is None:
            self.value = {}
        inside = self.value
        for part in place[:-1]:
            if not isinstance(inside, dict):
                raise InputError(f"{said}: {_cut('.'.join(place))} is not within a mapping")
            below = inside.get(part)
            if below is None or isinstance(below, str):
                below = {} if below is None else {"name": below}
                inside[part] = below
            inside = below
        if not isinstance(inside, dict):
            raise InputError(f"{said}: {_cut('.'.join(place))} is not within a mapping")
        inside[place[-1]] = value
        self._overrides[place] = said

    def rename(self, place: Place, name: str, value: Any) -> None:
        """Give a field another name, and this value; messages still name the line, or the option, that it is from."""
        inside, here = self.get(place[:-1]), (*place[:-1], name)
        del inside[place[-1]]
        inside[name] = value
        if place in self._lines:
            self._lines[here] = self._lines.pop(place)
        if place in self._overrides:
            self._overrides[here] = self._overrides.pop(place)

    def get(self, place: Place) -> Any:
        """The value of a field, () being the whole; None where it is absent."""
        inside = self.value
        for part in place:
            inside = inside.get(part) if isinstance(inside, dict) else None
        return inside

    def where(self, place: Place) -> str:
        """'config.yaml, line 7' for a field, or for the section around it if the field is missing."""
        inside = next((given for given in self._overrides if given[: len(place)] == place), None)
        if inside is not None and place not in self._lines:
            return self._overrides[inside]
        for length in range(len(place), 0, -1):
            if place[:length] in self._overrides:
                return self._overrides[place[:length]]
            if place[:length] in self._lines:
                return f"{self.name}, line {self._lines[place[:length]]}"
        return self.name

    def line(self, place: Place) -> int:
        """The line of a field, or of the section around it; 0 if neither is in the file."""
        found = (self._lines[place[:length]] for length in range(len(place), 0, -1) if place[:length] in self._lines)
        return next(found, 0)

    def _check_text(self, root: yaml.Node) -> None:
        """Refuse text that no file name, label or output could hold."""
        nodes, met = [root], {id(root)}
        while nodes:
            node = nodes.pop()
            below = [node.value] if isinstance(node.value, list) else []
            if not below and any(sign == "\0" or "\ud800" <= sign <= "\udfff" for sign in node.value):
                line = node.start_mark.line + 1
                raise InputError(f"{self.name}, line {line}: {shown(node.value)} holds a NUL or half a character")
            for child in (part for parts in below for one in parts for part in (one if type(one) is tuple else (one,))):
                if id(child) not in met:
                    met.add(id(child))
                    nodes.append(child)

    def _walk(self, node: yaml.Node, place: Place) -> None:
        if not isinstance(node, yaml.MappingNode) or len(place) > 8:  # an alias may point to its own parent
            return
        seen: dict[str, int] = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            here = (*place, name)
            if name in seen:
                field = ".".join(here)
                raise InputError(f"{self.name}, line {line}: {_cut(field)} stands there already in line {seen[name]}")
            seen[name] = line
            self._lines[here] = line
            self._walk(value, here)


def assigned(assignment: str) -> tuple[Place, Any, str]:
    """Of `section.field=value`, the value in YAML: the place, the value, and what messages call it."""
    key, sign, text = assignment.partition("=")
    place = tuple(key.strip().split("."))
    if not sign or not all(place):
        raise InputError(f"--set {_cut(assignment)}: expected FIELD=VALUE, such as solver.tolerance=1e-4")
    return place, yaml_value(text, f"--set {key.strip()}"), f"--set {_cut('.'.join(place))}"


def yaml_value(text: str, name: str) -> Any:
    """The value of a piece of YAML; InputError, which begins with `name`, where it is none."""
    return Document(name, text).value
