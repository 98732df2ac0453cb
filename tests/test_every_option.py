"""Every option of every plug-in, data format, generator and config section has an effect.

Generated from the registries and the config models: an option without another legal value to try fails the test.
"""

import dataclasses
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml

import bmrm
from bmrm.app.config.sections import DataSection, OutputSection, Settings
from bmrm.app.convert import convert
from bmrm.data.generators import GENERATORS, load
from bmrm.data.matrix import Csr, features_of
from bmrm.data.readers._core.formats import formats
from bmrm.losses import LOSSES
from bmrm.problem import BmrmError
from bmrm.registry import option_name
from bmrm.regularizers import REGULARIZERS
from bmrm.run import main
from bmrm.solvers import SOLVERS
from tests.conformance.loss_cases import case_of
from tests.targets import default_instance, targets_for

MISSING = dataclasses.MISSING
LONG_ENOUGH = 300
"""Iterations in which every option of a solver has had its effect."""


def options_of(registry):
    return [
        pytest.param(entry, field, id=f"{entry.name}-{option_name(field.name)}")
        for entry in registry.all()
        for field in entry.parameters
    ]


def another(field, current):
    """A legal value that is not `current`."""
    example = field.metadata.get("example")
    choices = getattr(field.metadata.get("range"), "choices", None) or ()
    values = [value for value in (example, *choices) if value is not None and value != current]
    assert values, f"{field.name} needs an example that is not its default"
    return values[0]


def seen(function):
    """What a user can see of a call that trains: the error, or points, bounds and status, to the last bit."""
    try:
        solution = function()
    except BmrmError as error:
        return str(error)
    lines = [(line.iteration, line.objective, line.lower_bound, line.passes) for line in solution.history]
    kinds = [type(getattr(solution, field.name)).__name__ for field in dataclasses.fields(solution)]
    details = sorted(solution.details or {})
    return solution.w.tolist(), solution.objective, solution.status.name, lines, solution.solver, kinds, details


def features(rows):
    random = np.random.default_rng(8)
    return np.abs(random.normal(size=(rows, 6))) * [1.0, 2.0, 0.5, 1.0, 3.0, 1.0]


@pytest.mark.parametrize(("entry", "field"), options_of(LOSSES))
def test_options_of_losses(entry, field):
    plain = dataclasses.replace(default_instance(entry), **field.metadata.get("beside", {}))
    if field.default is MISSING and field.default_factory is MISSING:
        with pytest.raises(TypeError, match=field.name):
            entry.cls()
        return
    changed = dataclasses.replace(plain, **{field.name: another(field, getattr(plain, field.name))})
    if at_random_scores(changed, plain) != at_random_scores(plain, plain):
        return
    y, groups = targets_for(plain), np.repeat(np.arange(9), 4)

    def train(loss):
        return lambda: bmrm.fit(features(36), y, loss=loss, groups=groups, regularizer=bmrm.L2(1e-3)).solution

    assert seen(train(changed)) != seen(train(plain))


def at_random_scores(loss, plain):
    """Value and slope for the same targets and scores."""
    case = dataclasses.replace(case_of(plain), loss=loss)
    value, slope = case.prepare().value_and_slope(case.generic_scores())
    return value, slope.tolist()


X = features(60)
Y = np.sign(X @ [1.0, -1.0, 1.0, -1.0, 0.5, 0.0] + np.random.default_rng(9).normal(size=60))


RUNS = {}


def run_of(loss, regularizer, solver):
    """What is seen of a run on one prepared risk."""
    name = repr((loss, regularizer, solver))
    if name not in RUNS:
        RUNS[name] = seen(lambda: bmrm.minimize(prepared(loss), regularizer, solver))
    return RUNS[name]


@cache
def prepared(loss):
    return bmrm.LinearRisk(bmrm.Dataset.from_arrays(X, Y), LOSSES.make(loss))


@pytest.mark.parametrize(("entry", "field"), options_of(REGULARIZERS))
def test_options_of_regularizers(entry, field):
    needed = {f.name: f.metadata["example"] for f in entry.parameters if f.default is MISSING}
    plain = entry.cls(**needed, **field.metadata.get("beside", {}))
    value = another(field, getattr(plain, field.name)) if field.name not in needed else 7.0 * needed[field.name]
    changed = dataclasses.replace(plain, **{field.name: value})
    solver = SOLVERS.make("bundle", {"tolerance": 1e-6})
    assert run_of("hinge", changed, solver) != run_of("hinge", plain, solver)


@pytest.mark.parametrize(("entry", "field"), options_of(SOLVERS))
def test_options_of_solvers(entry, field):
    """On a hinge, on a logistic risk for smooth problems, on a Huber hinge where full Newton steps overshoot."""
    limit = {"max_iterations": LONG_ENOUGH} if field.name not in ("max_iterations", "tolerance") else {}
    plain = entry.cls(**limit, **field.metadata.get("beside", {}))
    changed = dataclasses.replace(plain, **{field.name: another(field, getattr(plain, field.name))})
    regularizer = bmrm.L1(1e-3) if "smooth regularizer" in entry.facts.get("refuses", ()) else bmrm.L2(1e-3)

    losses = ("hinge", "logistic", "huber_hinge")
    assert any(run_of(loss, regularizer, plain) != run_of(loss, regularizer, changed) for loss in losses)


def of_data(data):
    X = data.X.to_dense() if isinstance(data.X, Csr) else data.X
    y = data.targets.y
    return (
        type(data.X).__name__,
        str(X.dtype),
        features_of(X).block(np.arange(len(y))).tolist(),
        y.tolist() if isinstance(y, np.ndarray) else list(map(list, y)),
    )


TOKENS = "He PRP B-NP\nruns VBZ B-VP\n\nBig JJ B-NP\ndogs NNS I-NP\nbark VBP B-VP\n"
TABLE = np.array([[0, 3, 1], [1, 4, 0], [0, 5, 1]])


def written(name, path):
    """A small file of a format."""
    if name == "npy":
        np.save(path.with_suffix(".npy"), TABLE)
        return path.with_suffix(".npy")
    if name == "npz":
        np.savez(path.with_suffix(".npz"), X=TABLE[:, :2], y=TABLE[:, 2], names=np.array(["a", "b"]))
        return path.with_suffix(".npz")
    if name == "store":  # that is not as it was written
        np.savez(path.with_suffix(".npz"), X=TABLE[:, :2], y=TABLE[:, 2], names=np.array(["a", "b"]))
        convert(str(path.with_suffix(".npz")), path.with_suffix(".store"))
        np.save(path.with_suffix(".store") / "X.npy", 2.0 * TABLE[:, :2])
        return path.with_suffix(".store")
    if name == "arrow":
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(dict(zip("abc", TABLE.T))), path)
        return path
    if name == "june":
        path.with_suffix(".activations.ssv").write_text("active,toxic\n\nACT,ACT\nNOT_ACT,ACT\n")
        path = path.with_suffix(".factors.ssv")
    texts = {
        "conll": TOKENS,
        "june": "0 2\n1\n",
        "spardat": "2.5 0 2\n-1 1\n",
        "svmlight": "1 0:0.3 2:1\n-1 1:2\n",
        "csv": "0,3,1\n1,4,0\n0,5,1\n",
        "crfsuite": "B\tw=a\tp=x\tq=y\nO\tw=b\tp=x\n\nO\tw=c\tp=z\n",
    }
    path.write_text(texts[name])
    return path


@pytest.mark.parametrize(("entry", "field"), options_of(formats))
def test_options_of_formats(entry, field, tmp_path):
    path = written(entry.name, tmp_path / "data")

    def read(options):
        try:
            return of_data(entry.cls(**options).scan(path).dataset(one_based=options.get("one_based")))
        except BmrmError as error:
            return str(error)

    assert read({field.name: another(field, field.default)}) != read({})


@pytest.mark.parametrize(
    ("name", "field"), [(name, field) for name, cls in GENERATORS.items() for field in dataclasses.fields(cls)]
)
def test_options_of_generators(name, field):
    few = {"ranking": {"queries": 8}, "chains": {"sentences": 8}}.get(name, {"rows": 40})

    def made(options):
        return of_data(load(f"{name}?" + "&".join(f"{key}={value}" for key, value in options.items())))

    assert made(few | {field.name: another(field, field.default)}) != made(few)


BASE = {
    "schema": 1,
    "data": {"train": "train.svm", "test": "train.svm"},
    "loss": "hinge",
    "regularizer": {"name": "l2", "lambda": 0.01},
    "solver": {"name": "auto"},
    "output": {"directory": "out"},
    "seed": 0,
}
OTHER = {
    ("data", "train"): "other.svm",
    ("data", "validation"): "other.svm",
    ("data", "test"): "other.svm",
    ("data", "format"): "csv",
    ("data", "header"): True,
    ("data", "ignore"): ["a"],
    ("data", "categorical"): ["a"],
    ("data", "text"): {"a": "counted"},
    ("data", "missing"): "mean",
    ("data", "drop_first"): True,
    ("data", "rare"): 5,
    ("data", "dimension"): 9,
    ("data", "bias"): "free",
    ("data", "scale"): "max_abs",
    ("data", "weights"): "weights.txt",
    ("data", "offset"): "weights.txt",
    ("data", "positive_label"): -1,
    ("data", "class_weight"): "balanced",
    ("data", "classes"): "one_vs_rest",
    ("data", "labels"): "each",
    ("data", "features"): {"name": "polynomial"},
    ("calibrate",): "sigmoid",
    ("output", "directory"): "elsewhere",
    ("output", "checkpoint_every"): 1e-9,
    ("output", "overwrite"): False,
    ("output", "metrics"): ["map", "f1"],
    ("output", "follow"): ["map"],
    ("output", "follow_every"): 1,
    ("start",): "start.npz",
    ("seed",): 5,
    ("search",): {"name": "f_measure", "costs": 2, "folds": 2},
    ("schema",): 2,
    ("loss",): "logistic",
    ("regularizer",): {"name": "l1", "lambda": 0.01},
    ("solver",): "bundle",
    ("solver", "stop"): {"measure": "auc", "patience": 1},
}
OF_RANKS = "share_rows", "guard"
"""tests/mpi/test_dealt.py and tests/mpi/test_guard.py have them."""
FIELDS = [("data", name) for name in DataSection.model_fields if name not in OF_RANKS] + [
    ("output", name) for name in OutputSection.model_fields
]
FIELDS += [
    (field.alias or name,)
    for name, field in Settings.model_fields.items()
    if (field.alias or name) not in ("data", "output", "mpi")  # of ranks: tests/mpi/test_silence.py
]
FIELDS += [("solver", "stop")]  # of no solver; `threads` is below


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(1)
    for name in ("train", "other"):
        X = random.normal(size=(30, 3)).round(3).tolist()
        lines = [f"{1 if sum(row) + random.normal() > 0 else -1} 1:{row[0]} 2:{row[1]} 3:{row[2]}" for row in X]
        Path(f"{name}.svm").write_text("\n".join(lines) + "\n")
    start = bmrm.fit(random.normal(size=(9, 3)), [-1.0, 1.0, 1.0] * 3, regularizer=bmrm.L2(1.0))
    start.save("start.npz")
    Path("weights.txt").write_text("\n".join(str(1 + k % 4) for k in range(30)) + "\n")
    return tmp_path


def outcome(settings, capsys, monkeypatch):
    """What a run leaves: status, message, files, summary without clocks, weights, and what was saved on the way."""
    saved = []
    monkeypatch.setattr("bmrm.app.pipeline.write.write_file", lambda folder, name, write: saved.append(name))
    Path("config.yaml").write_text(yaml.safe_dump(settings))
    before = set(Path().rglob("*"))
    status = main(["config.yaml", "--quiet"])
    files = sorted(str(path) for path in set(Path().rglob("*")) - before)
    summaries = [json.loads(Path(name).read_text()) for name in files if name.endswith("summary.json")]
    for summary in summaries:
        del summary["seconds"]
    models = [bmrm.load_model(name) for name in files if name.endswith("model.npz")]
    result = [(model.weights.tolist(), model.intercept.tolist(), model.labels.tolist()) for model in models]
    for name in files:
        if Path(name).is_file():
            Path(name).unlink()
    for name in reversed(files):
        if Path(name).is_dir():
            Path(name).rmdir()
    return status, capsys.readouterr().err, files, summaries, result, sorted(set(saved))


@pytest.mark.parametrize("place", FIELDS, ids=".".join)
def test_fields_of_the_config(folder, capsys, monkeypatch, place):
    assert place in OTHER, f"{'.'.join(place)} needs another legal value to try"
    base = json.loads(json.dumps(BASE))
    if place == ("seed",):
        base["data"] = {"train": "synthetic:sparse_binary?rows=50&features=20"}
    if place == ("output", "overwrite"):
        base["output"]["overwrite"] = True
        (folder / "out").mkdir()
        (folder / "out" / "history.csv").touch()
    if place in (("output", "follow"), ("output", "follow_every")):
        base["data"]["validation"], base["solver"] = "other.svm", "line_search_bundle"
        base["output"] |= {"follow": ["auc"], "follow_every": 2} if place[-1] == "follow_every" else {}
    if place == ("solver", "stop"):
        base["data"]["validation"], base["solver"] = "other.svm", {"name": "line_search_bundle", "tolerance": 1e-9}
        base["output"] |= {"follow": ["auc"], "follow_every": 1}
    changed = json.loads(json.dumps(base))
    section = changed
    for part in place[:-1]:
        section = section[part]
    section[place[-1]] = OTHER[place]
    first = outcome(base, capsys, monkeypatch)
    assert first[0] == 0
    assert outcome(base, capsys, monkeypatch) == first
    assert outcome(changed, capsys, monkeypatch) != first


def test_threads_is_what_the_risk_gets(folder, monkeypatch, capsys):
    asked = []

    class Spy(bmrm.risk.linear.Workers):
        def __init__(self, threads=None):
            asked.append(threads)
            super().__init__(threads)

    monkeypatch.setattr("bmrm.risk.linear.Workers", Spy)
    for threads in (1, 2):
        asked.clear()
        outcome(BASE | {"solver": {"name": "auto", "threads": threads}}, capsys, monkeypatch)
        assert threads in asked
