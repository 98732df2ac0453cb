"""What the cache of specialised kernels goes by."""

import importlib
import sys
import textwrap

from bmrm.kernels.jit import specialised

FILES = {
    "far": """
        from bmrm.kernels.jit import jit

        @jit
        def twice(x):
            return 2.0 * x
        """,
    "near": """
        from bmrm.kernels.jit import jit
        from far import twice

        @jit
        def row(x):
            return twice(x) + 1.0
        """,
}


def template(x):
    return row(x)  # noqa: F821


def name_of(folder, monkeypatch, factor):
    """The name of the kernel when the function that a function calls multiplies by `factor`."""
    for name, text in FILES.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(text).replace("2.0", factor))
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(folder))
    importlib.invalidate_caches()
    kernel = specialised(template, row=importlib.import_module("near").row)
    return kernel.py_func.__name__


def test_a_change_in_what_a_function_calls_makes_another_kernel(tmp_path, monkeypatch):
    first = name_of(tmp_path, monkeypatch, "2.0")
    assert name_of(tmp_path, monkeypatch, "3.0") != first


def test_kernels_are_known_by_their_functions(tmp_path, monkeypatch):
    name_of(tmp_path, monkeypatch, "2.0")
    row = sys.modules["near"].row
    one, other = (specialised(template, row=row) for _ in range(2))
    assert one.py_func.__name__ == other.py_func.__name__
