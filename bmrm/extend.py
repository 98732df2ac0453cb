"""What losses, regularizers, solvers and risks of one's own are written with and checked by, and risks over ranks.

    @extend.register_loss("pseudo_huber")
    @dataclass(frozen=True)
    class PseudoHuber(extend.RegressionLoss):
        delta: float = extend.parameter(1.0, doc="where the lines begin", above=0.0)

The pages *Add a loss*, *Add a regularizer* and *Add a solver* show how.
"""

from __future__ import annotations

from bmrm.checks.laws import Report, Violation
from bmrm.checks.losses import check_loss
from bmrm.checks.regularizers import check_regularizer
from bmrm.checks.risks import check_risk
from bmrm.losses import register as register_loss
from bmrm.losses._core.row import Pair, Scalar
from bmrm.losses._core.smooth_rows import smooth_points
from bmrm.losses._core.structure import LOG, MARGIN, SLACK, Structure, StructuredLoss, compiled
from bmrm.losses.base import MarginLoss, MulticlassLoss, RegressionLoss, row, strict_row
from bmrm.metrics import ScoredRows, evaluate
from bmrm.metrics.intervals import interval_over_folds, t_interval
from bmrm.mpi.launch import open_group
from bmrm.mpi.leading import lead
from bmrm.mpi.shared import shared_risk, shared_terms
from bmrm.problem import Callback, Loss, Master, Regularizer, Risk, Scored, Solver, Space, Vector, ability
from bmrm.registry import parameter
from bmrm.regularizers import register as register_regularizer
from bmrm.regularizers.base import ScaledBy, engine_parameter
from bmrm.risk.linear import LinearRisk
from bmrm.risk.structured import StructuredRisk
from bmrm.search import Search
from bmrm.search import register as register_search
from bmrm.solvers import register as register_solver
from bmrm.solvers._core.certificate import Certificate
from bmrm.solvers._core.monitor import IterativeSolver, Step, Steps

__all__ = [  # noqa: RUF022 (the order of use)
    "register_loss",
    "MarginLoss",
    "RegressionLoss",
    "MulticlassLoss",
    "parameter",
    "row",
    "strict_row",
    "Scalar",
    "Pair",
    "smooth_points",
    "Structure",
    "StructuredLoss",
    "compiled",
    "MARGIN",
    "SLACK",
    "LOG",
    "check_loss",
    "register_regularizer",
    "ScaledBy",
    "engine_parameter",
    "check_regularizer",
    "register_solver",
    "IterativeSolver",
    "Step",
    "Steps",
    "Certificate",
    "register_search",
    "Search",
    "check_risk",
    "Report",
    "Violation",
    "LinearRisk",
    "StructuredRisk",
    "shared_risk",
    "shared_terms",
    "open_group",
    "lead",
    "ability",
    "Scored",
    "Loss",
    "Regularizer",
    "Space",
    "Master",
    "Risk",
    "Solver",
    "Callback",
    "Vector",
    "evaluate",
    "ScoredRows",
    "interval_over_folds",
    "t_interval",
]
