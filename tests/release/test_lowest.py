"""The lower bounds that are tested are those of `pyproject.toml`, and what the package imports is declared there."""

import ast
import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from release.lowest import constraints
from release.project import ROOT, project


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
    written = {name.lower(): bound for name, bound in re.findall(r'"([\w.-]+)>=([\d.]+)', text)}
    assert {name.lower(): bound for name, bound in constraints(project()).items()} == written
    assert {"numpy", "scipy", "numba", "scikit-learn", "mpi4py", "matplotlib", "highspy"} <= set(written)


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
    declared = {Requirement(text).name.lower() for text in about["dependencies"]}
    for extra in ("plot", "lp", "arrow", "completion"):
        declared |= {Requirement(text).name.lower() for text in about["optional-dependencies"][extra]}
    # llvmlite comes with numba; type checkers alone import typing_extensions; frames of pandas are only recognised
    known = declared | {"llvmlite", "typing_extensions", "typing-extensions", "bmrm"}
    homes = packages_distributions()
    for path in sorted((ROOT / "bmrm").rglob("*.py")):
        for module in imported(path) - set(sys.stdlib_module_names):
            names = {name.lower() for name in homes.get(module, [module])}
            assert names & known, f"{path.relative_to(ROOT)} imports {module}, which is not declared"
