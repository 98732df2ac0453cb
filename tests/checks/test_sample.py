"""What `fit` and `minimize` refuse at their start, and that they refuse nothing else."""

import time

import numpy as np
import pytest

import bmrm
from bmrm.problem import InputError
from bmrm.solvers.bundle import Bundle
from tests.checks import mistakes
from tests.checks.mistakes import X, Y

L2 = bmrm.L2(1e-2)


def named(pairs):
    return pytest.mark.parametrize(("brought", "said"), pairs, ids=lambda one: "" if isinstance(one, str) else None)


@named(mistakes.LOSSES)
def test_a_wrong_loss_is_refused_with_its_law(brought, said):
    with pytest.raises(InputError, match=f"^loss .*{said.removeprefix('loss ')}"):
        bmrm.fit(X, Y, loss=brought, regularizer=L2)


@named(mistakes.LOSSES[:-1])
def test_the_check_of_a_loss_finds_it_too(brought, said):
    report = bmrm.check_loss(brought)
    assert not report.ok
    law = said.partition(":")[0]
    if ":" in said:
        assert law in [violation.law for violation in report.violations]
    with pytest.raises(InputError, match=f"{type(brought).__name__}"):
        report.raise_if_failed()


@named(mistakes.LOSSES[:5])
def test_a_risk_made_of_a_wrong_loss_is_refused_by_minimize(brought, said):
    risk = bmrm.LinearRisk(bmrm.Dataset.from_arrays(X, Y), brought)
    with pytest.raises(InputError, match=said):
        bmrm.minimize(risk, L2)


@named(mistakes.RISKS)
def test_a_wrong_risk_is_refused_with_its_law(brought, said):
    with pytest.raises(InputError, match=f"^risk .*{said}"):
        bmrm.minimize(brought, L2)


@named(mistakes.RISKS)
def test_the_check_of_a_risk_finds_it_too(brought, said):
    report = bmrm.check_risk(brought)
    assert not report.ok
    assert said.partition(":")[0] in str(report) or "members" in str(report)


@named(mistakes.RISKS[:6])
def test_a_solver_called_directly_looks_at_results(brought, said):
    with pytest.raises(InputError, match=f"^risk {type(brought).__name__}, .*{said.partition('.*')[2]}"):
        Bundle().minimize(brought, L2)


@named(mistakes.REGULARIZERS)
def test_a_wrong_regularizer_is_refused_with_its_law(brought, said):
    for run in (
        lambda: bmrm.fit(X, Y, loss="huber", regularizer=brought, solver="lbfgs"),
        lambda: bmrm.minimize(mistakes.LeastSquaresRisk(), brought, "lbfgs"),
    ):
        with pytest.raises(InputError, match=said):
            run()
    assert not bmrm.check_regularizer(brought).ok


@named(mistakes.SOLVERS)
def test_a_solver_that_returns_no_solution_is_told_so(brought, said):
    for run in (
        lambda: bmrm.fit(X, Y, loss="huber", regularizer=L2, solver=brought),
        lambda: bmrm.minimize(mistakes.LeastSquaresRisk(), L2, brought),
    ):
        with pytest.raises(InputError, match=said):
            run()


def test_what_is_right_passes():
    assert bmrm.check_loss(mistakes.PseudoHuber()).ok
    assert bmrm.check_regularizer(mistakes.Ridge()).ok
    for risk in (mistakes.LeastSquaresRisk(), mistakes.InFloat32()):
        assert bmrm.check_risk(risk).ok, str(bmrm.check_risk(risk))
        assert bmrm.minimize(risk, L2, tolerance=1e-4).converged
    for loss in (mistakes.PseudoHuber(), mistakes.PseudoHuber(delta=1e-3)):
        assert bmrm.fit(
            X, Y, loss=loss, regularizer=mistakes.Ridge(0.1), solver="lbfgs", tolerance=1e-4
        ).solution.converged


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1e4, 1e8])
def test_honest_risks_of_any_scale_pass(scale):
    class Scaled(mistakes.LeastSquaresRisk):
        def value_and_subgradient(self, w):
            r = scale * (X @ w) - Y / scale
            return 0.5 * float(r @ r), scale * (X.T @ r)

    report = bmrm.check_risk(Scaled())
    assert report.ok, str(report)
    assert bmrm.minimize(Scaled(), L2, max_iterations=3).iterations <= 3


def test_a_slow_risk_is_evaluated_once_only():
    class Slow(mistakes.LeastSquaresRisk):
        calls = 0

        def value_and_subgradient(self, w):
            Slow.calls += 1
            time.sleep(0.02)
            return super().value_and_subgradient(w)

    from bmrm.checks.sample import sample_risk

    sample_risk(Slow())
    assert Slow.calls == 1


def test_weights_of_0_hide_targets_and_rows_keep_their_numbers():
    y = Y.copy()
    y[:50] = 1e300
    weights = np.where(np.arange(len(Y)) < 50, 0.0, 1.0)
    with pytest.raises(InputError, match=r"\(row 5\d\)"):
        bmrm.fit(X, y, loss=mistakes.Halved(), regularizer=L2, sample_weight=weights)


def test_losses_of_the_package_are_not_sampled(monkeypatch):
    from bmrm.checks import few_laws

    monkeypatch.setattr(few_laws, "of_loss", lambda *_: pytest.fail("sampled"))
    bmrm.fit(X, Y, loss="huber", regularizer=L2)
