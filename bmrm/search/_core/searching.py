"""What searches over fields of a config have in common: judged on validation rows or folds, they keep the best."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bmrm.app.model import Model
from bmrm.app.pipeline.follow import refuse_stop
from bmrm.app.pipeline.several import solve_any
from bmrm.app.pipeline.solve import Problem, Watch
from bmrm.data.dataset import Dataset
from bmrm.mpi.group import Group, together
from bmrm.problem import InputError
from bmrm.registry import check_parameters, parameter
from bmrm.search._core.candidates import Candidate, Values
from bmrm.search._core.choice import check_rule
from bmrm.search._core.crossing import Wanted, with_own_lambda
from bmrm.search._core.folds import AskedFolds
from bmrm.search._core.kept import FOLDER, Kept
from bmrm.search._core.trials import Source, Trial, Trials, mean, sources_of

Fit = Callable[..., "tuple[Model | None, dict[str, Any]]"]


@dataclass(frozen=True, kw_only=True)
class Searching(ABC):
    """Options and work of a search; a subclass says which values are tried (`tried`), and may say how (`trials`)."""

    folds: int | str = parameter(
        5, doc="parts left out in turn, or a file with the fold of each row; without validation data", example=3
    )
    split: str = parameter("auto", doc="stratified, random, grouped, time or auto", example="random")
    repeats: int = parameter(1, least=1, doc="times that rows are divided anew", example=2)
    measure: str | None = parameter(None, doc="that chooses; null = the first of the loss", example="auc")
    choose: str = parameter("best", doc="best or one_standard_error", example="one_standard_error")
    seed: int | None = parameter(None, least=0, doc="of the folds and of draws; null = the config's", example=1)

    def __post_init__(self) -> None:
        check_parameters(self)
        check_rule(self.choose)
        AskedFolds(self.folds, self.split, self.repeats)

    @abstractmethod
    def tried(self) -> list[Values]:
        """The values of the fields, in order."""

    def trials(self, trials: Trials, candidates: Sequence[Candidate]) -> list[Trial]:
        """Collective: what was found of all candidates, on rank 0."""
        return trials.of(candidates)

    def wanted(self, measures: Sequence[str] | None = None) -> Wanted:
        """As `bmrm.cross_validate` has it."""
        origin = self.folds if isinstance(self.folds, str) else None
        asked = AskedFolds(self.folds, self.split, self.repeats, self.seed or 0, origin)
        return Wanted(asked, measures, self.measure, self.choose)

    def fit_into(self, kept: Kept) -> Fit:
        """As `fit`, with a folder for trainings that are done."""
        return partial(self.fit, kept=kept)

    def fit(
        self,
        parts: Mapping[str, Dataset],
        problem: Problem,
        group: Group,
        watch: Watch,
        kept: Kept | None = None,
    ) -> tuple[Model | None, dict[str, Any]]:
        """Collective: the chosen candidate trained on all rows, and the table of the search; (None, {}) but on rank 0.

        Parameters
        ----------
        parts : `train`, and `validation` and `test` where the config names them.
        problem : loss, regularizer, solver and the rest of the config.
        group : all ranks.
        watch : gives each fit its callback.
        kept : where trainings are kept for a run that resumes this one; None for nowhere.
        """
        data = parts["train"]
        with together(group):
            refuse_stop(problem.follow, "a search")
            if problem.shares and "validation" not in parts:
                raise InputError(
                    "search: rows with shares of labels are not divided into folds here, expected data.validation; or "
                    "`bmrm cv`, which divides them"
                )
        problem = with_own_lambda(replace(problem, follow=None), data, group)
        wanted = self.wanted()
        candidates, names = wanted.judged(problem, self.tried(), group)
        with together(group):
            if kept is not None and group.rank == 0:
                kept.begin()
        if "validation" in parts:
            sources, words = [Source.of_validation(data, parts["validation"])], "validation"
        else:
            folds, sources = sources_of(wanted.folds, data, problem, group)
            words = folds.words
        trials = Trials(sources, group, names, watch, kept=kept)
        found = self.trials(trials, candidates)
        chosen = wanted.chosen(found, names[0], sources, group)
        model = solve_any(data, candidates[chosen].problem, group, watch, others=parts)
        return model, self._report(found, names, chosen, words) if model is not None else {}

    def _report(self, found: Sequence[Trial], names: Sequence[str], chosen: int, words: str) -> dict[str, Any]:
        """What `summary.json` says."""
        lines = []
        for trial in found:
            line = {name: _cell(value) for name, value in trial.values.items()}
            for name in names:
                line[name] = _finite(mean(trial.by_fold[name]))
                if len(trial.facts) > 1:
                    line[f"{name}, pooled"] = _finite(trial.pooled[name])
            lines.append(line | {"passes": trial.passes, "rounds": trial.rounds})
        name = getattr(type(self), "name", type(self).__name__)
        return {"name": name, "measure": names[0], "judged_on": words, "chosen": chosen, "table": lines}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _cell(value: Any) -> Any:
    """Numbers and text as they are; others in words."""
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        return value
    return str(value)


def kept_in(directory: str, resume: bool) -> Kept:
    """The folder of trainings beside the results of a run."""
    return Kept(Path(directory) / FOLDER, resume)
