"""What `bmrm` and `bmrm.extend` export says of each parameter what it is."""

import dataclasses
import enum
import inspect
import re

import pytest

import bmrm
from bmrm import extend

EXPORTED = [
    (f"{module.__name__}.{name}", getattr(module, name))
    for module in (bmrm, extend)
    for name in module.__all__
    if callable(getattr(module, name))
]


def functions_of(one):
    """The object, and the public methods that its class defines; without constructors made of documented fields."""
    made = inspect.isclass(one) and (
        dataclasses.is_dataclass(one) or issubclass(one, (enum.Enum, BaseException)) or getattr(one, "_is_protocol", 0)
    )
    if not (made or type(one).__module__ == "typing"):
        yield one
    for name, member in vars(one).items() if inspect.isclass(one) else ():
        found = getattr(member, "__func__", member)  # of class methods
        if inspect.isfunction(found) and not name.startswith("_"):
            yield found


def unsaid(one):
    """The parameters that the docstring does not name in front of a colon."""
    said = inspect.getdoc(one) or ""
    names = {
        name.strip().lstrip("*")
        for line in re.findall(r"^([\w*][\w*, ]*?) ?:(?=\s)", said, re.MULTILINE)
        for name in line.split(",")
    }
    try:
        found = inspect.signature(one).parameters
    except ValueError:  # of numba's types
        return []
    return [name for name in found if name not in {"self", "cls", *names} and not name.startswith("_")]


@pytest.mark.parametrize(("name", "one"), EXPORTED, ids=[name for name, _ in EXPORTED])
def test_each_parameter_has_its_line(name, one):
    assert {getattr(each, "__qualname__", name): unsaid(each) for each in functions_of(one) if unsaid(each)} == {}


def test_what_is_not_said_is_found():
    def said(a, b, *more):
        """Of two.

        Parameters
        ----------
        a, more : numbers.
        """

    assert unsaid(said) == ["b"]


@pytest.mark.parametrize(("name", "one"), [pair for pair in EXPORTED if inspect.isclass(pair[1])])
def test_each_property_and_method_says_what_it_is(name, one):
    members = [(word, member) for word, member in vars(one).items() if not word.startswith("_")]
    members = [(word, member) for word, member in members if isinstance(member, property) or inspect.isroutine(member)]
    assert [word for word, member in members if not inspect.getdoc(member)] == []
