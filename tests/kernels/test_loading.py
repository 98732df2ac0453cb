"""Kernels of the cache: loaded without numba's compiler, where no byte of them has changed."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

FITS = """
import json, sys
import numpy as np
import bmrm
from bmrm.checks.plug_in import instance_of
from bmrm.checks.plug_in import groups_for, targets_for
from bmrm.kernels.compiling import COMPILING
from bmrm.losses import LOSSES

COMPILING.speaks = False
rng, rows = np.random.default_rng(0), 60
X, found = rng.normal(size=(rows, 6)) * (rng.random((rows, 6)) < 0.5), []
for name in sys.argv[1:]:
    loss = instance_of(LOSSES, name)
    model = bmrm.fit(
        X, targets_for(loss, rows), loss=loss, regularizer=bmrm.L2(1e-2), groups=groups_for(loss, rows), threads=1,
        solver="bundle"
    )
    found.append(model.solution.objective.hex())
compiler = [name for name in ("numba.np.linalg", "scipy.linalg") if name in sys.modules]
print(json.dumps([COMPILING.kernels, compiler, found]))
"""


def fits(*losses):
    done = subprocess.run([sys.executable, "-c", FITS, *losses], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.slow
def test_kernels_of_the_cache_are_loaded_without_the_compiler():
    losses = ("hinge", "logistic", "softmax", "roc_area", "chain_crf", "rank_hinge")
    _, _, first = fits(*losses)  # compiles what is not there
    kernels, compiler, again = fits(*losses)
    assert kernels == 0
    assert "numba.np.linalg" not in compiler
    assert again == first


KERNELS = """
    import sys
    from bmrm.kernels.compiling import COMPILING
    from bmrm.kernels.jit import jit

    @jit
    def cube(x):
        return x * x * x

    @jit
    def third(x):
        return cube(x) / 3.0 + 1234.5678

    COMPILING.speaks = False
    print([third(x) for x in map(eval, sys.argv[1:])], COMPILING.kernels)
    """


class Cache:
    """Kernels in a file of their own, and the folder of what is kept of them."""

    def __init__(self, root):
        self.root, self.folder = root, root / "cache"
        (root / "kernels.py").write_text(textwrap.dedent(KERNELS))
        self.environment = {**os.environ, "NUMBA_CACHE_DIR": str(self.folder)}
        self.command = [sys.executable, str(root / "kernels.py")]

    def call(self, *arguments):
        """How many kernels are compiled, and what is printed besides results."""
        arguments = arguments or ("2.0",)
        done = subprocess.run([*self.command, *arguments], env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        results, _, compiled = done.stdout.rpartition(" ")
        assert eval(results) == [eval(x) ** 3 / 3.0 + 1234.5678 for x in arguments]
        return int(compiled), done.stderr

    def files(self, kind):
        return sorted(self.folder.rglob(f"*.{kind}"))


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A cache with both kernels, and the bytes of its files."""
    cache = Cache(tmp_path_factory.mktemp("kept"))
    assert cache.call() == (2, "")
    assert cache.call() == (0, "")
    return cache, {file: file.read_bytes() for kind in ("nbi", "nbc") for file in cache.files(kind)}


def changed(content, place):
    return content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :]


DAMAGES = {
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "one byte short": lambda content: content[:-1],
    "longer": lambda content: content + b"\0",
    "a byte at the beginning": lambda content: changed(content, 0),
    "a byte in the middle": lambda content: changed(content, len(content) // 2),
    "a byte at the end": lambda content: changed(content, len(content) - 1),
    "zeros": lambda content: bytes(len(content)),
    "text": lambda content: b"<html>not found</html>",
    "another pickle": lambda content: __import__("pickle").dumps({"a": 1}),
    "gone": None,
    "a folder": "folder",
}


EACH = """
import importlib, sys
from bmrm.kernels.compiling import COMPILING

COMPILING.speaks = False
for name in sys.argv[1:]:
    before = COMPILING.kernels
    print(name, importlib.import_module(name).third(2.0) == 2.0**3 / 3.0 + 1234.5678, COMPILING.kernels - before)
"""


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    """A cache with the kernels of as many modules as there are damages, by their names, and the bytes of its files."""
    cache = Cache(tmp_path_factory.mktemp("copies"))
    names = {damage.replace(" ", "_"): how for damage, how in DAMAGES.items()}
    for name in names:
        (cache.root / f"{name}.py").write_text(textwrap.dedent(KERNELS).partition("COMPILING.speaks")[0])
    (cache.root / "kernels.py").write_text(EACH)
    assert compiled_of_each(cache, names) == (dict.fromkeys(names, "2"), "")
    return cache, names, {file: file.read_bytes() for kind in ("nbi", "nbc") for file in cache.files(kind)}


def compiled_of_each(cache, names):
    """How many kernels of each module are compiled, and what is said; results are right."""
    done = subprocess.run([*cache.command, *names], env=cache.environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert all(right == "True" for _, right, _ in lines), lines
    return {name: compiled for name, _, compiled in lines}, done.stderr


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_what_is_damaged_is_compiled_again(copies, kind):
    cache, names, whole = copies
    assert compiled_of_each(cache, names) == (dict.fromkeys(names, "0"), "")
    for file in cache.files(kind):
        how = names[file.name.partition(".")[0]]
        file.unlink()
        if how == "folder":  # in the place of which no file can be put
            file.mkdir()
        elif how is not None:
            file.write_bytes(how(whole[file]))
    compiled, said = compiled_of_each(cache, names)
    assert compiled == dict.fromkeys(names, "2")
    assert said.count("\n") == 1
    assert "compiled kernels cannot be kept in" in said
    kept = [name for name, how in names.items() if how != "folder"]
    assert compiled_of_each(cache, kept) == (dict.fromkeys(kept, "0"), "")
    for file in (*cache.files("nbi"), *cache.files("nbc")):
        file.rmdir() if file.is_dir() else file.unlink()
    for file, content in whole.items():
        file.write_bytes(content)


def test_code_of_another_kernel_does_not_run(kept):
    """Two indices in each other's place, and two files of code."""
    cache, whole = kept
    one, other = cache.files("nbc")
    one.write_bytes(whole[other])
    other.write_bytes(whole[one])
    assert cache.call() == (2, "")
    assert cache.call() == (0, "")
    for file, content in whole.items():
        file.write_bytes(content)


def test_processes_that_save_at_the_same_time_lose_nothing(tmp_path):
    """Each compiles for another type: numba alone would give two of them one number, or lose one."""
    cache = Cache(tmp_path)
    cache.call("1.0")
    kinds = ["1", "1.0", "__import__('numpy').float32(1)", "__import__('numpy').int32(1)", "True"]
    runs = [
        subprocess.Popen([*cache.command, kind], env=cache.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for kind in kinds
    ]
    for run in runs:
        assert run.communicate()[1] == b""
        assert run.returncode == 0
    assert cache.call(*kinds) == (0, "")


def test_a_full_disk_is_said_once_and_nothing_ends(tmp_path):
    """A folder that cannot be written any more, once it was chosen."""
    cache = Cache(tmp_path)
    program = (tmp_path / "kernels.py").read_text()
    (tmp_path / "kernels.py").write_text(
        program.replace(
            "COMPILING.speaks",
            "import errno, bmrm.kernels.loading as loading\n"
            "def full(self, *_): raise OSError(errno.ENOSPC, 'No space left on device')\n"
            "loading.CheckedFiles._save_index = full\nCOMPILING.speaks",
        )
    )
    compiled, said = cache.call("1.0", "2")
    assert compiled == 4
    assert said.count("\n") == 1
    assert "No space left on device" in said
