"""Files that are damaged, or made to do harm: read, or refused with a sentence, never more."""

import io
import json
import tracemalloc
import warnings
import zipfile
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import bmrm
from bmrm.app.pipeline.checkpoint import Checkpoint, read_start
from bmrm.cli import main
from bmrm.data.dataset import Dataset
from bmrm.data.readers._core.templates import parse
from bmrm.data.readers.conll import Conll
from bmrm.data.readers.npz import read_npz
from bmrm.data.reading import read
from bmrm.data.writers import write_npz, write_svmlight
from bmrm.problem import InputError, Start
from bmrm.risk import room
from bmrm.solvers import SOLVERS
from tests.mutations import damaged, unsealed

CONLL = "He PRP B-NP\nruns VBZ B-VP\n\nShe PRP B-NP\nsits VBZ B-VP\n. . O\n\n"


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """A file of every kind, by its name."""
    folder = tmp_path_factory.mktemp("originals")
    random = np.random.default_rng(0)
    X = np.round(random.normal(size=(20, 3)), 2)
    y = np.where(X[:, 0] > 0, "yes", "no")
    numbers = bmrm.Dataset.from_arrays(X, (y == "yes").astype(int))
    write_svmlight(folder / "a.svm", numbers)
    write_svmlight(folder / "a.svm.gz", numbers)
    write_svmlight(folder / "a.svm.xz", numbers)
    write_npz(folder / "a.npz", bmrm.Dataset.from_arrays(X, y, np.ones(20)))
    np.savez_compressed(folder / "packed.npz", X=X, y=y)
    (folder / "a.csv").write_text("a,b,c,y\n" + "".join(f"{p},{q},{r},{s}\n" for (p, q, r), s in zip(X, y)))
    (folder / "a.conll").write_text(CONLL)
    frame = type("Frame", (), {"columns": ["a", "b", "c"], "to_numpy": lambda self: X})()
    model = bmrm.fit(frame, y, regularizer=bmrm.L2(0.1), bias="regularized")
    model.save(folder / "model.npz")
    towns = np.where(X[:, 1] > 0, "Oslo", "Bergen")
    columns = bmrm.fit(pd.DataFrame({"a": X[:, 0], "town": towns}), y, missing="mean", rare=2, lam=0.1)
    columns.save(folder / "columns-model.npz")
    start = Start(model.solution.w, 0.1, model.solution.history, {"rows_alpha": np.ones(20)})
    with open(folder / "checkpoint.npz", "wb") as stream:
        Checkpoint(start, {"data": {"rows": 20, "order": "x"}}, 0).write(stream, model)
    text = {"train": [str(folder / "a.conll")], "format": "conll"}
    (folder / "job.yaml").write_text(
        f"data: {{train: '{text['train'][0]}', format: conll}}\nloss: chain_crf\n"
        f"regularizer: {{name: l2, lambda: 0.1}}\noutput: {{directory: {folder}/out}}\n"
    )
    assert main(["train", str(folder / "job.yaml"), "--quiet"]) == 0
    (folder / "out" / "model.npz").rename(folder / "text-model.npz")
    return folder


NAMES = [
    "a.svm",
    "a.svm.gz",
    "a.svm.xz",
    "a.npz",
    "packed.npz",
    "a.csv",
    "a.conll",
    "model.npz",
    "text-model.npz",
    "columns-model.npz",
    "checkpoint.npz",
]


@pytest.mark.parametrize("name", NAMES)
def test_damaged_bytes_are_read_or_refused(originals, tmp_path, name):
    content = (originals / name).read_bytes()
    random = np.random.default_rng(NAMES.index(name))
    path = tmp_path / name
    X = read(originals / "a.csv").X
    for trial in range(200):
        bad = unsealed(content, random) if name.endswith("npz") and trial % 2 else damaged(content, random)
        path.write_bytes(bad)
        with suppress(InputError), warnings.catch_warnings():
            warnings.simplefilter("error")
            if "checkpoint" in name:
                read_start(path)
            elif "model" in name:
                model = bmrm.load_model(path)
                if name == "model.npz":
                    model.decision_function(X)
                if name == "columns-model.npz":
                    warnings.simplefilter("ignore", UserWarning)  # of levels that are unknown by then
                    model.decision_function(pd.DataFrame({"a": X[:, 0], "town": "Oslo"}))
            else:
                read(path, format="conll" if name == "a.conll" else "auto")


def archive(path, members, **more):
    with zipfile.ZipFile(path, "w", **more) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def header_only(shape, dtype="<f8"):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
    return stream.getvalue()


def both_refuse(path, said):
    for reader, kind in ((read_npz, "not an archive of plain arrays: "), (bmrm.load_model, "not a model file: ")):
        with pytest.raises(InputError) as caught:
            reader(path)
        assert str(caught.value).startswith(f"{path}: {kind}")
        assert said in str(caught.value)


def test_a_header_that_asks_for_gigabytes(tmp_path):
    path = archive(tmp_path / "a.npz", {"X.npy": header_only((10**9, 1)) + bytes(80)})
    tracemalloc.start()
    both_refuse(path, "says that it has shape (1000000000, 1), float64, but holds 208 bytes")
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()
    both_refuse(archive(path, {"X.npy": header_only((-1, -8)) + bytes(64)}), "shape")
    both_refuse(archive(path, {"X.npy": header_only((10**40,)) + bytes(64)}), "shape")


def test_a_member_that_says_it_is_larger_than_any_packing_allows(tmp_path):
    path = archive(tmp_path / "a.npz", {"X.npy": header_only((10**9,)) + bytes(1000)})
    content = bytearray(path.read_bytes())
    place = content.rindex(b"PK\x01\x02")
    content[place + 24 : place + 28] = (0xFFFFFF00).to_bytes(4, "little")
    path.write_bytes(content)
    both_refuse(path, "more than 1100 times the size of the file")


def test_encrypted_and_strange_members(tmp_path):
    path = archive(tmp_path / "a.npz", {"X.npy": npy(np.eye(2)), "y.npy": npy(np.arange(2))})
    content = path.read_bytes()
    flags = [k + shift for mark, shift in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)) for k in places(content, mark)]
    path.write_bytes(bytes(byte | 1 if at in flags else byte for at, byte in enumerate(content)))
    both_refuse(path, "member 'X.npy' is encrypted")
    methods = [k + shift for mark, shift in ((b"PK\x01\x02", 10), (b"PK\x03\x04", 8)) for k in places(content, mark)]
    path.write_bytes(bytes(97 if at in methods else byte for at, byte in enumerate(content)))
    both_refuse(path, "member 'X.npy' is packed by method 97")
    both_refuse(archive(path, {"X.npy": npy(np.eye(2)), "X.txt": "1 2"}), "member 'X.txt' is no array")
    both_refuse(archive(path, {"X.npy": b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 70000}), "damaged")
    both_refuse(archive(path, {"X.npy": npy(np.zeros(2, [("a", "f8")]))}), "holds records")
    both_refuse(archive(path, {"X.npy": npy(np.array([{}], object))}), "pickled objects")
    text = npy(np.array("ab")).replace("b".encode("utf-32-le"), b"\xff\xff\xff\x7f")
    both_refuse(archive(path, {"X.npy": text}), "characters that do not exist")


def places(content, mark):
    return [k for k in range(len(content)) if content.startswith(mark, k)]


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_packed_archives_are_read(tmp_path, method):
    members = {"X.npy": npy(np.zeros((1000, 50))), "y.npy": npy(np.asfortranarray(np.arange(1000.0)))}
    data = read(archive(tmp_path / "a.npz", members, compression=method))
    assert data.X.shape == (1000, 50)


HEADER = {"format": 2, "loss": {"name": "hinge"}, "dimension": 2}
ARRAYS = {"weights": np.zeros(2), "intercept": np.zeros(1), "labels": np.array([-1.0, 1.0])}
TEXT = {"format": {"name": "conll", "templates": "w=%x[0,0]"}, "hash_bits": None}
BAD_HEADERS = {
    "deep": ("[" * 100_000, "header is not ours"),
    "overflow": (json.dumps(HEADER)[:-1] + ', "objective": 1e999}', "header is not ours"),
    "nan": (json.dumps(HEADER)[:-1] + ', "objective": NaN}', "header is not ours"),
    "digits": (json.dumps(HEADER)[:-1] + ', "objective": ' + "9" * 5000 + "}", "header is not ours"),
    "dimension": (HEADER | {"dimension": 2.0}, "dimension 2.0, expected a whole number"),
    "format": (HEADER | {"format": [2]}, r"model format \[2\]"),
    "hash_bits below": (HEADER | {"text": TEXT | {"hash_bits": -1}}, "text features is damaged"),
    "hash_bits above": (HEADER | {"text": TEXT | {"hash_bits": 10**9}}, "text features is damaged"),
    "hash_bits other": (HEADER | {"text": TEXT | {"hash_bits": 5}}, "dictionary has 32 features, expected 2"),
    "templates": (HEADER | {"text": {"format": {"name": "conll", "templates": 5}, "hash_bits": 1}}, "templates is 5"),
    "input": (HEADER | {"input": {"format": {"name": "csv", "delimiter": 5}}}, "delimiter is 5"),
    "input kind": (HEADER | {"input": [1]}, "not a model file"),
    "labels": (HEADER | {"input": {"format": {"name": "csv"}, "labels": 3}}, "input format is damaged"),
    "sets": (HEADER | {"sets": {"form": "sets", "dtype": "O"}}, "unknown form of sets"),
    "one_based": (HEADER | {"one_based": "yes"}, "one_based is 'yes'"),
    "regularizer": (
        HEADER | {"regularizer": {"lambda": 1.0}},
        "its regularizer is {'lambda': 1.0}, expected one with a",
    ),
    "regularizer kind": (HEADER | {"regularizer": "l2"}, "its regularizer is 'l2'"),
    "regularizer name": (HEADER | {"regularizer": {"name": 5}}, "expected one with a name"),
    "objective": (HEADER | {"objective": "x"}, "objective is 'x', expected a number"),
    "objective size": (HEADER | {"objective": 10**400}, "expected a number"),
    "lower bound": (HEADER | {"lower_bound": [1.0]}, "lower_bound is"),
    "status": (HEADER | {"status": 5}, "status is 5, expected text"),
    "bias": (HEADER | {"bias": {}}, "bias is {}"),
    "chosen": (HEADER | {"chosen": [1]}, "chosen is"),
    "arrays": (HEADER | {"arrays": 5}, "does not name its arrays"),
    "input name": (HEADER | {"input": {"format": {"name": 5.0}}}, "data format is 5.0"),
    "a long dimension": (HEADER | {"dimension": int("9" * 4000)}, "is not that of the weights"),
}


@pytest.mark.parametrize("what", BAD_HEADERS)
def test_headers_that_are_wrong(tmp_path, what):
    header, said = BAD_HEADERS[what]
    text = header if isinstance(header, str) else json.dumps(header)
    empty = {"feature_bytes": np.zeros(0, np.uint8), "feature_ends": np.zeros(0, np.int64)}
    np.savez(tmp_path / "m.npz", header=np.array(text), **ARRAYS, **empty)
    with pytest.raises(InputError, match=said) as caught:
        bmrm.load_model(tmp_path / "m.npz")
    assert "m.npz" in str(caught.value)
    assert len(str(caught.value)) < 400


BAD_ARRAYS = {
    "weights of text": ({"weights": np.array(["a", "b"])}, "weights are not a float64 vector"),
    "one weight": ({"weights": np.array(1.0)}, "weights are not a float64 vector"),
    "weights of three axes": ({"weights": np.zeros((2, 1, 1))}, "weights are not a float64 vector"),
    "weights of 32 bits": ({"weights": np.zeros(2, np.float32)}, "weights are not a float64 vector"),
    "an intercept of text": ({"intercept": np.array(["a"])}, "intercept is not 1 float64 numbers"),
    "two intercepts": ({"intercept": np.zeros(2)}, "intercept is not 1 float64 numbers"),
    "a table of labels": ({"labels": np.eye(2)}, "labels are neither numbers nor text"),
    "a label twice": ({"labels": np.array(["a", "a"])}, "a label twice"),
}


@pytest.mark.parametrize("what", BAD_ARRAYS)
def test_arrays_that_are_wrong(tmp_path, capsys, what):
    arrays, said = BAD_ARRAYS[what]
    np.savez(tmp_path / "m.npz", header=np.array(json.dumps(HEADER)), **{**ARRAYS, **arrays})
    with pytest.raises(InputError, match=said):
        bmrm.load_model(tmp_path / "m.npz")
    assert main(["show", str(tmp_path / "m.npz")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


UNFIT = {
    "hinge": [{"labels": np.arange(3.0)}, {"labels": np.zeros(0)}, {"weights": np.zeros((2, 1))}],
    "least_squares": [{}, {"labels": np.arange(1.0), "weights": np.zeros((2, 1))}],
    "softmax": [{}, {"weights": np.zeros((2, 3)), "intercept": np.zeros(3)}],
    "ordinal_thresholds": [{}, {"loss_thresholds": np.zeros((2, 2))}],
    "chain_crf": [
        {"weights": np.zeros((2, 2)), "intercept": np.zeros(2)},
        {"weights": np.zeros((2, 2)), "intercept": np.zeros(2), "loss_transitions": np.zeros((3, 3))},
    ],
}


@pytest.mark.parametrize(("loss", "k"), [(loss, k) for loss, cases in UNFIT.items() for k in range(len(cases))])
def test_labels_and_arrays_that_do_not_fit_the_loss(tmp_path, loss, k):
    members = {**ARRAYS, **UNFIT[loss][k]}
    names = [name.removeprefix("loss_") for name in members if name.startswith("loss_")]
    header = HEADER | {"loss": {"name": loss}, "arrays": names}
    np.savez(tmp_path / "m.npz", header=np.array(json.dumps(header)), **members)
    with pytest.raises(InputError):
        bmrm.load_model(tmp_path / "m.npz").predict(np.eye(2), groups=np.zeros(2, int))


def test_an_arrow_file_whose_offsets_lead_outside(tmp_path):
    """pyarrow itself follows them: SystemError, or the end of the process."""
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import feather

    labels = [f"label-{k}" for k in range(2)] * 10
    feather.write_feather(
        arrow.table({"a": np.arange(20.0), "label": labels}), str(path := tmp_path / "a.arrow"), "uncompressed"
    )
    content = path.read_bytes()
    offsets = (7 * np.arange(21)).astype("<i4").tobytes()
    at = content.index(offsets)
    for bad in (-5, 2**31 - 1, 2**20):
        broken = np.array(bad, "<i4").tobytes()
        path.write_bytes(content[: at + 8] + broken + content[at + 12 :])
        with pytest.raises(InputError, match="the file is damaged"):
            read(path)


def test_options_of_a_loss_of_other_types(tmp_path):
    header = HEADER | {"loss": {"name": "huber_hinge", "delta": "x"}}
    np.savez(tmp_path / "m.npz", header=np.array(json.dumps(header)), **ARRAYS)
    with pytest.raises(InputError):
        bmrm.load_model(tmp_path / "m.npz").predict(np.eye(2))


@pytest.mark.parametrize("template", ["%x[99999999999999999999,0]", "%x[0,99999999999999999999]", "%x[-100000,0]",
                                      "%prefix[0,0,99999999999999999999]", "%x[" + "9" * 5000 + ",0]"])  # fmt: skip
def test_templates_that_look_beyond_all_numbers(template):
    with pytest.raises(InputError, match="expected rows from -1000 to 1000"):
        parse("w=" + template)
    with pytest.raises(InputError):
        Conll(templates="w=" + template).scan(__file__)


def test_an_index_that_takes_more_memory_than_there_is(tmp_path, monkeypatch, capsys):
    (tmp_path / "a.svm").write_text("1 1:1 2147483647:1\n-1 2:1\n")
    (tmp_path / "job.yaml").write_text(
        f"data: {{train: {tmp_path}/a.svm}}\nloss: hinge\nregularizer: {{name: l2, lambda: 0.1}}\n"
        f"output: {{directory: {tmp_path}/out}}\n"
    )
    monkeypatch.setattr(room, "available_bytes", lambda: 20 * 2**30)
    assert main(["train", str(tmp_path / "job.yaml"), "--quiet"]) == 2
    said = capsys.readouterr().err
    assert "2147483647 features take 16.0 GiB for a vector of weights" in said
    assert "20.0 GiB are free" in said
    assert "data.dimension" in said
    assert "hash_bits" in said
    assert main(["train", str(tmp_path / "job.yaml"), "--quiet", "--set", "data.dimension=5"]) == 2
    assert "a.svm: 2147483647 features, expected at most 5" in capsys.readouterr().err


def test_a_slip_in_an_index_is_refused_whatever_memory_there_is(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(room, "available_bytes", lambda: None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.svm").write_text("1 1:1 2:1\n-1 2:1 30000000:1\n")
    assert main(["train", "a.svm", "--quiet", "--output", "o"]) == 2
    said = capsys.readouterr().err
    assert "30000000 features, but all rows have 4 entries that are not 0" in said
    assert "data.dimension: 30000000 says so" in said
    sparse = sp.csr_array(([1.0, 2.0, 1.0], ([0, 1, 1], [0, 1, 29_999_999])), shape=(2, 30_000_000))
    write_npz("a.npz", Dataset.from_arrays(sparse, [1, -1]))
    assert main(["train", "a.npz", "--quiet", "--output", "o"]) == 2
    assert "30000000 features, but all rows have 3 entries" in capsys.readouterr().err
    for matrix in (sparse, sp.csc_matrix(sparse), sp.coo_array(sparse)):
        for door in (lambda X: bmrm.fit(X, [1, -1]), lambda X: bmrm.Classifier().fit(X, [1, -1])):
            with pytest.raises(InputError, match="30000000 features, but all rows have 3 entries"):
                door(matrix)


def test_many_features_that_are_meant(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.svm").write_text("1 1:1 2:1\n-1 2:1 4194305:1\n")
    words = ["train", "a.svm", "--loss", "hinge", "--lambda", "0.1", "--solver", "dual_coordinate", "--quiet"]
    assert main([*words, "--output", "o"]) == 2
    assert main([*words, "--output", "o", "--dimension", "4194305"]) == 0
    sparse = sp.csr_array(([1.0, 2.0], ([0, 1], [0, 1])), shape=(2, 5_000_000))
    data = Dataset.from_arrays(sparse, [1, -1])
    with pytest.raises(InputError, match="5000000 features, but all rows have 2 entries"):
        bmrm.fit(data, solver="dual_coordinate")
    assert bmrm.fit(data.with_features(5_000_000), loss="hinge", solver="dual_coordinate").dim == 5_000_000
    assert bmrm.fit(sparse[:, : 1 << 20], [1, -1], loss="hinge", solver="dual_coordinate").dim == 1 << 20


def test_every_solver_says_what_it_holds(monkeypatch):
    for entry in SOLVERS.all():
        assert entry.facts["vectors"] >= room.VECTORS, entry.name
    free = 8 * 2_000_000 * 10
    monkeypatch.setattr(room, "available_bytes", lambda: free)
    X = sp.random_array((30, 2_000_000), density=0.001, rng=np.random.default_rng(0), format="csr")
    y = np.arange(30) % 2
    with pytest.raises(InputError, match=r"newton needs 14 of these, 0\.2 GiB; 0\.1 GiB are free"):
        bmrm.fit(X, y, loss="logistic", solver="newton")
    assert bmrm.fit(X, y, loss="logistic", solver="dual_coordinate").solution.status.name == "CONVERGED"


def test_memory_is_told(monkeypatch):
    free = room.available_bytes()
    assert free is None or 0 < free < 2**50
    room.refuse_too_wide(10_000, 10)


def test_memory_is_not_asked_for_where_weights_are_few(monkeypatch):
    asked = []
    monkeypatch.setattr(room, "available_bytes", lambda: asked.append("once"))
    room.refuse_too_wide(1000, 10)
    assert not asked
    room.refuse_too_wide(10_000, 10)
    assert asked == ["once"]


@pytest.mark.parametrize("loss", ["logistic", "softmax", "squared_hinge", "least_squares"])
@pytest.mark.parametrize("scale", [1e-12, 1e7, 1e9])
def test_nonlinear_cg_divides_by_nothing(loss, scale):
    random = np.random.default_rng(0)
    for update in ("hestenes_stiefel", "polak_ribiere", "fletcher_reeves", "hestenes_stiefel_dai_yuan"):
        for _ in range(3):
            X = scale * random.normal(size=(8, 3))
            y = random.integers(0, 2, 8)
            y[:2] = 0, 1
            solver = {"name": "nonlinear_cg", "update": update, "max_iterations": 200, "time_limit": 2.0}
            model = bmrm.fit(X, y, loss=loss, regularizer=bmrm.L2(1e-3), solver=solver)
            assert np.isfinite(model.solution.objective)


LEARN = ("chain_crf", "chain_margin", "chain_scaled_margin", "ordinal_thresholds", "multilabel_hinge")
"""Losses whose models keep arrays beside the weights."""


@pytest.fixture(scope="module", params=LEARN)
def learned(request):
    """A model, rows to predict, and their groups, if any."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    more = {"groups": np.repeat(np.arange(10), 3)} if "chain" in request.param else {}
    if request.param == "multilabel_hinge":
        y = [{k for k in range(3) if row[k] > 0} or {0} for row in X]
    return bmrm.fit(X, y, loss=request.param, lam=0.1, tolerance=0.1, **more), X, more


WRONG = {
    "shorter": lambda array: array[:-1],
    "longer": lambda array: np.concatenate((array, array[:1])),
    "of another rank": lambda array: array[None],
    "empty": lambda array: array[:0],
    "of whole numbers": lambda array: array.astype(np.int64),
    "of 32 bits": lambda array: array.astype(np.float32),
    "of text": lambda array: array.astype(str),
    "not a number": lambda array: np.full_like(array, np.nan),
    "infinite": lambda array: np.full_like(array, np.inf),
}


def test_learned_arrays_that_do_not_fit_the_labels(tmp_path, learned):
    model, X, more = learned
    (name,) = model.arrays
    assert len(model.predict(X, **more)) == 30
    for make in WRONG.values():
        bad = replace(model, arrays={name: make(model.arrays[name])})
        with pytest.raises(InputError, match=f"^the model's {name}"):
            bad.predict(X, **more)
        bad.save(tmp_path / "m.npz")
        with pytest.raises(InputError, match=rf"m\.npz: not a model file: {name}"):
            bmrm.load_model(tmp_path / "m.npz")
    listed = replace(model, arrays={name: model.arrays[name].tolist()})
    with pytest.raises(InputError, match=f"^the model's {name}: list"):
        listed.predict(X, **more)


def test_scores_that_are_not_those_of_the_model(learned):
    model, X, more = learned
    scores = model.decision_function(X)
    bad = np.c_[scores, scores]
    for wrong in (bad, scores[:, 0] if scores.ndim == 2 else scores[:, None], scores[None]):
        with pytest.raises(InputError, match=r"^scores have shape"):
            model.predict_scores(wrong, **{key: value[: len(wrong)] for key, value in more.items()})
