"""Truncated-CG IRLS: Komarek, "Logistic regression for data mining and high-dimensional classification" (2004).

Algorithms 5 (the outer iteration), 6 and 7 (the inner one, see truncated_cg.py); options of sections 5.2 and B.4.3.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bmrm.problem import Callback, InputError, Regularizer, Risk, Solution, Vector
from bmrm.registry import parameter
from bmrm.solvers import register
from bmrm.solvers._core.monitor import IterativeSolver
from bmrm.solvers._core.reweighting import Reweighting

THESIS = {"cgwindow": 3, "cgdecay": 1000.0, "cgmax": 200, "lreps": 0.05, "lrmax": 30, "halving": False}
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "certified": {
        "cgeps": 0.1,
        "cgscale": "residual",
        "cgdeveps": 0.0,
        "cgbinit": True,
        "cgwindow": None,
        "cgdecay": None,
        "cgmax": 1000,
        "lreps": 0.0,
        "lrmax": None,
        "halving": True,
        "returns": "objective",
    },
    "cgeps": THESIS
    | {"cgeps": 1e-3, "cgscale": "attributes", "cgdeveps": 0.0, "cgbinit": False, "returns": "deviance"},
    "cgdeveps": THESIS
    | {"cgeps": 0.0, "cgscale": "attributes", "cgdeveps": 5e-3, "cgbinit": True, "returns": "deviance"},
}
"""What an option is that the user leaves at null: `certified` for the gap, the others the thesis' two classifiers."""


LONG_CG = {"preset": "cgeps", "cgeps": 1e-300, "lreps": 0.0}
ROUGH = {"cgmax": 1, "holdout_size": 0.3}
"""Settings under which some options matter."""


@register(
    "irls",
    problem="smooth losses with curvature; l2 and other regularizers with a second derivative",
    needs="Scored with curvature; a regularizer with curvature",
    certificate="the conjugate of the regularizer (eq. 15), mixed over iterations",
    cost="1 pass and 1 more for each CG iteration",
    source="Komarek 2004, Algorithms 5-7",
    abilities=("Scored",),
    refuses=("kinked loss", "kinked regularizer"),
)
@dataclass(frozen=True)
class IRLS(IterativeSolver):
    """Newton's method as iteratively reweighted least squares, each system solved roughly by conjugate gradients.

    With mean loss `R`, curvature `W = phi''` and slope `s = phi'` at the scores `f = X w`, the next `w` solves
    `(X'WX + Omega'') w = X'(W f - s)`, the thesis' weighted least squares with `z = f - W^-1 s`, divided by the number
    of rows m. Its ridge penalty `rrlambda` there is our `L2(lam=rrlambda / m)`. The deviance is `2 m R(w)`, without
    the penalty; `details` has it for every iterate, and the CG iterations of each.

    An option left at null takes the value of the preset. `certified` (ours): a tenth of the gradient is solved for,
    steps are halved until J falls enough, the gap decides. `cgeps` and `cgdeveps`: the thesis' LR-CGEPS and
    LR-CGDEVEPS; when their rule `lreps` is met the status is OWN_RULE, unless the gap is met before (`tolerance: 0`
    leaves it to the rule).

    Memory: 96 dim + 48 scores bytes, scores being rows times the scores of each.

    Parameters
    ----------
    preset : `certified`, `cgeps` or `cgdeveps`.
    cgeps : CG stops when the norm of the residual is below this times its scale (Algorithm 6); 0 for Algorithm 7.
    cgscale : that scale. `attributes`: dim, the residual multiplied by m (section 5.2.1); `first_residual`: the norm
        of X'(y - mu) + ... at the very start (section 5.2.2); `residual`: the norm of the gradient of J at each start.
    cgdeveps : CG stops when the relative change of the deviance is below this (Algorithm 7); 0 for Algorithm 6.
        One of `cgeps` and `cgdeveps` must be positive; giving one sets the other to 0.
    cgbinit : CG starts from the last w, not from zero.
    cgwindow : CG stops after so many iterations in a row without a smaller residual (Algorithm 6) or deviance
        (Algorithm 7).
    cgdecay : CG stops when the deviance exceeds the best of this CG run by this factor, and returns that best point.
    cgmax : CG iterations at most.
    lreps : stop with OWN_RULE when the relative change of the deviance is below this.
    lrmax : iterations at most, as `max_iterations`.
    lrdevdone : stop with OWN_RULE when the deviance is below this; 0 for never, as deviances may be below 0.
    holdout_size : share of the rows that are not fitted; their deviance decides (`lreps`, `returns`).
    binitmean : start with the mean outcome as the weight of the constant feature (`data.bias: regularized`).
    wmargin : W is kept within [wmargin, 1 - wmargin].
    margin : outcomes 0 and 1 become margin and 1 - margin.
    modelmin, modelmax : limits of the predicted mean mu.
    halving : halve the step until J falls (the thesis' "fractional increments").
    returns : `objective` for the iterate of least J, `deviance` for that of least deviance (line 5.2).
    jacobi : precondition CG with the diagonal of the system.
    seed : of the choice of the rows held out; null = that of the config, 0 from Python.

    Raises
    ------
    IncompatibleError
        Risk without scores or curvature, regularizer without curvature, or an option that the risk cannot serve
        (`wmargin`, `margin`, `modelmin`, `modelmax`: logistic loss; `binitmean`: a constant feature).
    """

    preset: str = parameter("certified", doc="defaults of what is null", choices=tuple(PRESETS), example="cgeps")
    cgeps: float | None = parameter(None, doc="relative residual that ends CG", least=0.0, example=1e-6)
    cgscale: str | None = parameter(
        None, doc="what cgeps multiplies", choices=("attributes", "first_residual", "residual"), example="attributes"
    )
    cgdeveps: float | None = parameter(None, doc="change of the deviance that ends CG", least=0.0, example=0.01)
    cgbinit: bool | None = parameter(None, doc="start CG from the last w", example=False)
    cgwindow: int | None = parameter(None, doc="CG iterations without progress", least=0, example=1, beside=LONG_CG)
    cgdecay: float | None = parameter(None, doc="growth of the deviance that ends CG", least=1.0, example=1.0)
    cgmax: int | None = parameter(None, doc="CG iterations at most", least=1, example=2)
    lreps: float | None = parameter(None, doc="change of the deviance that ends the run", least=0.0, example=0.5)
    lrmax: int | None = parameter(None, doc="iterations at most", least=1, example=2)
    lrdevdone: float = parameter(0.0, doc="deviance that ends the run; 0 = none", least=0.0, example=1e9)
    holdout_size: float = parameter(0.0, doc="share of rows held out", least=0.0, below=1.0, example=0.25)
    binitmean: bool = parameter(False, doc="start with the mean outcome as offset", example=True)
    wmargin: float = parameter(0.0, doc="least weight", least=0.0, below=0.5, example=0.2)
    margin: float = parameter(0.0, doc="shrinkage of the outcomes", least=0.0, below=0.5, example=0.1)
    modelmin: float = parameter(0.0, doc="least predicted mean", least=0.0, below=1.0, example=0.3)
    modelmax: float = parameter(1.0, doc="largest predicted mean", above=0.0, most=1.0, example=0.7)
    halving: bool | None = parameter(None, doc="halve steps until J falls", example=False)
    returns: str | None = parameter(
        None, doc="which iterate to return", choices=("objective", "deviance"), example="deviance", beside=ROUGH
    )
    jacobi: bool = parameter(False, doc="diagonal preconditioning", example=True)
    seed: int | None = parameter(
        None, doc="of the rows held out; null = the config's", least=0, example=1, beside=ROUGH
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.modelmin < self.modelmax:
            raise InputError(f"IRLS: modelmin is {self.modelmin}, expected less than modelmax ({self.modelmax})")
        if self.cgeps and self.cgdeveps:
            raise InputError("IRLS: cgeps and cgdeveps are both positive, expected one of them")
        chosen = self._values()
        if not (chosen["cgeps"] or chosen["cgdeveps"]):
            raise InputError("IRLS: cgeps and cgdeveps are both 0, expected one of them to be positive")

    def resolved(self) -> IRLS:
        """The same with every option of the preset filled in, and `lrmax` among the limits."""
        values = self._values()
        most = values["lrmax"] or self.max_iterations
        return dataclasses.replace(self, **values, max_iterations=min(most, self.max_iterations))

    def _values(self) -> dict[str, Any]:
        """What the user gives, else what the preset says."""
        values = dict(PRESETS[self.preset])
        if self.cgeps:
            values["cgdeveps"] = 0.0
        if self.cgdeveps:
            values["cgeps"] = 0.0
        return values | {name: getattr(self, name) for name in values if getattr(self, name) is not None}

    def minimize(
        self,
        risk: Risk,
        regularizer: Regularizer,
        *,
        start: Vector | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """As of `Solver`."""
        options = self.resolved()
        with options.monitor(risk, regularizer, start, callback) as run:
            return Reweighting(options, run, fresh=start is None).go(self.name)  # type: ignore[attr-defined]
