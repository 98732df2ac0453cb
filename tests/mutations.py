"""Damaged and hostile files at every door: read, or refused by an `InputError`; no other error, no crash, no hang.

    python -m tests.mutations --inputs 200000 --seed 7

Input k of a seed is always the same: `--only DOOR --first K --inputs 1` repeats one. The work is done by processes, the
death of one is a fault as an error is; so is an input that takes longer than `PATIENCE` seconds.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tokenize
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from scipy.sparse import csr_array

import bmrm
from bmrm.app.config.config import load_settings
from bmrm.app.description import described
from bmrm.app.path_kept import KeptPoints
from bmrm.app.pipeline.checkpoint import Checkpoint, read_start
from bmrm.app.project import Projection, fitted_to
from bmrm.cli import main as command
from bmrm.data.archives import read_arrays, write_arrays
from bmrm.data.reading import read
from bmrm.data.store import HEADER, checksum
from bmrm.data.thesis_writers import write_harwell_boeing, write_june, write_spardat
from bmrm.data.writers import write_npz, write_svmlight
from bmrm.kernels.jit import jit
from bmrm.kernels.loading import KernelCache
from bmrm.problem import BmrmError, Start

Random = np.random.Generator
PATIENCE = 20.0
"""Seconds that an input may take."""
WORDS = [
    b"nan",
    b"inf",
    b"-1",
    b"1e400",
    b"-0",
    b"9" * 400,
    b"99999999999999999999",
    b"4294967296",
    b"1e-400",
    b"0x1p3",
]
WORDS += [
    b"\xef\xbb\xbf",
    b"\0",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"\xc2\xa0",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\x1a",
    b"#",
    b"qid:",
]
WORDS += [
    b'"',
    b"'",
    b":",
    b",",
    b";",
    b"|",
    b"\t",
    b" ",
    b"{",
    b"}",
    b"%x[0,0]",
    b"__proto__",
    b"NA",
    b"1_000",
    b"1,5",
]
VALUES: list[Any] = [None, True, -1, 0, 2**70, 1e308, 5e-324, -0.5, "", "x", "\0", "9" * 5000, "hinge", "../x", [], {}]
VALUES += [[1, [2]], {"name": "l2"}, {"name": 5}, "os:system", "é\u2028", ["a"] * 50, 10**300]
ROWS = 20
STORED = (HEADER, "indptr.npy", "indices.npy", "values.npy", "y.npy", "groups.npy")
"""Files of a store."""


def damaged(content: bytes, random: Random) -> bytes:
    """The bytes with a few changed, taken out, doubled or cut off."""
    data = bytearray(content)
    for _ in range(random.integers(1, 4)):
        at = int(random.integers(len(data))) if data else 0
        kind = random.integers(6)
        if kind == 0 and data:
            data[at] ^= 1 << int(random.integers(8))
        elif kind == 1 and data:
            data[at] = int(random.integers(256))
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            del data[at : at + int(random.integers(1, 9))]
        elif kind == 4:
            data[at:at] = data[at : at + int(random.integers(1, 40))]
        else:
            data[at : at + 4] = random.choice([b"\xff\xff\xff\x7f", b"\0\0\0\0", b"1e99", b"9999", b"\n\n,:"])
    return bytes(data)


def rewritten(content: bytes, random: Random) -> bytes:
    """A text with words put in or in place of others, and lines taken out, doubled or exchanged."""
    lines = content.split(b"\n")
    for _ in range(random.integers(1, 5)):
        k, j = (int(random.integers(len(lines))) for _ in range(2))
        word = WORDS[random.integers(len(WORDS))]
        kind = random.integers(5)
        if kind == 0:
            at = int(random.integers(len(lines[k]) + 1))
            lines[k] = lines[k][:at] + word + lines[k][at:]
        elif kind == 1:
            parts = lines[k].replace(b",", b" , ").replace(b":", b" : ").split(b" ")
            parts[random.integers(len(parts))] = word
            lines[k] = b" ".join(parts).replace(b" , ", b",").replace(b" : ", b":")
        elif kind == 2:
            lines[k], lines[j] = lines[j], lines[k]
        elif kind == 3 and len(lines) > 1:
            del lines[k]
        else:
            lines.insert(k, lines[j])
    return b"\n".join(lines)


def unsealed(content: bytes, random: Random) -> bytes:
    """An archive whose members are damaged though their checksums are right."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(stream, "w") as new:
        for name in old.namelist():
            inside = old.read(name)
            new.writestr(name, damaged(inside, random) if random.random() < 0.5 else inside)
    return stream.getvalue()


def replaced(value: Any, random: Random) -> Any:
    """A tree of JSON in which a node is another one, is gone, or has another name."""
    if isinstance(value, dict) and value and random.random() < 0.8:
        key = list(value)[random.integers(len(value))]
        kind = random.random()
        if kind < 0.1:
            return {k: v for k, v in value.items() if k != key}
        if kind < 0.15:
            return {f"{k}x" if k == key else k: v for k, v in value.items()}
        return {**value, key: replaced(value[key], random)}
    if isinstance(value, list) and value and random.random() < 0.5:
        at = int(random.integers(len(value)))
        return [*value[:at], replaced(value[at], random), *value[at + 1 :]]
    return VALUES[random.integers(len(VALUES))]


def another(array: np.ndarray, random: Random) -> np.ndarray:
    """An array of another type, shape or content."""
    kind = random.integers(9)
    if kind == 0:
        return (
            array.astype(random.choice(["f4", "i8", "u1", "c16", "?"]))
            if array.dtype.kind in "fiub"
            else np.zeros(0, array.dtype)
        )
    if kind == 1:
        return np.array(["a", "b"] * (array.size // 2 or 1))
    if kind == 2:
        return array.reshape(-1)[: array.size // 2]
    if kind == 3:
        return np.stack([array, array])
    if kind == 4:
        return array.reshape(-1)[0] if array.size else np.array(0.0)
    if kind == 5 and array.dtype.kind == "f":
        return np.full(array.shape, random.choice([np.nan, np.inf, 1e300, 0.0, -1.0]))
    if kind == 6 and array.dtype.kind in "iu":
        return array + random.choice([1, -1, 100])
    if kind == 7:
        return np.concatenate([array.reshape(-1)] * 2)
    return np.zeros(0, array.dtype)


def inconsistent(content: bytes, random: Random) -> bytes:
    """An archive of valid arrays and valid JSON that do not fit one another."""
    members = dict(read_arrays(io.BytesIO(content)))
    for _ in range(random.integers(1, 3)):
        name = list(members)[random.integers(len(members))]
        if members[name].dtype.kind == "U" and members[name].ndim == 0 and random.random() < 0.9:
            with suppress(ValueError):
                members[name] = np.array(json.dumps(replaced(json.loads(str(members[name])), random)))
        elif random.random() < 0.1:
            del members[name]
        else:
            members[name] = another(members[name], random)
        if not members:
            break
    stream = io.BytesIO()
    write_arrays(stream, members)
    return stream.getvalue()


def stacked(content: bytes, random: Random) -> bytes:
    """A valid array that is another."""
    stream = io.BytesIO()
    np.save(stream, another(np.load(io.BytesIO(content)), random))
    return stream.getvalue()


def configured(content: bytes, random: Random) -> bytes:
    """A config with another value at some place."""
    tree = yaml.safe_load(content)
    for _ in range(random.integers(1, 3)):
        tree = replaced(tree, random)
    return yaml.safe_dump(tree, allow_unicode=True).encode("utf-8", "surrogatepass")


def _twice(x: np.ndarray) -> float:
    total = 0.0
    for k in range(x.size):
        total += 2.0 * x[k]
    return total


def originals(folder: Path) -> None:
    """A file of every kind."""
    random = np.random.default_rng(0)
    X = np.round(random.normal(size=(ROWS, 3)), 2)
    y = np.where(X[:, 0] > 0, "yes", "no")
    numbers = bmrm.Dataset.from_arrays(X, (y == "yes").astype(int), groups=np.repeat(np.arange(5), 4))
    for name in ("a.svm", "a.svm.gz", "a.svm.bz2", "a.svm.xz"):
        write_svmlight(folder / name, numbers)
    write_npz(folder / "a.npz", bmrm.Dataset.from_arrays(X, y, np.ones(ROWS)))
    np.savez_compressed(folder / "packed.npz", X=X, y=y)
    np.save(folder / "a.npy", np.column_stack((X, X[:, 0] > 0)))
    table = "".join(f"{p},{q},{r},{s}\n" for (p, q, r), s in zip(X, y))
    (folder / "a.csv").write_text("a,b,c,y\n" + table)
    (folder / "bare.csv").write_text(table)
    (folder / "a.conll").write_text("He PRP B-NP\nruns VBZ B-VP\n\nShe PRP B-NP\nsits VBZ B-VP\n. . O\n\n")
    (folder / "a.crfsuite").write_text("B\tw=He\tp=PRP:0.5\nI\tw=runs\n\nB\tw=She\tp=a\\:b:2\n")
    links = bmrm.Dataset.from_arrays((X > 0).astype(float), (y == "yes").astype(int))
    write_spardat(folder / "a.spardat", links)
    write_june(folder / "a.factors.ssv", links)
    (folder / "outputs.csv").write_bytes((folder / "a.activations.ssv").read_bytes())
    _command("convert", str(folder / "a.svm"), str(folder / "a.store"))
    for name in STORED:
        (folder / name).write_bytes((folder / "a.store" / name).read_bytes())
    write_harwell_boeing(folder / "a.hb", bmrm.Dataset.from_arrays(X, X[:, 0]))
    fitted_to(str(folder / "a.svm"), components=2, scale="standardize")[0].write(folder / "map.npz")
    mapped = bmrm.fit(X, y, lam=0.1, features={"name": "svd", "rank": 2})
    mapped.save(folder / "features.npz")
    KeptPoints(folder, True).put(0.1, bmrm.fit(X, y, lam=0.1).solution)
    next(folder.glob("?" * 32 + ".npz")).rename(folder / "point.npz")
    with suppress(ImportError):
        import pyarrow as arrow
        from pyarrow import feather, parquet

        frame = arrow.table({"a": X[:, 0], "b": X[:, 1], "label": arrow.array(y)})
        parquet.write_table(frame, folder / "a.parquet")
        feather.write_feather(frame, str(folder / "a.arrow"), compression="uncompressed")
    named = type("Frame", (), {"columns": ["a", "b", "c"], "to_numpy": lambda self: X})()
    model = bmrm.fit(named, y, regularizer=bmrm.L2(0.1), bias="regularized")
    model.save(folder / "model.npz")
    bmrm.fit(X, random.integers(0, 4, ROWS), loss="softmax", lam=0.1).save(folder / "softmax.npz")
    bmrm.fit(X, random.integers(0, 4, ROWS), loss="ordinal_thresholds", lam=0.1).save(folder / "ordinal.npz")
    bmrm.fit(X, random.integers(0, 2, (ROWS, 3)), loss="multilabel_hinge", lam=0.1).save(folder / "sets.npz")
    start = Start(model.solution.w, 0.1, model.solution.history, {"rows_alpha": np.ones(ROWS)})
    with open(folder / "checkpoint.npz", "wb") as stream:
        Checkpoint(start, {"data": {"rows": ROWS, "order": "x"}}, 0).write(stream, model)
    crf = ("a.conll", "--format", "conll", "--loss", "chain_crf", "--lambda", "0.1", "--output", "crf", "--quiet")
    assert command(["train", *crf]) == 0
    (folder / "crf" / "model.npz").rename(folder / "text.npz")
    run = ("a.svm", "--loss", "logistic", "--lambda", "0.1", "--solver", "lbfgs", "--output", "run", "--quiet")
    assert command(["train", *run, "--max-iterations", "2", "--tolerance", "1e-9"]) == 3
    (folder / "config.yaml").write_bytes((folder / "run" / "config.yaml").read_bytes())
    (folder / "resumed.npz").write_bytes((folder / "run" / "checkpoint.npz").read_bytes())
    kernel = jit(_twice)
    kernel._cache = KernelCache(_twice, folder, bare=True)
    kernel(np.ones(3))
    code = next(folder.rglob("*.nbc"))
    (folder / "kernel.nbc").write_bytes(code.read_bytes())
    (folder / "kernel.nbi").write_bytes(next(folder.rglob("*.nbi")).read_bytes())
    (folder / "kernel.json").write_text(json.dumps({"nbc": str(code), "nbi": str(next(folder.rglob("*_twice*.nbi")))}))


def _read(format: Any = "auto") -> Callable[[Path], None]:
    def door(path: Path) -> None:
        read(path, format=format)

    return door


def _model(path: Path) -> None:
    """Everything that is done with a model: each is refused by itself."""
    model = bmrm.load_model(path)
    X = csr_array((2, model.dim))
    groups = np.zeros(2, np.int64)
    uses: list[Callable[[], Any]] = [
        lambda: repr(model),
        model._repr_html_,
        lambda: described(model, 3),
        lambda: model.top_weights(3),
        lambda: model.decision_function(X),
        lambda: model.predict(X, groups),
        lambda: model.predict_proba(X, groups),
        lambda: model.evaluate(X, model.labels[[0, -1]] if model.labels.size else np.zeros(2), groups=groups),
        lambda: model.save(path.with_suffix(".again")),
    ]
    for use in uses:
        with suppress(BmrmError):
            use()


def _checkpoint(path: Path) -> None:
    read_start(path)


def _resume(path: Path) -> None:
    """A run that goes on from the file."""
    folder = Path("resumed")
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    (folder / "checkpoint.npz").write_bytes(path.read_bytes())
    words = ["a.svm", "--loss", "logistic", "--lambda", "0.1", "--solver", "lbfgs", "--output", "resumed", "--quiet"]
    _command("train", *words, "--max-iterations", "4", "--tolerance", "1e-9", "--resume")


def _command(*words: str) -> None:
    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(io.StringIO()):
        status = command(list(words))
    text = said.getvalue()
    assert "Traceback" not in text, text
    assert status in (0, 1, 2, 3), status
    assert max(map(len, text.splitlines()), default=0) < 2000, f"a line of {len(text)} characters"


def _outputs(path: Path) -> None:
    read("a.factors.ssv", format={"name": "june", "outputs": str(path)})


def _store(path: Path) -> None:
    """A store of which one file is another: read whole and streamed; in half of the inputs the header says the same."""
    folder = path.with_name("b.store")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree("a.store", folder)
    content = path.read_bytes()
    (folder / path.name).write_bytes(content)
    if sum(content) % 2:
        with suppress(ValueError, EOFError, SyntaxError, tokenize.TokenError):
            array = np.load(path, allow_pickle=False)
            header = json.loads((folder / HEADER).read_text())
            header["arrays"][path.stem] |= {
                "shape": array.shape,
                "dtype": array.dtype.str,
                "sha256": checksum(path),
            }
            (folder / HEADER).write_text(json.dumps(header))
    with suppress(BmrmError):
        read(folder, format="store")
    words = ["--loss", "logistic", "--lambda", "0.1", "--solver", "lbfgs", "--max-iterations", "2", "--quiet"]
    _command("train", str(folder), "--format", "{name: store, stream: true}", "--output", "of_store", *words)


def _converted(path: Path) -> None:
    """A table that is made a store part by part."""
    store = path.with_name("c.store")
    shutil.rmtree(store, ignore_errors=True)
    _command("convert", str(path), str(store))
    if store.exists():
        try:
            read(store, format="store")
        except BmrmError as error:
            raise AssertionError(f"a store of our own: {error}") from error


def _map(path: Path) -> None:
    """A map that is taken, and what it makes of rows."""
    projection = Projection.load(path)
    assert projection.apply(projection.read("a.svm")).rows == ROWS


def _point(path: Path) -> None:
    """A damaged point is none."""
    kept = KeptPoints(path.parent, True)
    name = kept._digest(0.1) + ".npz"
    path.rename(path.with_name(name))
    for solution in kept.first([0.1], 3):
        assert repr(solution)


def _config(path: Path) -> None:
    load_settings(str(path)).plain()


def _kernel(path: Path) -> None:
    """A damaged cache gives what was saved, or nothing."""
    from numba.core import types
    from numba.core.registry import cpu_target

    with open("kernel.json") as file:
        places = json.load(file)
    kind = path.suffix[1:]
    for each, place in places.items():
        Path(place).write_bytes(path.read_bytes() if each == kind else Path(f"kernel.{each}").read_bytes())
    cache = KernelCache(_twice, Path.cwd(), bare=True)
    found = cache.load_overload((types.Array(types.float64, 1, "C"),), cpu_target.target_context)
    assert found is None or path.read_bytes() == Path(f"kernel.{kind}").read_bytes()


Change = Callable[[bytes, Random], bytes]
TEXT: tuple[Change, ...] = (damaged, rewritten, rewritten)
ARCHIVE: tuple[Change, ...] = (damaged, unsealed, inconsistent, inconsistent)
DOORS: dict[str, tuple[str, Callable[[Path], None], tuple[Change, ...]]] = {
    "svmlight": ("a.svm", _read(), TEXT),
    "gzip": ("a.svm.gz", _read(), (damaged,)),
    "bzip2": ("a.svm.bz2", _read(), (damaged,)),
    "xz": ("a.svm.xz", _read(), (damaged,)),
    "csv": ("a.csv", _read({"name": "csv", "label": "y"}), TEXT),
    "csv without a header": ("bare.csv", _read(), TEXT),
    "conll": ("a.conll", _read("conll"), TEXT),
    "crfsuite": ("a.crfsuite", _read("crfsuite"), TEXT),
    "spardat": ("a.spardat", _read("spardat"), TEXT),
    "june": ("a.factors.ssv", _read({"name": "june", "outputs": "outputs.csv"}), TEXT),
    "outputs of june": ("outputs.csv", _outputs, TEXT),
    "harwell_boeing": ("a.hb", _read("harwell_boeing"), TEXT),
    "map of bmrm project": ("map.npz", _map, ARCHIVE),
    "model of features": ("features.npz", _model, ARCHIVE),
    "point of a path": ("point.npz", _point, ARCHIVE),
    "header of a store": (HEADER, _store, (*TEXT, configured, configured)),
    **{f"{name} of a store": (name, _store, (damaged, stacked, stacked)) for name in STORED[1:]},
    "svmlight into a store": ("a.svm", _converted, TEXT),
    "csv into a store": ("a.csv", _converted, TEXT),
    "parquet into a store": ("a.parquet", _converted, (damaged,)),
    "npy": ("a.npy", _read(), (damaged,)),
    "npz": ("a.npz", _read(), ARCHIVE),
    "packed npz": ("packed.npz", _read(), ARCHIVE),
    "parquet": ("a.parquet", _read(), (damaged,)),
    "arrow": ("a.arrow", _read(), (damaged,)),
    "model": ("model.npz", _model, ARCHIVE),
    "model of classes": ("softmax.npz", _model, ARCHIVE),
    "model of grades": ("ordinal.npz", _model, ARCHIVE),
    "model of sets": ("sets.npz", _model, ARCHIVE),
    "model of text": ("text.npz", _model, ARCHIVE),
    "checkpoint": ("checkpoint.npz", _checkpoint, ARCHIVE),
    "resume": ("resumed.npz", _resume, ARCHIVE),
    "config": ("config.yaml", _config, (*TEXT, configured, configured, configured)),
    "kernel index": ("kernel.nbi", _kernel, (damaged,)),
    "kernel code": ("kernel.nbc", _kernel, (damaged,)),
}
"""File, what is done with it, and how it is changed."""


def doors_here(folder: Path) -> list[str]:
    """Those whose libraries are installed."""
    return [name for name, (file, _, _) in DOORS.items() if (folder / file).exists()]


def attempt(door: str, seed: int, k: int, place: Path) -> str:
    """Input k at a door; the traceback where it is neither taken nor refused, else the empty string."""
    file, use, changes = DOORS[door]
    random = np.random.default_rng([seed, k])
    content = Path(file).read_bytes()
    path = place / file
    path.write_bytes(changes[random.integers(len(changes))](content, random))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            use(path)
    except BmrmError as error:
        return f"a message of {len(str(error))} characters: {error}" if len(str(error)) > 2000 else ""
    except BaseException:
        return traceback.format_exc()
    return ""


def _work(folder: str, seed: int, first: int, inputs: int, only: str) -> None:
    """A worker: a line before each input, and one for each fault."""
    os.chdir(folder)
    doors = [only] if only else doors_here(Path())
    with tempfile.TemporaryDirectory(dir=".") as place:
        for k in range(first, first + inputs):
            door = doors[k % len(doors)]
            print(json.dumps({"at": k, "door": door}), flush=True)
            fault = attempt(door, seed, k, Path(place).resolve())
            if fault:
                print(json.dumps({"at": k, "door": door, "fault": fault}), flush=True)


def _watched(folder: str, seed: int, first: int, inputs: int, only: str) -> Iterator[tuple[int, str, str]]:
    """(k, door, fault) of the inputs of a worker, which is started again behind one that ended it or took too long."""
    end = first + inputs
    while first < end:
        words = [folder, str(seed), str(first), str(end - first), only]
        worker = subprocess.Popen(
            [sys.executable, "-m", "tests.mutations", "--work", *words], stdout=subprocess.PIPE, text=True
        )
        lines: queue.Queue[str | None] = queue.Queue()

        def listen(worker: subprocess.Popen[str] = worker, lines: queue.Queue[str | None] = lines) -> None:
            assert worker.stdout is not None
            for line in worker.stdout:
                lines.put(line)
            lines.put(None)

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        last: dict[str, Any] = {"at": first - 1, "door": "start"}
        fault = ""
        while True:
            try:
                line = lines.get(timeout=PATIENCE if last["at"] >= first else 10 * PATIENCE)
            except queue.Empty:
                fault = f"not back after {PATIENCE} s"
                worker.kill()
                break
            if line is None:
                break
            with suppress(ValueError):  # what a library prints
                last = json.loads(line)
                if "fault" in last:
                    yield last["at"], last["door"], last["fault"]
        status = worker.wait()
        listener.join()
        assert worker.stdout is not None
        worker.stdout.close()
        if status == 0 and not fault:
            return
        yield last["at"], last["door"], fault or f"the process ended with {status}"
        first = last["at"] + 1


def run(inputs: int, seed: int, first: int = 0, only: str = "", processes: int = 1) -> list[tuple[int, str, str]]:
    """The faults of so many inputs."""
    found: list[tuple[int, str, str]] = []
    with ExitStack() as stack:  # a folder for each process: doors write into it
        folders = [stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(processes)]
        before = os.getcwd()
        for folder in folders:
            os.chdir(folder)
            try:
                originals(Path(folder))
            finally:
                os.chdir(before)
        each = -(-inputs // processes)

        def share(number: int) -> None:
            begin = first + number * each
            found.extend(_watched(folders[number], seed, begin, min(each, max(0, first + inputs - begin)), only))

        threads = [threading.Thread(target=share, args=(number,)) for number in range(processes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return found


def main() -> int:
    if sys.argv[1:2] == ["--work"]:
        folder, seed, first, inputs, only = sys.argv[2:7]
        _work(folder, int(seed), int(first), int(inputs), only)
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="", choices=["", *DOORS])
    parser.add_argument("--processes", type=int, default=1)
    parsed = parser.parse_args()
    begin = time.monotonic()
    found = run(parsed.inputs, parsed.seed, parsed.first, parsed.only, parsed.processes)
    kinds = Counter((door, fault.strip().splitlines()[-1][:160]) for _, door, fault in found)
    told: set[tuple[str, str]] = set()
    for k, door, fault in found:
        kind = door, fault.strip().splitlines()[-1][:160]
        if kind not in told:
            told.add(kind)
            print(f"--- {door}, input {k}, {kinds[kind]} of this kind\n{fault}")
    print(f"{parsed.inputs} inputs, seed {parsed.seed}, {len(found)} faults, {time.monotonic() - begin:.0f} s")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
