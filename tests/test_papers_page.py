"""Every config in docs/papers.md runs as it stands; files of data that it names are made up, few rows of its task.

A file is written as its name ends: `.npz`, or svmlight, which has numbers as labels.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from bmrm.app.config.config import load_settings
from bmrm.data.dataset import Dataset
from bmrm.data.writers import write_npz, write_svmlight
from bmrm.losses import LOSSES
from bmrm.run import main
from tests.pages import blocks
from tests.targets import groups_for, targets_for

CONFIGS = blocks("docs/papers.md", "yaml")
MADE = ("synthetic:", "sklearn:")


def write_data(settings):
    """The files that the config names, where it runs."""
    loss = LOSSES.make(settings.loss["name"], {k: v for k, v in settings.loss.items() if k != "name"})
    sources = [*settings.data.train, *(settings.data.validation or ()), *(settings.data.test or ())]
    for seed, source in enumerate(dict.fromkeys(source for source in sources if not source.startswith(MADE))):
        X = np.random.default_rng(seed).normal(size=(36, 5))
        data = Dataset.from_arrays(X, targets_for(loss, seed=seed), None, groups_for(loss))
        Path(source).parent.mkdir(parents=True, exist_ok=True)
        (write_npz if source.endswith(".npz") else write_svmlight)(source, data)


def title(text):
    """The folder of the results: `output: {directory: ...}`."""
    return text.partition("directory:")[2].split()[0].strip("}").rpartition("/")[2]


@pytest.mark.parametrize("text", CONFIGS, ids=title)
def test_a_config_of_the_page_runs(text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(text)
    settings = load_settings("config.yaml")
    write_data(settings)
    status = main(["config.yaml", "--quiet"])
    assert status in (0, 3), capsys.readouterr().err
    summary = json.loads((Path(settings.output.directory) / "summary.json").read_text())
    assert summary["status"] in ("CONVERGED", "OWN_RULE", "ITERATION_LIMIT")


def test_each_config_has_results_of_its_own():
    names = [title(text) for text in CONFIGS]
    assert len(names) == len(set(names)) >= 4
