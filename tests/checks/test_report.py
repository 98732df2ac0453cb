"""Reports, their text, and the command."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import bmrm
from bmrm import extend
from bmrm.checks.laws import shown
from bmrm.cli import main
from bmrm.problem import InputError
from tests.checks import mistakes

LOSS = """
from dataclasses import dataclass
import numpy as np
import bmrm
from bmrm.registry import parameter

@dataclass(frozen=True)
class PseudoHuber(bmrm.RegressionLoss):
    delta: float = parameter(above=0.0, doc="half the width of the parabola", example=2.0)
    def value(self, f, y):
        return self.delta**2 * (np.sqrt(1 + ((f - y) / self.delta) ** 2) - 1)
    def slope(self, f, y):
        return (f - y) / np.sqrt(1 + ((f - y) / self.delta) ** 2)

class Doubled(PseudoHuber):
    def slope(self, f, y):
        return 2 * super().slope(f, y)

class Undecorated(bmrm.RegressionLoss):
    delta: float = 1.0
"""


def check(folder: Path, name: str) -> subprocess.CompletedProcess:
    (folder / "my_losses.py").write_text(LOSS)
    command = [str(Path(sys.executable).parent / "bmrm"), "check", name]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


def test_the_command_finds_a_loss_of_the_folder_one_stands_in(tmp_path):
    done = check(tmp_path, "my_losses:PseudoHuber")
    assert (done.returncode, done.stderr) == (0, "")
    assert "PseudoHuber(delta=2.0)" in done.stdout
    assert "all hold" in done.stdout


def test_the_command_names_law_place_and_amount(tmp_path):
    done = check(tmp_path, "{name: my_losses:Doubled, delta: 0.5}")
    assert done.returncode == 1
    assert "slope: at f = " in done.stdout
    assert "delta=0.5" in done.stdout


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("my_losses:Undecorated", "write @dataclass(frozen=True) before `class Undecorated`"),
        ("my_losses:Nothing", "cannot be imported"),
        ("hinj", "did you mean 'hinge'?"),
        ("{name: huber, delta: -1}", "delta is -1, expected > 0"),
        ("{name: huber, detla: 1}", "did you mean 'delta'?"),
        ("[huber]", "expected a name"),
    ],
)
def test_the_command_refuses_what_is_no_plug_in(tmp_path, monkeypatch, capsys, name, said):
    (tmp_path / "wrong_losses.py").write_text(LOSS)
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["check", name.replace("my_losses", "wrong_losses")]) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.out == ""


def test_the_command_takes_regularizers(capsys):
    assert main(["check", "{name: elastic_net, lambda: 0.1}"]) == 0
    assert "ElasticNet(lam=0.1" in capsys.readouterr().out


def test_a_report_tells_what_was_not_tried():
    report = bmrm.check_loss("least_absolute_deviation")
    assert report.ok
    assert "second derivative" in report.skipped
    assert "not tried: " in str(report)
    report.raise_if_failed()
    wrong = bmrm.check_loss(mistakes.Halved())
    assert wrong.violations[0].law == "slope"
    assert wrong.violations[0].amount > 0.0
    assert wrong.violations[0].point.startswith("f = ")
    assert isinstance(wrong.violations[0].points[0], np.ndarray)
    with pytest.raises(InputError, match="laws broken"):
        wrong.raise_if_failed()


def test_targets_may_be_given():
    report = bmrm.check_loss("poisson", y=[0.0, 3.0, 1.0, 1.0])
    assert report.ok, str(report)
    with pytest.raises(InputError, match="poisson"):
        bmrm.check_loss("poisson", y=[-1.0, 3.0])
    with pytest.raises(InputError, match="start has shape"):
        bmrm.check_risk(mistakes.LeastSquaresRisk(), start=[1.0])
    assert bmrm.check_risk(mistakes.LeastSquaresRisk(), start=np.ones(6), scale=100.0).ok


def test_a_class_is_made_with_examples():
    from bmrm.regularizers.l2 import L2

    assert bmrm.check_regularizer(L2).ok
    made = bmrm.check_regularizer(L2, options={"lambda": 0.3}).subject
    assert made == "L2(lam=0.3, engine='active_set', feature_weights=None, center=None)"
    with pytest.raises(InputError, match="did you mean 'lambda'"):
        bmrm.check_regularizer(L2, options={"lambada": 0.3})


def test_long_arrays_are_shown_short():
    assert shown(np.arange(3.0)) == "(0, 1, 2)"
    assert shown(np.ones(100)) == "(1, 1, 1, 1, 1, 1, ...) of 100 entries, norm 10"
    assert shown(np.array([1.5])) == "1.5"


@dataclass(frozen=True)
class SmoothL1(extend.ScaledBy):
    """lambda sum (sqrt(w^2 + width^2) - width)."""

    width: float = extend.parameter(0.1, doc="half-width of the parabola", above=0.0, example=1.0)
    smooth = True
    factor = 1.0

    def value(self, w):
        return self.lam * float(np.sum(w**2 / (np.hypot(w, self.width) + self.width)))

    def subgradient(self, w):
        return self.lam * w / np.hypot(w, self.width)

    def along(self, w, step):
        def line(ts):
            points = [w + t * step for t in ts]
            return np.array([self.value(one) for one in points]), np.array(
                [self.subgradient(one) @ step for one in points]
            )

        return line

    def hessian_product(self, w, v):
        return self.factor * self.lam * self.width**2 / np.hypot(w, self.width) ** 3 * v


class Curved(SmoothL1):
    factor = 1.1


class Kinked(SmoothL1):
    def subgradient(self, w):
        return self.lam * np.sign(w)

    def value(self, w):
        return self.lam * float(np.abs(w).sum())


@pytest.mark.parametrize("width", [1.0, 1e-2, 1e-4, 1e-5])
def test_curvature_on_a_short_way_is_told_from_kinks_and_mistakes(width):
    assert bmrm.check_regularizer(SmoothL1(0.01, width=width)).ok
    broken = {one.law for one in bmrm.check_regularizer(Curved(0.01, width=width)).violations}
    assert broken == {"second derivative"}
    assert "smoothness" in {one.law for one in bmrm.check_regularizer(Kinked(0.01, width=width)).violations}


def test_a_solver_is_told_that_it_has_no_laws(capsys):
    assert main(["check", "bmrm.solvers.lbfgs:LBFGS"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("bmrm: bmrm.solvers.lbfgs:LBFGS is a solver, expected a loss or a regularizer; ")
