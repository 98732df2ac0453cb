"""rehline: dual coordinate ascent with shrinking for losses that are pieces of lines and parabolas (ReHLine)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.race.peers import enter
from benchmarks.race.peers.estimators import L2, MANY, Estimator, Make, total
from benchmarks.race.problem import Task


class _Signed:
    """Labels of -1 and 1 in place of 0 and 1."""

    def __init__(self, machine: Any) -> None:
        self._machine = machine

    def fit(self, X: Any, y: Any) -> Any:
        return self._machine.fit(X, 2.0 * y - 1.0)

    @property
    def coef_(self) -> Any:
        return self._machine.coef_


def _machine(given: dict[str, Any], **options: str) -> Make:
    """`options` are those of rehline's loss, by the names that ours has for them."""

    def make(task: Task, o: Mapping[str, Any]) -> Any:
        from rehline import plqERM_Ridge

        loss = given | {theirs: task.problem.options[mine] for theirs, mine in options.items()}
        machine = plqERM_Ridge(loss=loss, C=total(task), max_iter=MANY, verbose=0, **o)
        return _Signed(machine) if loss["name"] == "svm" else machine

    return make


ABOUT: dict[str, Any] = {"family": "rehline", "module": "rehline", "dense": True}
enter(Estimator("rehline svm", {"hinge": L2}, _machine({"name": "svm"}), **ABOUT))
enter(Estimator("rehline quantile", {"quantile": L2}, _machine({"name": "QR"}, qt="tau"), **ABOUT))
enter(Estimator("rehline huber", {"huber": L2}, _machine({"name": "huber"}, tau="delta"), **ABOUT))
