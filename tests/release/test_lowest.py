"""The lower bounds that are tested are those of `pyproject.toml`, and what the package imports is declared there."""

import ast
import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from release.lowest import constraints
from release.project import ROOT, project

DISTRIBUTION = {"sklearn": "scikit-learn", "yaml": "PyYAML"}
OPTIONAL = ("plot", "arrow", "completion", "onnx")
WITHOUT_A_LINE = {"llvmlite", "typing_extensions"}
"""What comes with numba, and what type checkers alone import."""


def test_each_lower_bound_becomes_a_constraint():
    about = {
        "dependencies": ["one>=1.2,<3  ", "two[more]>=0.9.1; python_version < '3.11'", "three"],
        "optional-dependencies": {"extra": ["four>=2", "us[other]"], "docs": ["five>=7"]},
    }
    assert constraints(about) == {"one": "1.2", "two": "0.9.1", "four": "2"}


def test_two_lower_bounds_of_a_package_are_refused():
    about = {"dependencies": ["one>=1.2"], "optional-dependencies": {"extra": ["one>=1.3"]}}
    with pytest.raises(ValueError, match=r"one: lower bounds 1\.2 and 1\.3"):
        constraints(about)


def test_no_bound_of_the_project_is_forgotten():
    """By a search in the text, which knows nothing of tables and requirements."""
    text = (ROOT / "pyproject.toml").read_text()
    text = text[text.index("dependencies = [") : text.index("[project.scripts]")]
    text = "\n".join(line for line in text.splitlines() if not line.startswith(("bench =", "docs =")))
    written = {name.lower(): bound for name, bound in re.findall(r'"([\w.-]+)(?:\[\w+\])?>=([\d.]+)', text)}
    assert {name.lower(): bound for name, bound in constraints(project()).items()} == written
    assert {"numpy", "scipy", "numba", "scikit-learn", "mpi4py", "matplotlib"} <= set(written)


def test_dependencies_have_lower_bounds_and_numba_an_upper_one():
    for text in project()["dependencies"]:
        requirement = Requirement(text)
        operators = {bound.operator for bound in requirement.specifier}
        assert operators == ({">=", "<"} if requirement.name == "numba" else {">="})


def imported(path: Path) -> set[str]:
    """Top-level modules that a file imports at run time, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module or "").partition(".")[0])
    return found


def test_what_the_package_imports_is_declared():
    about = project()
    texts = [*about["dependencies"], *(text for name in OPTIONAL for text in about["optional-dependencies"][name])]
    declared = {Requirement(text).name for text in texts} | WITHOUT_A_LINE | {"bmrm"}
    found = {
        (str(path.relative_to(ROOT)), DISTRIBUTION.get(module, module))
        for path in (ROOT / "bmrm").rglob("*.py")
        for module in imported(path) - set(sys.stdlib_module_names)
    }
    assert {name for _, name in found} >= {"numpy", "scikit-learn", "PyYAML", "matplotlib"}
    assert sorted((path, name) for path, name in found if name not in declared) == []
