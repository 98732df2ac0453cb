"""A release has one version, wherever it is written."""

import re
from pathlib import Path

import pytest

import bmrm
from release.project import ROOT, project
from release.tag import disagreements, main


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of version 1.2.3."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "us"\nversion = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n## 1.2.3 - 2026-01-02\n")
    (tmp_path / "CITATION.cff").write_text("version: 1.2.3\ndate-released: 2026-01-02\n")
    return tmp_path


def change(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))


def test_one_version_everywhere(checkout):
    assert disagreements("v1.2.3", checkout) == []
    assert disagreements(None, checkout) == []


@pytest.mark.parametrize("tag", ["v1.2.4", "1.2.3", "v1.2", ""])
def test_another_tag_is_refused(tag, checkout):
    assert disagreements(tag, checkout) == [f"the tag is {tag}, expected v1.2.3, the version in pyproject.toml"]


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("pyproject.toml", "1.2.3", "1.2.4", "CHANGELOG.md has no heading `## 1.2.4 - YYYY-MM-DD`"),
        ("CHANGELOG.md", "1.2.3 - ", "1.2.3, ", "CHANGELOG.md has no heading `## 1.2.3 - YYYY-MM-DD`"),
        ("CHANGELOG.md", "1.2.3", "1x2x3", "CHANGELOG.md has no heading `## 1.2.3 - YYYY-MM-DD`"),
        ("CITATION.cff", "1.2.3", "1.2.2", "CITATION.cff: version is 1.2.2, expected 1.2.3"),
        ("CITATION.cff", "01-02", "01-03", "CITATION.cff: date-released is 2026-01-03, in CHANGELOG.md 2026-01-02"),
    ],
)
def test_what_was_forgotten_is_named(file, old, new, said, checkout):
    change(checkout / file, old, new)
    assert said in disagreements(None, checkout)


def test_this_checkout_agrees(capsys):
    assert main() == 0
    assert capsys.readouterr().out == f"version {project()['version']}: all agree\n"
    assert main("v0.0.0") == 1
    assert "the tag is v0.0.0" in capsys.readouterr().out


def test_the_installed_version_is_that_of_the_checkout():
    assert bmrm.__version__ == project()["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", bmrm.__version__)


def test_the_citation_is_complete_and_invents_nothing():
    import yaml

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    about = project()
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(citation)  # which CFF asks for
    assert citation["authors"] == about["authors"]
    assert citation["license"] == about["license"]
    assert not {"doi", "url", "repository-code", "contact"} & set(citation)
