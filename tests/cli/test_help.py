"""Help, version, and what they import."""

import subprocess
import sys

import pytest

import bmrm
from bmrm.cli import COMMANDS, main, parser
from tests.mpi.launch import work

HEAVY = ("numpy", "scipy", "numba", "pydantic", "rich", "yaml", "sklearn", "matplotlib", "mpi4py", "importlib.metadata")


def ended(*words):
    with pytest.raises(SystemExit) as left:
        main(list(words))
    return left.value.code


def test_help_imports_none_of_the_heavy_packages():
    program = "import sys; import bmrm.cli\ntry: bmrm.cli.main(['--help'])\nexcept SystemExit: pass\n"
    program += f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{program}"],
        capture_output=True,
        text=True,
    )
    assert done.stderr.strip() == "[]"
    assert all(f"  {name} " in done.stdout or f"  {name}\n" in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(command, capsys):
    assert ended(command, "--help") == 0
    printed = capsys.readouterr().out
    assert f"usage: bmrm {command}" in printed
    assert f"examples:\n  bmrm {command}" in printed


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_says_what_it_is(command):
    whole = next(action for action in parser(None)._actions if action.dest == "==SUPPRESS==")
    for action in whole.choices[command]._actions:
        assert action.help
        assert "(any number)" not in action.help


def test_version(capsys):
    assert ended("--version") == 0
    assert capsys.readouterr().out == f"bmrm {bmrm.__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["trian"], "did you mean 'train'"),
        (["--versio"], "did you mean '--version'"),
        (["solvers", "newtn"], "did you mean 'newton'"),
        (["losses", "hinj"], "did you mean 'hinge'"),
        (["measures", "binry"], "did you mean 'binary'"),
        (["warm", "--processes", "0"], "expected a whole number >= 1"),
        (["evaluate", "m", "d", "--folds", "1"], "expected a whole number >= 2"),
        (["evaluate", "m", "d", "--confidence", "7"], "expected a number > 0 and < 1"),
        (["predict"], "required: MODEL, DATA"),
    ],
)
def test_wrong_words_are_one_line_and_status_2(words, said, capsys):
    try:
        status = main(words)
    except SystemExit as end:
        status = end.code
    printed = capsys.readouterr()
    assert (status, printed.out) == (2, "")
    assert said in printed.err
    assert len(printed.err.splitlines()) == 1


def test_without_a_command_there_is_help(capsys):
    assert ended() == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.startswith("usage: bmrm")


@pytest.mark.parametrize("word", ["--C", "--cv", "--lr", "--n", "--epochs"])
def test_no_option_is_suggested_that_is_not_like_the_word(word, capsys):
    assert ended("train", "rows.svm", word, "1") == 2
    said = capsys.readouterr().err
    assert word in said
    assert "did you mean" not in said


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--help"], 0, "usage: bmrm [-h]"),
        (["train", "--help"], 0, "usage: bmrm train"),
        (["--version"], 0, f"bmrm {bmrm.__version__}"),
        (["trian"], 2, "did you mean 'train'"),
        (["train", "a.svm", "--tolerence", "1"], 2, "did you mean '--tolerance'"),
        (["losses", "hinj"], 2, "did you mean 'hinge'"),
        (["train", "sklearn:iris", "--loss", "hinj"], 2, "did you mean 'hinge'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_ranks_say_it_once(words, status, said, tmp_path):
    done = work(3, "bmrm.cli", *words, cwd=tmp_path)
    assert done.returncode == status
    assert (done.stdout + done.stderr).count(said) == 1
