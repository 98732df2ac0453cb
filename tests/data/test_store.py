"""Stores: what is written is read again, alone and in parts; damage is named; larger than memory they are streamed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bmrm
from bmrm.app.convert import convert
from bmrm.cli import main
from bmrm.data.dataset import Dataset
from bmrm.data.digest import digests
from bmrm.data.labels import LabelSets
from bmrm.data.matrix import Csr, Stored, features_of
from bmrm.data.reading import from_one, read, scan
from bmrm.data.store import new_store
from bmrm.data.writers import write_npz, write_svmlight
from bmrm.problem import InputError

RANDOM = np.random.default_rng(11)
SPARSE = RANDOM.normal(size=(60, 7)) * (RANDOM.random((60, 7)) < 0.4)
SPARSE[:, 0] = 1.0


def svmlight(path, first=1, groups=False, plain=0):
    """Rows of svmlight text whose columns count from `first`; the first `plain` have entries of 1 alone."""
    lines = []
    for i, row in enumerate(SPARSE):
        row = (row != 0.0) * 1.0 if i < plain else row
        entries = " ".join(f"{j + first}:{x!r}" for j, x in enumerate(row.tolist()) if x)
        lines.append(f"{'+1' if row[1] > 0 else -1} {f'qid:{i // 4} ' if groups else ''}{entries}\n")
    path.write_text("".join(lines))
    return path


def same(one, other):
    """Whether two data sets are the same to the last bit."""
    assert one.X.shape == other.X.shape
    assert digests(one).tolist() == digests(other).tolist()
    assert one.targets.dtype == other.targets.dtype
    assert one.feature_names == other.feature_names
    assert one.labelled == other.labelled


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize("plain", [0, 25, 60])
@pytest.mark.parametrize("at_a_time", [100, 1 << 20])
def test_text_is_the_same_in_a_store_whatever_it_is_cut_into(first, groups, plain, at_a_time, tmp_path):
    path = svmlight(tmp_path / "a.svm", first, groups, plain)
    found = convert(str(path), tmp_path / "a.store", at_a_time=at_a_time)
    data = read(path)
    assert (found.rows, found.features, found.entries) == (60, 7, data.nnz)
    same(read(tmp_path / "a.store"), data)
    assert isinstance(read(tmp_path / "a.store").X, Csr)
    assert {one.name for one in tmp_path.iterdir()} == {"a.svm", "a.store"}


@pytest.mark.parametrize("kind", ["text labels", "sets", "dense", "float32", "beside", "no labels"])
def test_archives_and_stores_hold_the_same(kind, tmp_path):
    X = {"dense": SPARSE, "float32": SPARSE.astype(np.float32)}.get(kind, Csr(*sparse(SPARSE), SPARSE.shape[1]))
    y = np.where(SPARSE[:, 1] > 0, "yes", "no") if kind == "text labels" else SPARSE[:, 2]
    y = LabelSets.from_rows([{"a", "b"} if x > 0 else {"c"} for x in y]) if kind == "sets" else y
    beside = {"weights": np.arange(60.0), "groups": np.arange(60) // 3, "offset": y} if kind == "beside" else {}
    write_npz(tmp_path / "a.npz", Dataset.from_arrays(X, None if kind == "no labels" else y, **beside))
    convert(str(tmp_path / "a.npz"), tmp_path / "a.store")
    same(read(tmp_path / "a.store"), read(tmp_path / "a.npz"))
    convert(str(tmp_path / "a.store"), tmp_path / "b.npz")
    same(read(tmp_path / "b.npz"), read(tmp_path / "a.npz"))


def sparse(table):
    rows, columns = np.nonzero(table)
    indptr = np.searchsorted(rows, np.arange(len(table) + 1)).astype(np.int64)
    return indptr, columns.astype(np.int32), table[rows, columns]


def test_numpy_alone_reads_a_store(tmp_path):
    convert(str(svmlight(tmp_path / "a.svm")), tmp_path / "a.store")
    indptr, indices, values = (
        np.load(tmp_path / "a.store" / f"{n}.npy", mmap_mode="r") for n in ["indptr", "indices", "values"]
    )
    table = np.zeros(SPARSE.shape)
    table[np.repeat(np.arange(60), np.diff(indptr)), indices] = values
    assert np.array_equal(table, SPARSE)
    assert np.load(tmp_path / "a.store" / "y.npy").tolist() == np.where(SPARSE[:, 1] > 0, 1, -1).tolist()


def test_names_of_columns_and_encoded_ones_are_kept(tmp_path):
    (tmp_path / "a.csv").write_text("age,town,pay\n20,Oslo,high\n30,Bergen,low\n40,Oslo,low\n")
    convert(str(tmp_path / "a.csv"), tmp_path / "a.store")
    assert read(tmp_path / "a.store").feature_names == ("age", "town=Bergen", "town=Oslo")
    left = read(tmp_path / "a.store", format={"name": "store", "ignore": ("age",)})
    assert left.feature_names == ("town=Bergen", "town=Oslo")


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("groups", [False, True])
def test_shares_are_those_of_the_text(parts, stream, groups, tmp_path):
    path = svmlight(tmp_path / "a.svm", groups=groups)
    convert(str(path), tmp_path / "a.store")
    raws = [
        scan(tmp_path / "a.store", format={"name": "store", "stream": stream}, part=k, parts=parts)
        for k in range(parts)
    ]
    extent = np.max([raw.extent for raw in raws], axis=0)
    shares = [raw.dataset(extent) for raw in raws]
    assert all(isinstance(share.X, Stored) is stream for share in shares)
    assert np.concatenate([digests(share) for share in shares]).tolist() == digests(read(path)).tolist()
    whole = [set(share.targets.groups.tolist()) for share in shares] if groups else [set()]
    assert sum(map(len, whole)) == len(set.union(*whole))  # no group in two shares
    assert not from_one(extent)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "least_squares"])
@pytest.mark.parametrize("solver", ["auto", "line_search_bundle", "lbfgs", "newton"])
@pytest.mark.parametrize("full", [False, True])
def test_streamed_stores_train_as_text_does(loss, solver, full, tmp_path):
    if loss == "hinge" and solver in ("lbfgs", "newton"):
        solver = "bundle"
    write_npz(
        tmp_path / "a.npz",
        Dataset.from_arrays(SPARSE if full else Csr(*sparse(SPARSE), 7), np.sign(SPARSE[:, 1] + 0.1)),
    )
    convert(str(tmp_path / "a.npz"), tmp_path / "a.store")
    objectives = []
    for path, format in (("a.npz", "auto"), ("a.store", {"name": "store", "stream": True})):
        data = read(tmp_path / path, format=format)
        risk = bmrm.LinearRisk(data, bmrm.losses.LOSSES.make(loss))
        found = bmrm.minimize(risk, bmrm.L2(1e-2), solver=solver, tolerance=1e-7)
        assert found.status.name == "CONVERGED"
        objectives += [found.objective, found.lower_bound]
    assert max(objectives[1::2]) <= min(objectives[::2]) * (1 + 1e-12)
    assert objectives[0] == pytest.approx(objectives[2], rel=2e-7)


def test_dual_steps_are_told_apart(tmp_path):
    convert(str(svmlight(tmp_path / "a.svm")), tmp_path / "a.store")
    risk = bmrm.LinearRisk(
        read(tmp_path / "a.store", format={"name": "store", "stream": True}), bmrm.losses.LOSSES.make("hinge")
    )
    with pytest.raises(bmrm.IncompatibleError, match="dual_coordinate"):
        bmrm.minimize(risk, bmrm.L2(1e-2), solver="dual_coordinate")


def damaged(store, how):
    header = json.loads((store / "header.json").read_text())
    if how == "no header":
        (store / "header.json").unlink()
    elif how == "no json":
        (store / "header.json").write_text("{")
    elif how == "other json":
        (store / "header.json").write_text('{"format": "bmrm store", "version": 1, "shape": [1, "x"], "arrays": {}}')
    elif how == "newer":
        (store / "header.json").write_text(json.dumps(header | {"version": 99}))
    elif how == "other rows":
        (store / "header.json").write_text(json.dumps(header | {"shape": [59, 7]}))
    elif how == "fewer columns":
        (store / "header.json").write_text(json.dumps(header | {"shape": [60, 3]}))
    elif how == "no array":
        (store / "indices.npy").unlink()
    elif how == "cut":
        (store / "values.npy").write_bytes((store / "values.npy").read_bytes()[:-8])
    elif how == "empty":
        (store / "values.npy").write_bytes(b"")
    elif how == "pickled":
        np.save(store / "values.npy", np.array([{}] * 3, object), allow_pickle=True)
    elif how == "negative":
        changed(store / "indices.npy", -5)
    elif how == "falling":
        changed(store / "indptr.npy", 10**9, 3)
    elif how == "nan":
        changed(store / "values.npy", np.nan, 9)


def changed(path, value, place=1):
    array = np.load(path)
    array[place] = value
    np.save(path, array)


@pytest.mark.parametrize(
    ("how", "told"),
    {
        "no header": "no header.json, expected a store",
        "no json": "not the header",
        "other json": "not the header",
        "newer": "version 99",
        "other rows": "60 rows, header.json says 59",
        "fewer columns": "column",
        "no array": "indices.npy",
        "cut": "cut off",
        "empty": "values.npy",
        "pickled": "pickled objects, which are never read",
        "negative": "column",
        "falling": "indptr",
        "nan": f"row {int(np.searchsorted(np.cumsum((SPARSE != 0.0).sum(axis=1)), 9, side='right'))}: an entry is nan",
    }.items(),
)
@pytest.mark.parametrize("stream", ["false", "true"])
def test_damage_is_one_message(how, told, stream, tmp_path, capsys):
    convert(str(svmlight(tmp_path / "a.svm")), tmp_path / "a.store")
    damaged(tmp_path / "a.store", how)
    format = f"{{name: store, stream: {stream}}}"
    assert main(["info", str(tmp_path / "a.store"), "--format", format]) == 2
    said = capsys.readouterr().err
    assert said.startswith("bmrm")
    assert str(tmp_path / "a.store") in said
    assert told in said
    assert len(said) < 500


def test_other_bytes_are_seen_by_checksums(tmp_path):
    convert(str(svmlight(tmp_path / "a.svm")), tmp_path / "a.store")
    changed(tmp_path / "a.store" / "values.npy", 0.5, 9)
    read(tmp_path / "a.store")
    with pytest.raises(InputError, match=r"values\.npy: the checksum is another"):
        read(tmp_path / "a.store", format={"name": "store", "verify": True})


def test_a_store_appears_whole_or_not_at_all(tmp_path, capsys):
    path = svmlight(tmp_path / "a.svm")
    path.write_text(path.read_text() + "1 2:x\n")
    assert main(["convert", str(path), str(tmp_path / "a.store")]) == 2
    assert "line 61" in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["a.svm"]
    svmlight(path)
    assert main(["convert", str(path), str(tmp_path / "a.store")]) == 0
    assert capsys.readouterr().out.endswith(
        "a.store: 60 rows, 7 features, 201 entries\n".replace("201", str(read(path).nnz))
    )
    assert main(["convert", str(path), str(tmp_path / "a.store")]) == 2
    assert "is there already" in capsys.readouterr().err
    with pytest.raises(InputError, match=r"ends in one of \.store, \.npz"):
        convert(str(path), tmp_path / "a.xlsx")
    with pytest.raises(KeyboardInterrupt), new_store(tmp_path / "b.store"):
        raise KeyboardInterrupt
    assert not [one for one in tmp_path.iterdir() if one.name.endswith(".part")]


def test_svmlight_and_back(tmp_path):
    write_svmlight(tmp_path / "a.svm", Dataset.from_arrays(SPARSE, SPARSE[:, 1]))
    convert(str(tmp_path / "a.svm"), tmp_path / "a.store")
    convert(str(tmp_path / "a.store"), tmp_path / "b.svm.gz")
    same(read(tmp_path / "b.svm.gz"), read(tmp_path / "a.svm"))


@pytest.mark.parametrize("ranks", [1, 3])
def test_training_over_ranks(ranks, tmp_path):
    from bmrm.mpi.launch import needed_mpirun

    convert(str(svmlight(tmp_path / "a.svm")), tmp_path / "a.store")
    objectives = []
    for name in ("a.svm", "a.store"):
        words = [
            "bmrm.cli",
            "train",
            name,
            "--loss",
            "logistic",
            "--lambda",
            "1e-2",
            "--quiet",
            "--output",
            f"runs/{name}",
        ]
        words += ["--tolerance", "1e-8"]
        words += ["--format", "{name: store, stream: true}"] if name == "a.store" else []
        launcher = [needed_mpirun(), "-n", str(ranks)] if ranks > 1 else []
        done = subprocess.run([*launcher, sys.executable, "-m", *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        objectives.append(json.loads((tmp_path / "runs" / name / "summary.json").read_text())["objective"])
    assert objectives[0] == pytest.approx(objectives[1], rel=2e-8)


LIMITED = """
import resource, sys
import numpy, scipy.linalg
from bmrm.cli import main
def taken():
    return sum(1024 * int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData"))
def train(store, loss, *words):
    output = ["--output", f"runs/{store}-{loss}"]
    words = [*output, "--loss", loss, "--tolerance", "1e-3", "--lambda", "1e-3", "--threads", "1", *words]
    assert main(["train", store, *words]) == 0, (store, loss)
for loss, solver in (("hinge", "line_search_bundle"), ("logistic", "newton")):  # those that need no copy of the rows
    words = ("--solver", solver, "--quiet", "--format", "{name: store, stream: true}")
    train("large.store", loss, *words)  # kernels are compiled, libraries are loaded
for factor in (numpy.linalg.cholesky, scipy.linalg.cho_factor):  # each has a BLAS with a buffer of its own
    factor(numpy.eye(500) @ numpy.eye(500))
most = taken() + int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_DATA, (most, most))
try:
    bytearray(2 * int(sys.argv[1]))
    raise SystemExit("there is no limit")
except MemoryError:
    pass
for loss in ("hinge", "logistic"):
    train("large.store", loss)
"""


def generated(path, rows, full):
    """Rows of 240 numbers, or 60 of 3,000 columns, 1,920 or 720 bytes each, with labels of a planted w."""
    random, width = np.random.default_rng(0), 240 if full else 60
    w = random.normal(size=3000)
    with new_store(path) as store:
        for first in range(0, rows, 10_000):
            count = min(10_000, rows - first)
            values = random.normal(size=(count, width))
            indices = np.broadcast_to(np.arange(width), (count, width)) * (1 if full else 50)
            if not full:
                indices = indices + random.integers(0, 50, (count, width))
            scores = (values * w[indices]).sum(axis=1)
            y = np.where((scores > 0.0) == (random.random(count) < 0.9), 1, -1)
            X = Csr(np.arange(0, count * width + 1, width), indices.astype(np.int32).ravel(), values.ravel(), 3000)
            store.add(Dataset.from_arrays(values if full else X, y), np.array([0.0, 240.0 if full else 3000.0]), None)
        store.finish("generated")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux alone tells")
@pytest.mark.parametrize("full", [False, True])
def test_a_store_is_trained_in_less_memory_than_it_takes(full, tmp_path):
    """The limit is one of memory of the process itself; the command finds it, says so, and solvers keep to it."""
    generated(tmp_path / "large.store", 30_000 if full else 80_000, full)
    size = sum(one.stat().st_size for one in (tmp_path / "large.store").glob("[Xiv]*.npy"))
    room = int(0.6 * size)
    words = [sys.executable, "-c", LIMITED, str(room)]
    given_back = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "131072"}  # what is freed is not kept: it would be room
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=given_back)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("of memory are free (ulimit -d): they are read from the file in each pass") == 2
    for loss in ("hinge", "logistic"):
        summary = json.loads((tmp_path / "runs" / f"large.store-{loss}" / "summary.json").read_text())
        assert summary["status"] == "CONVERGED"
        assert summary["relative_gap"] <= 1e-3


def test_pages_of_rows_that_were_read_are_given_up(tmp_path):
    generated(tmp_path / "a.store", 40_000, False)
    asked = []

    class Pages:
        def ahead(self, start, stop):
            asked.append(("ahead", start, stop))

        def behind(self, start, stop):
            asked.append(("behind", start, stop))

    rows = features_of(read(tmp_path / "a.store").X)
    streamed = Stored(rows, Pages())
    window = streamed._window
    chunk = window // 4
    for start in range(0, 40_000, chunk):
        part = streamed.part(start, min(start + chunk, 40_000))
        assert np.array_equal(part.block(np.arange(9)), rows.part(start, start + 9).block(np.arange(9)))
    ahead, behind = ([span for what, *span in asked if what == name] for name in ("ahead", "behind"))
    seen = np.zeros(40_000, int)
    for start, stop in ahead:
        seen[start:stop] += 1
    assert seen[chunk:].tolist() == [1] * (40_000 - chunk)  # the first chunk is read at once
    assert all(stop <= 40_000 - window for _, stop in behind)
    assert max(stop for _, stop in behind) >= 40_000 - 3 * window


def test_an_address_space_that_is_too_small_is_told_of(tmp_path):
    generated(tmp_path / "small.store", 100, True)
    generated(tmp_path / "large.store", 20_000, True)
    text = """
import resource
from bmrm.data.reading import read
from bmrm.problem import InputError
read("small.store")
size = sum(1024 * int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize"))
resource.setrlimit(resource.RLIMIT_AS, (size + (20 << 20),) * 2)
try:
    read("large.store")
except InputError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True)
    assert "exceed the address space of this process, in which mapped files count (ulimit -v)" in done.stdout
    assert "X.npy" in done.stdout
