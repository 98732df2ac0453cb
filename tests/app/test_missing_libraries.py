"""Without the libraries of extras: what needs them says in one sentence how to install them; all else works."""

import json
import subprocess
import sys

import pytest

import bmrm
from bmrm.app.installation import in_words, installation
from bmrm.cli import main as command
from bmrm.problem import InputError
from bmrm.run import main
from tests.test_run import FILES, job, summary  # noqa: F401 (a fixture)

NO_MATPLOTLIB = "the picture needs matplotlib, which is not installed; pip install 'bmrm[plot]'"


@pytest.fixture
def missing(monkeypatch):
    """Makes the import of a library fail, also in modules of ours that had it."""

    def hide(library, *modules):
        loaded = [name for name in sys.modules if name.startswith(f"{library}.")]
        for module in (*loaded, *modules):
            monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.setitem(sys.modules, library, None)

    return hide


def test_a_run_without_matplotlib_has_all_files(job, missing, capsys):  # noqa: F811
    missing("matplotlib")
    assert main(["config.yaml", "--quiet"]) == 0
    assert capsys.readouterr().err == ""
    assert {path.name for path in (job / "out").iterdir()} == FILES


def test_a_report_draws_a_png_where_matplotlib_is_there_and_else_says_how(job, missing, capsys, monkeypatch):  # noqa: F811
    assert main(["config.yaml", "--quiet"]) == 0
    assert command(["report", "out", "--png"]) == 0
    picture = job / "out" / "convergence.png"
    assert capsys.readouterr().out == "out/convergence.png\nreport.html\n"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(["config.yaml", "--quiet", "--overwrite", "--set", "seed=1"]) == 0
    assert not picture.exists(), "it was of the results before"
    missing("matplotlib")
    assert command(["report", "out", "--png"]) == 2
    assert capsys.readouterr().err == f"bmrm: {NO_MATPLOTLIB}\n"


def test_a_model_that_cannot_be_drawn_says_why(missing):
    model = bmrm.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], solver="bundle")  # of some iterations
    missing("matplotlib")
    with pytest.raises(InputError) as caught:
        model.plot()
    assert str(caught.value) == NO_MATPLOTLIB
    assert "<svg" in model._repr_html_()


def test_info_without_data_says_what_is_installed(capsys):
    assert command(["info"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"bmrm {bmrm.__version__}\n")
    for words in (f"python {sys.version.split()[0]}", "numpy ", "kernels", "mpirun", "MPI library"):
        assert words in printed
    assert command(["info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == installation()
    assert command(["info", "--format", "csv"]) == 2
    assert "--format is of a data file" in capsys.readouterr().err


def test_info_says_how_to_install_mpirun(monkeypatch):
    monkeypatch.setattr("bmrm.app.installation.mpirun", lambda: None)
    assert in_words(installation())["mpirun"].startswith("no mpirun found; pip install 'bmrm[mpirun]'")


def test_info_names_an_mpi_library_that_cannot_be_loaded(monkeypatch):
    monkeypatch.setenv("MPI4PY_LIBMPI", "/nowhere/libmpi.so")
    facts = installation()
    assert facts["mpi_library"] is None
    assert "pip install 'bmrm[mpirun]'" in in_words(facts)["MPI library"]


def test_tests_of_ranks_are_skipped_without_mpirun(tmp_path, request):
    """With the sentence that installs it, by the hook of our `conftest.py`."""
    (tmp_path / "conftest.py").write_text(
        "import bmrm.mpi.launch\nbmrm.mpi.launch.mpirun = lambda: None\n"
        "from tests.conftest import pytest_runtest_setup\n"
    )
    (tmp_path / "test_ranks.py").write_text("import pytest\n@pytest.mark.mpi\ndef test_ranks():\n    assert False\n")
    words = ["-q", "-rs", "-p", "no:cacheprovider", "-o", "markers=mpi: starts mpirun", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=request.config.rootpath,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    assert "no mpirun found; pip install 'bmrm[mpirun]'" in done.stdout
