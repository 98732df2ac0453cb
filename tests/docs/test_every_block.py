"""Every command and Python block of every page runs, in an empty folder, in the order of the page.

A block that cannot run here says why in the page (`<!-- not run: REASON -->`): a test for each, whose name is the
reason, looks whether the programs know its options.
"""

import shlex
from pathlib import Path

import pytest
import yaml

from bmrm.app.config.config import load_settings
from bmrm.cli import parse
from bmrm.cli.train import settings_of
from tests.docs.given import bring
from tests.docs.options import unknown_options
from tests.docs.running import OTHERS, run_page, runs, says
from tests.pages import COMMANDS, ROOT, blocks_of, given, indented, pictures

PAGES = ["README.md", "CONTRIBUTING.md", "mpi_examples/README.md"]
PAGES += [str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md"))]
NOT_RUN = {"README.md": 2, "CONTRIBUTING.md": 4, "docs/races.md": 1, "docs/clusters.md": 3}
NOT_RUN |= {"docs/how-we-know.md": 1, "docs/index.md": 1, "docs/papers-answered.md": 1}
NOT_RUN |= {"docs/scaling.md": 1}
"""Excused blocks by page: a new one is counted here."""
WIDTH = 78
"""Characters that a block shows without a scroll bar."""
SOURCES = frozenset(path.read_text() for path in (ROOT / "bmrm").rglob("*.py"))
OWN_TESTS = {"docs/papers.md"}
"""Pages whose configs run in a test of their own."""


EXCUSED = [block for page in PAGES for block in blocks_of(page) if block.reason is not None]
RUN = [page for page in PAGES if any(map(runs, blocks_of(page)))]
CONFIGS = [
    block
    for page in PAGES
    for block in blocks_of(page)
    if block.language == "yaml" and block.reason is None and page not in OWN_TESTS
]


@pytest.mark.nightly
@pytest.mark.parametrize("page", RUN)
def test_a_page_runs_from_its_top(page, tmp_path):
    run_page(page, tmp_path)
    for made, _ in pictures(page):
        assert (tmp_path / made).stat().st_size > 0, made


@pytest.mark.parametrize("page", PAGES)
def test_pictures_that_a_page_makes_are_kept(page):
    """`python -m tests.docs.pictures PAGE` makes them anew."""
    for _, kept in pictures(page):
        assert kept.stat().st_size > 0, kept


def test_output_that_differs_is_noticed():
    assert says("a  b\nc 12\n", "a b\nc ...\n")
    assert not says("a b\nc 12\n", "a b\nd ...\n")
    assert not says("", "a\n")


@pytest.mark.parametrize("page", PAGES)
def test_blocks_have_a_language_and_files_a_maker(page, tmp_path):
    if page not in OTHERS:
        assert indented(page) == []
    assert {block.language for block in blocks_of(page)} <= {*COMMANDS, "python", "yaml", "text"}
    for block in blocks_of(page):
        if block.language == "console":
            assert block.text.startswith("$ "), block


def test_the_excused_are_counted():
    counts = {page: sum(block.page == page for block in EXCUSED) for page in PAGES}
    assert {page: count for page, count in counts.items() if count} == NOT_RUN


@pytest.mark.parametrize("block", EXCUSED, ids=lambda block: f"{block}: {block.reason}")
def test_options_of_what_is_not_run_exist(block):
    assert len(block.reason) > 10
    if block.language == "yaml":
        assert yaml.safe_load(block.text)
    for command, _ in block.commands:
        for line in command.replace("\\\n", " ").splitlines():
            assert unknown_options(shlex.split(line, comments=True)) == [], line


def test_an_option_that_is_gone_is_noticed():
    assert unknown_options(["make", "tset"]) == ["tset"]
    assert unknown_options(["python", "-m", "bmrm.run", "a.yaml", "--resum"]) == ["--resum"]
    assert unknown_options(["mpirun", "-n", "2", "bmrm", "train", "a.yaml", "--tolerence", "1"]) == ["--tolerence"]
    assert unknown_options([".venv/bin/pytest", "--no-such-option"]) == ["--no-such-option"]
    assert unknown_options(["pip", "install", "--no-such-option", "x"]) == ["--no-such-option"]
    assert unknown_options(["pip", "install", "-e", ".[mpi]"]) == [".[mpi]"]


@pytest.mark.parametrize("block", CONFIGS, ids=str)
def test_yaml_of_the_pages_is_config(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plain = {"data": {"train": "sklearn:iris"}, "loss": "hinge", "regularizer": {"name": "l2", "lambda": 0.1}}
    plain |= yaml.safe_load(block.text)
    for name in given(block.page):
        if "/" not in name and name not in ("tests", "mpi_examples"):
            bring(name, tmp_path)
    Path("a.yaml").write_text(yaml.safe_dump(plain))
    assert load_settings("a.yaml").plain()["loss"]["name"]


@pytest.mark.parametrize("page", PAGES)
def test_blocks_are_no_wider_than_the_column(page):
    """Sources of the package, which a page may include, have wider lines, which the site wraps."""
    blocks = [block for block in blocks_of(page) if block.text not in SOURCES]
    assert not [f"{block}: {line}" for block in blocks for line in block.text.splitlines() if len(line) > WIDTH]


def test_the_first_page_says_the_same_with_a_config_and_without(tmp_path):
    (config,) = (block for block in blocks_of("docs/index.md") if block.title == "a.yaml")
    (tmp_path / "a.yaml").write_text(config.text)
    commands = [command for block in blocks_of("docs/index.md") for command, _ in block.commands]
    (command,) = (one for one in commands if one.startswith("bmrm train sklearn:"))
    parsed = parse(shlex.split(command.replace("\\\n", " "))[1:])
    assert settings_of(parsed, "train") == load_settings(str(tmp_path / "a.yaml")).plain()
