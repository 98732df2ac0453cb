"""`bmrm train` without a config, with one, with both, and over ranks."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import bmrm
from bmrm.app.config.config import load_settings
from bmrm.app.config.options import all_options
from bmrm.app.config.sections import Settings
from bmrm.cli import main, parse
from bmrm.cli.train import settings_of as settings_of_command
from bmrm.problem import InputError
from tests.mpi.launch import mpirun as launcher

CONFIG = "data: {train: train.svm}\nloss: {name: huber_hinge, h: 0.3}\nregularizer: {name: l2, lambda: 0.5}\n"


def settings_of(*words):
    return settings_of_command(parse(["train", *words]), "train")


def summary(directory):
    return json.loads((Path(directory) / "summary.json").read_text())


def test_data_and_options_are_a_training(rows, bmrm_command, folder):
    words = "train train.svm --loss hinge --lambda 1e-2 --test test.svm --output runs/x --tolerance 1e-6"
    done = bmrm_command(*words.split())
    assert done.returncode == 0, done.stderr
    assert "hinge + l2 on train.svm" in done.stdout
    X, y = rows
    model = bmrm.load_model(folder / "runs/x/model.npz")
    w, b = model.weights, model.intercept[0]
    assert b != 0.0
    value = 0.5e-2 * w @ w + np.maximum(0.0, 1.0 - y[:60] * (X[:60] @ w + b)).mean()
    found = summary(folder / "runs/x")
    assert found["objective"] == pytest.approx(value, rel=1e-12)
    assert found["relative_gap"] <= 1e-6
    correct = (np.where(X[60:] @ w + b > 0, 1, -1) == y[60:]).mean()
    assert found["metrics"]["test"]["accuracy"] == pytest.approx(correct)


def test_without_lambda_it_is_one_over_the_rows(rows):
    assert main(["train", "train.svm", "--quiet", "--loss", "logistic"]) == 0
    header = bmrm.load_model("runs/train/model.npz").header
    assert header["regularizer"]["lambda"] == pytest.approx(1 / 60)


def test_the_same_settings_as_of_a_config(rows):
    Path("c.yaml").write_text(CONFIG + "output: {directory: o, metrics: [auc]}\n")
    words = ["train.svm", "--loss", "huber_hinge", "--loss.h", "0.3", "--lambda", "0.5", "--output", "o"]
    assert settings_of(*words, "--metrics", "auc") == load_settings("c.yaml").plain()


def test_options_win_over_the_config(rows):
    Path("c.yaml").write_text(CONFIG)
    found = settings_of("c.yaml", "test.svm", "--lambda", "2", "--loss.h=0.7", "--set", "seed=4", "--no-overwrite")
    assert found["data"]["train"] == ["test.svm"]
    assert (found["regularizer"]["lambda"], found["loss"]["h"], found["seed"]) == (2.0, 0.7, 4)
    assert found["output"]["directory"] == "runs/c"


def test_another_name_keeps_the_options_that_it_has_too(rows):
    Path("c.yaml").write_text(CONFIG + "solver: {name: bundle, tolerance: 1.0e-5, max_planes: 7}\n")
    found = settings_of("c.yaml", "--regularizer", "l1", "--solver", "lbfgs", "--loss", "hinge")
    engine = found["regularizer"]["engine"]
    assert found["regularizer"] == {"name": "l1", "lambda": 0.5, "engine": engine, "feature_weights": None}
    assert found["solver"]["tolerance"] == 1e-5
    assert found["loss"] == {"name": "hinge"}


def test_a_config_of_another_name(rows):
    Path("c.conf").write_text(CONFIG)
    assert settings_of("--config", "c.conf")["loss"]["h"] == 0.3


def test_options_of_plug_ins_may_stand_anywhere(rows):
    found = settings_of("--loss.tau", "0.9", "--loss", "quantile", "train.svm", "--solver.memory=3", "--solver=lbfgs")
    assert (found["loss"]["tau"], found["solver"]["memory"]) == (0.9, 3)
    found = settings_of("train.svm", "--format", "csv", "--data.format.label", "price", "--loss", "least_squares")
    assert found["data"]["format"]["label"] == "price"


def test_data_may_stand_between_options(rows):
    found = settings_of("a.svm", "--loss", "logistic", "b.svm", "--overwrite", "c.svm")
    assert found["data"]["train"] == ["a.svm", "b.svm", "c.svm"]


def test_every_field_is_an_option():
    """Of the schema as pydantic has it, and of every plug-in as the registries do."""
    from bmrm.app.config.config import PLUG_INS
    from bmrm.registry import option_name

    flags = {flag for option in all_options() for flag in option.flags}
    for name, field in Settings.model_fields.items():
        inner = getattr(field.annotation, "model_fields", None)
        wanted = {f"--{name}.{key}" for key in inner} if inner else {f"--{name}"}
        assert wanted - {"--data.train", "--version"} <= flags
    for section, plug_in in PLUG_INS.items():
        for entry in plug_in.registry.all():
            assert {f"--{section}.{option_name(field.name)}" for field in entry.parameters} <= flags


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)


@given(
    tolerance=st.floats(0.0, 1.0), seed=st.integers(0, 2**32 - 1), bias=st.sampled_from(["none", "free"]), folder=TEXT
)
def test_values_arrive_as_they_are(tolerance, seed, bias, folder):
    words = ["a.svm", f"--tolerance={tolerance!r}", f"--seed={seed}", f"--bias={bias}", f"--output={folder}"]
    found = settings_of(*words)
    assert found["solver"]["tolerance"] == tolerance
    assert (found["seed"], found["data"]["bias"]) == (seed, bias)
    assert found["output"]["directory"] == (folder if folder != "null" else "runs/a")


WORDS = """a.svm c.yaml --loss hinge --loss.delta --lambda -1 1e-3 --set seed=2 x= --set=loss=huber --test -- nan null
--data.format.label --format={name:csv --bias=free --overwrite --solver=[ --regularizer.lambda={over:m}"""


@given(st.lists(st.sampled_from(WORDS.split()) | TEXT, max_size=7))
def test_any_words_are_settings_or_one_refusal(words):
    refused = None
    try:
        found = settings_of(*words)
    except (InputError, SystemExit) as error:
        refused = error
    if refused is None:
        assert found["data"]["train"]
    else:
        assert isinstance(refused, InputError) or refused.code in (0, 2)
        assert len(str(refused)) < 2000


WRONG = {
    "train": "expected data or a config",
    "train a.yaml b.yaml": "two configs",
    "train none.svm": "none.svm",
    "train train.svm --tolerence 1": "did you mean '--tolerance'",
    "train train.svm --tolerance abc": "--tolerance: solver.tolerance is 'abc', expected a number",
    "train train.svm --tolerance -1": "expected >= 0",
    "train train.svm --bias fre": "did you mean 'free'",
    "train train.svm --loss hinj": "did you mean 'hinge'",
    "train train.svm --loss.h 3": "loss has options but no name, expected such as {name: hinge, ...}",
    "train train.svm --loss huber_hinge --loss.hh 3": "did you mean 'h'",
    "train train.svm --metrics auk": "did you mean 'auc'",
    "train train.svm --data.format.label y": "data.format has options but no name, expected such as {name: csv",
    "train train.svm --lambda": "expected one argument",
    "train train.svm --seed [": "--seed",
    "train s3://bucket/a.svm": "s3://bucket/a.svm",
    "train train.svm --test https://host/a.svm": "https://host/a.svm",
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_words_are_one_line_and_status_2(rows, words, capsys):
    try:
        status = main(words.split())
    except SystemExit as end:
        status = end.code
    said = capsys.readouterr().err
    assert status == 2
    assert WRONG[words] in said
    assert len(said.strip().splitlines()) == 1
    assert not Path("runs").exists()


def test_json_at_the_end_is_the_summary(rows, bmrm_command, folder):
    done = bmrm_command("train", "train.svm", "--json", "--lambda", "0.1")
    assert done.returncode == 0
    assert json.loads(done.stdout)["objective"] == summary(folder / "runs/train")["objective"]
    again = bmrm_command("train", "train.svm", "--json", "--quiet", "--lambda", "0.1", "--resume")
    assert json.loads(again.stdout)["status"] == "CONVERGED"
    assert bmrm_command("train", "train.svm", "--quiet", "--lambda", "0.1").stdout == ""


OWN = """
from dataclasses import dataclass
import numpy as np
import bmrm

@dataclass(frozen=True)
class Mine(bmrm.RegressionLoss):
    def value(self, f, y):
        return np.abs(f - y)

    def slope(self, f, y):
        return np.sign(f - y)
"""


def test_a_loss_of_the_folder_that_one_stands_in(rows, bmrm_command, folder):
    (folder / "losses_of_mine.py").write_text(OWN)
    done = bmrm_command("train", "train.svm", "--loss", "losses_of_mine:Mine", "--quiet", "--lambda", "0.1")
    assert (done.returncode, done.stderr) == (0, "")
    assert bmrm.load_model(folder / "runs/train/model.npz", loss=bmrm.losses.LOSSES.make("hinge")).dim == 5


def test_help_has_the_options_of_the_plug_ins_that_are_named(capsys):
    with pytest.raises(SystemExit) as left:
        main(["train", "--loss", "huber", "--solver", "bundle", "--help"])
    assert left.value.code == 0
    printed = " ".join(capsys.readouterr().out.split())
    for words in ("--loss.delta", "--solver.max_planes", "a number > 0", "one of free, regularized, none", "examples:"):
        assert words in printed


@pytest.mark.mpi
def test_the_same_over_ranks(rows, folder):

    words = ["train", "train.svm", "--loss", "hinge", "--lambda", "1e-2", "--tolerance", "1e-9", "--quiet", "--output"]
    assert main([*words, "alone"]) == 0
    command = [launcher(), "-n", "2", sys.executable, "-m", "bmrm.cli"]
    done = subprocess.run([*command, *words, "two"], cwd=folder, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert summary("two")["ranks"] == 2
    assert summary("two")["objective"] == pytest.approx(summary("alone")["objective"], rel=1e-8)
    wrong = subprocess.run(
        [*command, *words, "two", "--bogus"], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert wrong.returncode == 2
    assert wrong.stderr.count("unknown argument '--bogus'") == 1
    assert yaml.safe_load(Path("two/config.yaml").read_text())["loss"] == {"name": "hinge"}


UNWANTED = (
    "matplotlib",
    "jinja2",
    "sklearn",
    "pandas",
    "pyarrow",
    "scipy.stats",
    "scipy.special",
    "scipy.optimize",
    "scipy.sparse",
)
"""What takes longer to import than most runs last."""


@pytest.mark.parametrize("loss", ["hinge", "logistic", "least_squares", "quantile", "ordinal"])
def test_a_run_imports_only_what_it_needs(folder, rows, loss):
    """Whatever it measures and draws."""
    program = "import sys; from bmrm.cli import main; status = main(sys.argv[1:]);"
    program += f"print(status, [name for name in {UNWANTED!r} if name in sys.modules])"
    words = ["train", "train.svm", "--test", "test.svm", "--loss", loss, "--output", "out", "--quiet"]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=300)
    assert done.stdout == "0 []\n", done.stderr
    assert json.loads((folder / "out" / "summary.json").read_text())["metrics"]["test"]
    assert (folder / "out" / "convergence.svg").exists()


PLACES = ["--solver.tolerance", "--tolerance"]


@pytest.mark.parametrize("flag", PLACES)
@pytest.mark.parametrize(
    "solver",
    [
        ["--solver", "probe"],
        ["--solver", "{name: probe}"],
        ["--solver", "{name: probe, tolerance: 0.5}"],
        ["--solver={name: probe}"],
        ["--solver.name", "probe"],
        ["--solver", "bundle", "--solver", "{name: probe}"],
        ["--set", "solver=probe"],
        ["--set", "solver={name: probe}"],
    ],
)
def test_options_of_a_solver_however_it_is_given(rows, solver, flag):
    expected = settings_of("train.svm", "--solver", "probe", "--solver.tolerance", "0.25", "--solver.ccf", "3")[
        "solver"
    ]
    options = [flag, "0.25", "--solver.ccf", "3"]
    assert settings_of("train.svm", *solver, *options)["solver"] == expected
    assert settings_of(*options, *solver, "train.svm")["solver"] == expected


def test_options_of_losses_and_regularizers_that_are_mappings(rows):
    words = ["train.svm", "--lambda", "0.5", "--loss", "{name: huber_hinge}", "--loss.h", "0.25"]
    words += ["--regularizer", "{name: elastic_net, lambda: 3}", "--regularizer.l1_ratio", "0.75"]
    found = settings_of(*words)
    assert found["loss"] == {"name": "huber_hinge", "h": 0.25}
    assert (found["regularizer"]["lambda"], found["regularizer"]["l1_ratio"]) == (0.5, 0.75)


@pytest.mark.parametrize(
    "section", ["probe", "{name: probe}", "{name: pegasos, epochs: 2}", "{name: coordinate_descent}"]
)
def test_options_of_the_solver_of_a_config(rows, section):
    Path("c.yaml").write_text(f"data: {{train: train.svm}}\nsolver: {section}\n")
    found = settings_of("c.yaml", "--tolerance", "0.25", "--time-limit", "9", "--threads", "2")["solver"]
    assert (found["tolerance"], found["time_limit"], found["threads"]) == (0.25, 9.0, 2)


def test_help_of_a_solver_that_is_a_mapping(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--solver", "{name: probe}", "--help"])
    assert "--solver.ccf" in capsys.readouterr().out
