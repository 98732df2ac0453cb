"""What `python -m release.wheel` says of a wheel; the wheel itself is built and tried by `make wheel-test`."""

import zipfile

import pytest

from release import wheel
from release.project import ROOT

pytestmark = pytest.mark.nightly

KINDS = (".py", ".typed", ".html", ".css")
OURS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "bmrm").rglob("*") if path.suffix in KINDS)


def packed(folder, names):
    path = folder / "bmrm-1.2.3-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return path


def test_a_wheel_of_our_files_has_no_surprises(tmp_path):
    names = [*OURS, "bmrm-1.2.3.dist-info/METADATA", "bmrm-1.2.3.dist-info/licenses/LICENSE"]
    assert list(wheel.surprises(packed(tmp_path, names))) == []


def test_what_is_missing_and_what_is_foreign_is_named(tmp_path):
    names = [
        *(name for name in OURS[1:] if not name.endswith((".typed", "report.html"))),
        "bmrm/removed.py",
        "tests/__init__.py",
        "bmrm-1.2.3.dist-info/METADATA",
    ]
    said = list(wheel.surprises(packed(tmp_path, names)))
    place = "bmrm-1.2.3-py3-none-any.whl"
    assert said == [
        f"{place}: {OURS[0]} is missing",
        f"{place}: bmrm/app/html/report.html is missing",
        f"{place}: bmrm/py.typed is missing",
        f"{place}: bmrm/removed.py is not ours",
        f"{place}: tests/__init__.py is not ours",
    ]


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A PATH of one folder; programs are put there."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def put(name, script):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)

    return put


def test_a_python_is_one_that_starts(path, tmp_path):
    path("python3.11", "exit 0")
    path("python3.12", "exit 127")  # as shims are of versions that are not active
    assert wheel.find_python("3.10") is None
    assert wheel.find_python("3.11") == str(tmp_path / "python3.11")
    assert wheel.find_python("3.12") is None


def test_missing_pythons_are_named_and_a_wheel_that_fails_is_status_1(path, tmp_path, monkeypatch, capsys):
    made = packed(tmp_path, [*OURS])
    monkeypatch.setattr(wheel, "build", lambda folder: made)
    assert wheel.main("dist") == 1
    printed = capsys.readouterr().out
    assert "Python 3.10: skipped, there is no python3.10 on the PATH" in printed
    assert "no Python to try the wheel with" in printed
    path("python3.10", 'test "$1" = -c && exit 0; echo no room; exit 1')
    assert wheel.main("dist") == 1
    printed = capsys.readouterr().out
    assert "Python 3.10: environment failed\nno room" in printed
    assert "no Python to try" not in printed
