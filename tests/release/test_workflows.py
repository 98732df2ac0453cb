"""Workflows and forms are YAML that says what exists: targets, modules, versions of Python."""

import re
import shlex
from importlib.util import find_spec

import pytest
import yaml

from release.project import ROOT, project, pythons

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")
TARGETS = set(re.findall(r"^([a-z-]+(?: [a-z-]+)*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def jobs(path):
    return yaml.safe_load(path.read_text())["jobs"].values()


def commands(path):
    return [step["run"] for job in jobs(path) for step in job["steps"] if "run" in step]


def test_there_is_a_workflow_for_each_promise():
    assert [path.stem for path in WORKFLOWS] == ["docs", "lowest", "test", "wheel"]
    run = {path.stem: " ".join(commands(path)) for path in WORKFLOWS}
    steps = [run["test"].index(f"make {target}") for target in ("lint", "test-quick", "test-slow", "test-nightly")]
    assert steps == sorted(steps)
    assert "make docs" in run["docs"]
    assert "make test-lowest" in run["lowest"]
    assert "make wheel-test" in run["wheel"]
    assert "release.tag" in run["wheel"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_is_complete_and_names_what_exists(path):
    read = yaml.safe_load(path.read_text())
    assert {"name", True, "permissions", "jobs"} <= set(read)  # YAML 1.1 takes `on` for a truth value
    assert read["permissions"] == {"contents": "read"}
    targets = {name for names in TARGETS for name in names.split()}
    for job in jobs(path):
        assert job["runs-on"] == "ubuntu-latest"
        assert job["timeout-minutes"] > 0
        assert all(("run" in step) != ("uses" in step) for step in job["steps"])
    for command in commands(path):
        words = shlex.split(command)
        if words[0] == "make":
            assert words[1] in targets
        else:
            assert words[:2] == [".venv/bin/python", "-m"]
            assert find_spec(words[2]) is not None


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_pythons_are_among_those_that_we_promise(path):
    ours = pythons(project())
    assert ours == ["3.10", "3.11", "3.12", "3.13"]
    used = re.findall(r"\b3\.\d+", path.read_text())
    assert set(used) <= set(ours)
    if path.stem in ("test", "wheel"):
        assert set(used) == set(ours)


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_asks_for_what_helps(path):
    form = yaml.safe_load(path.read_text())
    assert {"name", "description", "body"} <= set(form)
    asked = [field["attributes"] for field in form["body"] if field["type"] != "markdown"]
    assert all(field.get("label") for field in asked)
    assert len({field["label"] for field in asked}) == len(asked)
    if path.stem != "feature":
        assert "bmrm info" in [field["label"] for field in asked]


def test_there_are_forms_for_bugs_certificates_and_features():
    assert [path.stem for path in FORMS] == ["bug", "certificate", "feature"]
