"""The README shows what it is to show; the pages include the source files that they name."""

import re

from bmrm.app.config.config import load_settings
from tests.pages import ROOT, blocks

PYTHON = blocks("README.md", "python")


def test_there_are_blocks_for_fit_a_loss_and_a_risk():
    assert len(PYTHON) >= 3


def test_the_loss_has_at_most_fifteen_lines():
    block = next(text for text in PYTHON if "register_loss" in text)
    loss = block[block.index("@extend.register_loss") :]
    assert len([line for line in loss.splitlines() if line.strip()]) <= 15


def test_the_config_is_a_config(tmp_path):
    for text in blocks("README.md", "yaml"):
        (tmp_path / "a.yaml").write_text(text)
        assert load_settings(tmp_path / "a.yaml").data.train == ("sklearn:breast_cancer",)


def test_included_files_are_named_as_the_site_reads_them():
    lines = [line for page in (ROOT / "docs").glob("*.md") for line in page.read_text().splitlines() if "--8" in line]
    assert len(lines) >= 5
    for line in lines:
        found = re.fullmatch(r'--8<-- "(.+)"', line)
        assert found, line
        assert (ROOT / found[1]).is_file()
