"""What the cache of compiled code goes by: the sources that a kernel is made from, wherever they are."""

import importlib
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import bmrm
from bmrm.kernels import sources
from bmrm.kernels.jit import jit, specialised

PACKAGE = Path(bmrm.__file__).parent
FILES = {
    "far": """
        from bmrm.kernels.jit import jit

        WIDTH = 2.0

        @jit
        def widen(x):
            return WIDTH * x
        """,
    "near": """
        from bmrm.kernels.jit import jit, specialised
        from FOLDER.far import WIDTH, widen

        @jit
        def row(x):
            return widen(x) + 1.0

        @jit
        def constant(x):
            return WIDTH

        def template(x):
            return called(x)

        special = specialised(template, called=row)
        """,
}
CALL = """
from FOLDER.near import constant, row, special
from bmrm.kernels.compiling import COMPILING
print(row(1.0), constant(1.0), special(1.0), COMPILING.kernels)
"""


def template(x):
    return row(x)  # noqa: F821


def write(folder, package, width="2.0"):
    for name, text in FILES.items():
        text = textwrap.dedent(text).replace("2.0", width).replace("FOLDER", package)
        path = folder / f"{name}.py"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def call(root, package):
    """What the kernels of the package say in a new process, and how many were compiled."""
    environment = {**os.environ, "PYTHONPATH": str(root), "NUMBA_CACHE_DIR": str(root / "cache")}
    program = CALL.replace("FOLDER", package)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    *numbers, compiled = done.stdout.split()
    return [float(number) for number in numbers], int(compiled)


@pytest.mark.slow
@pytest.mark.parametrize("package", ["bmrm.kernels", "mine"])
def test_a_change_in_another_file_is_seen(tmp_path, package):
    """A constant of an imported module, in a function that calls one of another file and in a specialised one."""
    shutil.copytree(PACKAGE, tmp_path / "bmrm", ignore=shutil.ignore_patterns("__pycache__"))
    folder = tmp_path.joinpath(*package.split("."))
    folder.mkdir(exist_ok=True)
    (folder / "__init__.py").touch()
    write(folder, package)
    assert call(tmp_path, package) == ([3.0, 2.0, 3.0], 4)
    assert call(tmp_path, package) == ([3.0, 2.0, 3.0], 0)
    write(folder, package, width="5.0")
    assert call(tmp_path, package) == ([6.0, 5.0, 6.0], 4)
    write(folder, package)
    assert call(tmp_path, package) == ([3.0, 2.0, 3.0], 0), "what was compiled before is still there"


def test_a_copy_of_the_sources_has_the_same_digest(tmp_path):
    write(tmp_path, "mine")
    first = sources.digest_of(frozenset({tmp_path}))
    for name in ("far.py", "near.py"):
        os.utime(tmp_path / name, (1.0, 1.0))
    sources._digest.cache_clear()
    assert sources.digest_of(frozenset({tmp_path})) == first
    write(tmp_path, "mine", width="3.0")
    sources._digest.cache_clear()
    assert sources.digest_of(frozenset({tmp_path})) != first


def test_kernels_are_known_by_their_functions(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    write(tmp_path / "mine", "mine")
    monkeypatch.syspath_prepend(str(tmp_path))
    near = importlib.import_module("mine.near")
    names = [specialised(template, row=row).py_func.__name__ for row in (near.row, near.row, near.constant)]
    assert names[0] == names[1] != names[2]


def test_functions_without_a_file_are_not_kept():
    """Their caller cannot tell them from others of the same name."""
    scope = {"__name__": "notebook", "jit": jit, "specialised": specialised, "template": template}
    for factor in (2.0, 3.0):
        exec(compile(f"@jit\ndef row(x): return {factor} * x\n", "<cell>", "exec"), scope)
        assert scope["row"](1.0) == factor
        assert specialised(template, row=scope["row"])(1.0) == factor


def test_nor_closures():
    def times(factor):
        @jit
        def row(x):
            return factor * x

        return row

    for factor in (2.0, 3.0):
        assert specialised(template, row=times(factor))(1.0) == factor


def test_where_numba_keeps_other_code_is_left_alone():
    from numba.core import config

    before = config.CACHE_DIR
    jit(template)
    assert before == config.CACHE_DIR
