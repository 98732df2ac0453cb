"""Each rank has a slice of the features: the same iterates as in one process, and all that a run is, files included."""

import json
import re
from functools import cache

import numpy as np
import pytest

from bmrm.app.config.config import load_settings
from bmrm.app.model import load_model
from bmrm.problem import InputError
from tests.mpi.launch import launch, printed
from tests.mpi.slices import AT, CASES, CHOSEN, EMPTY

EQUAL = 1e-10
CONFIG = """
data: {{train: rows.svm}}
loss: hinge
regularizer: {{name: l2, lambda: 0.03}}
solver: {{name: line_search_bundle, tolerance: 1.0e-9, max_iterations: {most}}}
output: {{directory: out, checkpoint_every: 0.01}}
mpi: {{slices: true}}
"""


@cache
def answers(ranks):
    return printed(ranks, "tests.mpi.slices", "equal", timeout=900.0)


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_iterates_are_those_of_one_process(ranks):
    assert set(answers(ranks)) == set(CASES)
    for case, (sliced, whole) in answers(ranks).items():
        first = min(len(sliced["objectives"]), len(whole["objectives"]), 12)
        for name in "objectives", "bounds":
            np.testing.assert_allclose(sliced[name][:first], whole[name][:first], rtol=EQUAL, err_msg=case)
        assert sliced["w"] is None or sliced["w"] == pytest.approx(whole["w"], rel=EQUAL, abs=EQUAL), case
        assert sliced["objective"] == pytest.approx(whole["objective"], rel=EQUAL), case
        assert sliced["bound"] == pytest.approx(whole["bound"], rel=EQUAL, abs=EQUAL), case
        assert sliced["status"] == whole["status"], case
        np.testing.assert_allclose(sliced["weights"], whole["weights"], atol=1e-4, err_msg=case)
        np.testing.assert_allclose(sliced["intercept"], whole["intercept"], atol=1e-3, err_msg=case)


@pytest.fixture(scope="module")
def ended():
    return printed(2, "tests.mpi.slices", "ended", timeout=900.0)


@pytest.mark.mpi
def test_auto_takes_a_solver_that_takes_slices():
    for case, solver in CHOSEN.items():
        assert answers(2)[case][0]["solver"].startswith(f"{solver} (slices")


@pytest.mark.mpi
def test_all_ranks_end_when_time_is_up(ended):
    assert ended["time"]["status"] == "TIME_LIMIT"
    assert ended["time"]["iterations"] == 0


@pytest.mark.mpi
def test_a_run_goes_on_from_point_and_bound(ended):
    first, then = ended["resumed"]
    assert first["status"] == "ITERATION_LIMIT"
    assert then["status"] == "CONVERGED"
    assert then["objectives"][0] == first["objectives"][AT]
    assert min(then["bounds"]) >= first["bounds"][AT] * (1.0 - 1e-12)
    assert ended["from a vector"]["objective"] == pytest.approx(then["objective"], rel=1e-9)


@pytest.mark.mpi
def test_a_measure_ends_the_run_on_all_ranks(ended):
    assert ended["stopped"]["status"] in ("OWN_RULE", "INTERRUPTED")
    assert ended["stopped"]["iterations"] < 60


@pytest.mark.mpi
def test_what_cannot_be_sliced_is_refused_by_name_and_all_ranks_go_on(ended):
    assert "solver newton: the weights are sliced over ranks" in ended["newton"]
    assert "regularizer L1 needs all weights in one place" in ended["l1"]
    assert re.search(r"2 ranks and 1 feature, expected at least one", ended["features"])


@pytest.mark.mpi
def test_a_run_of_a_config_leaves_all_files_and_is_resumed_on_other_ranks(tmp_path):
    random = np.random.default_rng(2)
    X = random.normal(size=(120, EMPTY))
    with (tmp_path / "rows.svm").open("w") as stream:
        for row in X:
            label = 1 if row.sum() + random.normal() > 0.0 else -1
            stream.write(f"{label} {' '.join(f'{k + 1}:{value:.6g}' for k, value in enumerate(row))}\n")
    folder, config = tmp_path / "out", tmp_path / "config.yaml"
    for ranks, most, status in ((2, 4, 3), (3, 500, 0)):
        config.write_text(CONFIG.format(most=most))
        resume = ["--resume"] if status == 0 else []
        done = launch(ranks, "-m", "bmrm.run", str(config), "--quiet", *resume, cwd=tmp_path)
        assert done.returncode == status, done.stderr
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["status"] == "CONVERGED"
    assert summary["relative_gap"] <= 1e-9
    assert summary["resumed"]["seconds"] > 0.0
    assert {path.name for path in folder.iterdir()} >= {"model.npz", "history.csv", "config.yaml", "summary.json"}
    model = load_model(folder / "model.npz")
    assert model.weights.shape == (EMPTY,)
    plain = launch(
        1, "-m", "bmrm.run", str(config), "--quiet", "--set", "mpi.slices=false", "--overwrite", cwd=tmp_path
    )
    assert plain.returncode == 0, plain.stderr
    other = json.loads((folder / "summary.json").read_text())
    assert summary["objective"] == pytest.approx(other["objective"], rel=2e-9)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"solver": "{name: newton}"}, "solver newton needs all weights in one place, beside mpi.slices take one of"),
        ({"solver": "{name: bundle, cuts_per_pass: 3}"}, "solver.cuts_per_pass is 3, expected beside mpi.slices 1"),
        ({"regularizer": "{name: l1, lambda: 0.1}"}, "regularizer l1 needs all weights in one place"),
        ({"data.guard": "true"}, "data.guard and mpi.slices"),
        ({"search": "{regularizer.lambda: [0.1, 0.2]}"}, "search has several trainings"),
        ({"mpi.slices": "2"}, "expected true or false"),
    ],
)
def test_a_config_is_refused_before_rows_are_read(tmp_path, more, message):
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG.format(most=10))
    with pytest.raises(InputError, match=re.escape(message)):
        load_settings(config, [f"{field}={value}" for field, value in more.items()])
