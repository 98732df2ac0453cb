"""`python -m release.wheel [FOLDER]`: build the wheel, look into it, and train with it in fresh environments.

Each Python that the classifiers name gets an environment and an empty folder; those that are not on the PATH are
skipped, and named. Exit status 1 if the wheel is wrong or fails, or no Python was found.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

from release.project import ROOT, project, pythons

PROBLEM = ("sklearn:breast_cancer", "--loss", "hinge", "--lambda", "1e-3", "--scale", "standardize", "--bias", "free")
FROM_PYTHON = """
import sys
from sklearn.datasets import load_breast_cancer
import bmrm
assert bmrm.__file__.startswith(sys.prefix), bmrm.__file__
X, y = load_breast_cancer(return_X_y=True)
model = bmrm.fit(X, y, scale="standardize", tolerance=1e-4)
assert model.solution.converged and (model.predict(X) == y).mean() > 0.97
assert bmrm.Classifier("logistic", alpha=1e-3).fit(X / X.max(axis=0), y).score(X / X.max(axis=0), y) > 0.93
"""
SAME = """
import json
one, two = (json.load(open(f"runs/{name}/summary.json")) for name in ("one", "two"))
assert (one["ranks"], two["ranks"]) == (1, 2)
assert max(one["lower_bound"], two["lower_bound"]) <= min(one["objective"], two["objective"])
"""


def main(folder: str) -> int:
    """Build and try; prints a line for each step, with its seconds.

    Parameters
    ----------
    folder : where the wheel and the source distribution are put.
    """
    about = project()
    wheel = build(Path(folder).resolve())
    wrong = list(surprises(wheel))
    print("\n".join(wrong) or f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, holds bmrm and nothing else")
    tried = 0
    for version in pythons(about):
        python = find_python(version)
        if python is None:
            print(f"Python {version}: skipped, there is no python{version} on the PATH")
            continue
        tried += 1
        wrong += try_wheel(wheel, version, python, about["version"])
    if not tried:
        print("no Python to try the wheel with")
    return 1 if wrong or not tried else 0


def build(folder: Path) -> Path:
    """The wheel, built from the source distribution, so that nothing left in `build/` gets into it."""
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return next(folder.glob(f"bmrm-{project()['version']}-*.whl"))


def surprises(wheel: Path) -> Iterator[str]:
    """Files of `bmrm/` that are missing, and files that are not of `bmrm/` or about it."""
    held = set(ZipFile(wheel).namelist())
    kinds = {".py", ".typed", ".html", ".css"}
    ours = {str(path.relative_to(ROOT)) for path in (ROOT / "bmrm").rglob("*") if path.suffix in kinds}
    about = "-".join(wheel.name.split("-")[:2]) + ".dist-info/"
    yield from (f"{wheel.name}: {name} is missing" for name in sorted(ours - held))
    yield from (f"{wheel.name}: {name} is not ours" for name in sorted(held - ours) if not name.startswith(about))


def find_python(version: str) -> str | None:
    """The interpreter on the PATH; None where there is none, or only a shim that starts nothing."""
    found = shutil.which(f"python{version}")
    if found is None or subprocess.run([found, "-c", ""], capture_output=True).returncode:
        return None
    return found


def try_wheel(wheel: Path, name: str, python: str, version: str) -> list[str]:
    """Install in a fresh environment and train in an empty folder, alone and on two ranks; what failed, if anything."""
    with tempfile.TemporaryDirectory(prefix=f"bmrm-{name}-") as folder:
        empty = Path(folder) / "empty"
        empty.mkdir()
        bin = f"{folder}/env/bin"
        train = [f"{bin}/bmrm", "train", *PROBLEM, "--quiet", "--output"]
        steps = {
            "environment": [python, "-m", "venv", f"{folder}/env"],
            "install": [f"{bin}/pip", "install", "--quiet", f"{wheel}[mpirun]"],
            "dependencies": [f"{bin}/pip", "check"],
            "version": ["sh", "-c", f'test "$({bin}/bmrm --version)" = "bmrm {version}"'],
            "first run": [*train, "runs/one"],
            "second run": [*train, "runs/one"],
            "from Python": [f"{bin}/python", "-c", FROM_PYTHON],
            "two ranks": [f"{bin}/mpirun", "-n", "2", *train, "runs/two"],
            "same result": [f"{bin}/python", "-c", SAME],
        }
        for step, command in steps.items():
            begin = time.perf_counter()
            done = subprocess.run(command, cwd=empty, env=_environment(), text=True, capture_output=True)
            seconds = time.perf_counter() - begin
            print(f"Python {name}: {step} {'failed' if done.returncode else f'{seconds:.1f} s'}", flush=True)
            if done.returncode:
                print(done.stdout + done.stderr)
                return [f"Python {name}: {step}"]
    return []


def _environment() -> dict[str, str]:
    """Ours, without what would show the checkout or another environment to the wheel."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "NUMBA_CACHE_DIR", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if name not in hidden}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2] or ["dist"]))
