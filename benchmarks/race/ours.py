"""bmrm itself: a solver to a certified relative gap, from a data set in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.race.competitor import Prepared, Rung, Trial
from benchmarks.race.problem import Task

FEW = 100
"""Lines of the history that are kept for plots."""


@dataclass(frozen=True)
class Ours:
    """A registered solver. The time covers building the risk and solving; the data are there, kernels compiled.

    A rung counts only where the run ends CONVERGED: the gap is then proved, not measured afterwards.
    """

    solver: str = "auto"
    targets: tuple[float, ...] = (1e-3, 1e-6)
    time_limit: float = 60.0
    iterations: int = 10**7
    threads: int = 1
    name: str = field(init=False)
    family: str = "bmrm"

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"bmrm {self.solver}")

    def missing(self) -> str:
        return ""

    def serves(self, task: Task) -> bool:
        """Whether the regularizer exists; whether the solver fits the risk shows when it is run."""
        from bmrm.problem import InputError

        try:
            regularizer_of(task)
        except InputError:
            return False
        return True

    def ladder(self, task: Task) -> Sequence[Rung]:
        return tuple(Rung(f"gap={target:g}", {"tolerance": target}, target) for target in self.targets)

    def prepare(self, task: Task) -> Prepared:
        from bmrm.losses import LOSSES
        from bmrm.risk.linear import LinearRisk
        from bmrm.solvers import SOLVERS

        loss = LOSSES.make(task.loss, dict(task.problem.options))

        def trial(rung: Rung) -> Trial:
            limits = {"max_iterations": self.iterations, "time_limit": self.time_limit}
            solver = SOLVERS.make(self.solver, {**rung.options, **limits})
            found: list[Any] = []

            def train() -> None:
                risk = LinearRisk(task.dataset, loss, threads=self.threads)
                found.append(solver.minimize(risk, regularizer_of(task)))

            return Trial(train, lambda: found[0].w, lambda: _details(found[0]))

        return trial


def regularizer_of(task: Task) -> Any:
    """The registered regularizer with the lambdas of the problem."""
    from bmrm.regularizers import REGULARIZERS

    problem = task.problem
    options = {"lambda": problem.lam}
    if problem.penalty == "elastic_net":
        options["l1_ratio"] = problem.l1 / problem.lam
    return REGULARIZERS.make(problem.penalty, options)


def solvers() -> list[str]:
    """The names of all registered solvers but `auto`."""
    from bmrm.solvers import SOLVERS

    return [entry.name for entry in SOLVERS.all() if entry.name != "auto"]


def _details(solution: Any) -> dict[str, Any]:
    lines = solution.history
    step = max(1, len(lines) // FEW)
    kept = [*lines[::step], *lines[-1:]]
    return {
        "status": solution.status.name,
        "solver": solution.solver,
        "bound": solution.lower_bound,
        "claimed": solution.objective,
        "iterations": solution.iterations,
        "passes": solution.passes,
        "history": [[line.seconds, line.objective, line.lower_bound] for line in kept],
    }
