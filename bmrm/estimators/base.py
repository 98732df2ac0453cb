"""What estimators share: their parameters become a call of `bmrm.fit`, and its model becomes their attributes."""

from __future__ import annotations

import inspect
import math
import numbers
import re
import textwrap
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state

from bmrm.data.dataset import Dataset, check_weights
from bmrm.losses import LOSSES
from bmrm.problem import (
    BmrmError,
    IncompatibleError,
    InputError,
    Iteration,
    LossFacts,
    Solution,
    Status,
    facts_of,
    provides,
    shown,
)
from bmrm.problem.loss import HasProbabilities
from bmrm.registry import Range, checked_value
from bmrm.solvers import SOLVERS
from bmrm.vocabulary import other_words, translated

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform

    from bmrm.app.model import Model
    from bmrm.data.features._core.rows import Features
    from bmrm.data.features._core.transformer import Transformer
    from bmrm.problem import Loss, Regularizer, Solver
else:

    def dataclass_transform(**_: Any) -> Any:
        """For type checkers; in Python from 3.11."""
        return lambda function: function


E = TypeVar("E")

CHECKED: Mapping[str, tuple[tuple[type, ...], Range]] = {
    "alpha": ((float,), Range(least=0.0, below=math.inf)),
    "l1_ratio": ((float,), Range(least=0.0, most=1.0)),
    "tol": ((float,), Range(least=0.0)),
    "max_iter": ((int,), Range(least=1)),
    "time_limit": ((float, NoneType), Range(above=0.0)),
    "threads": ((int, NoneType), Range(least=1)),
    "fit_intercept": ((bool,), Range()),
    "warm_start": ((bool,), Range()),
    "verbose": ((int, bool), Range(least=0)),
}
"""Types and ranges of parameters."""
UNCHECKED: tuple[tuple[type, ...], Range] = ((), Range())
"""Those of others."""
SOLVER_OPTIONS: Mapping[str, str] = {
    "tol": "tolerance",
    "max_iter": "max_iterations",
    "time_limit": "time_limit",
    "random_state": "seed",
}
"""Parameters that are options of the solver, and their names there."""
LARGEST_SEED = 2**31 - 1
REMEDIES: Mapping[Status, str] = {
    Status.ITERATION_LIMIT: "raise max_iter, scale the features, or accept this gap",
    Status.TIME_LIMIT: "raise time_limit, scale the features, or accept this gap",
    Status.STALLED: "rounding leaves no more to gain: raise tol or scale the features",
}
USELESS = Status.NON_FINITE, Status.NOT_CONVEX
"""Statuses without a model."""


PARAMETERS = {
    "alpha": "lambda of alpha ((1 - l1_ratio)/2 ||w||^2 + l1_ratio ||w||_1), as in `SGDClassifier`; 1 / (C m) for "
    "the C of `LinearSVC` and m rows; 0 for no regularizer (`none`). Default 1e-4.",
    "l1_ratio": "from 0 (`l2`) to 1 (`l1`). Default 0.",
    "regularizer": "instance, mapping or name instead of these two; a name alone has lambda 1 / m. Default None.",
    "fit_intercept": "whether there is an intercept, which the regularizer does not touch, where the loss has one; it "
    "is 0 for losses that only rank (`roc_area`) and for `perceptron`. Default True.",
    "tol": "relative gap, (objective - lower bound) / objective, to reach. Default 1e-4.",
    "max_iter": "iterations at most. Default 100000.",
    "time_limit": "seconds at most, without compiling kernels; None for no limit. Default None.",
    "solver": "name (see `bmrm solvers`), mapping or instance; an instance has its own tolerance and limits. Default "
    "`auto`.",
    "warm_start": "whether `fit` starts from the model of the last one. Default False.",
    "threads": "threads of `fit`, at most; None for the usable cores. Default None.",
    "random_state": "for a solver that is named and draws random numbers (`pegasos`, `dual_coordinate`, ...); None is "
    "a fixed seed, as is that of `auto`. Default None.",
    "categorical": "columns of numbers that are categories all the same, by name, or number from 0; those of text and "
    "of categories are in any case: each level is a feature, such as `town=Oslo`. Default None.",
    "text": "columns whose words are features, a dict of names and `hashed` (scikit-learn's `HashingVectorizer`) or "
    "`counted` (`CountVectorizer`). Default None.",
    "missing": "`refuse`, or what stands in place of a missing number: the `mean` of the column, that and a feature "
    "which is 1 there (`indicator`), or `zero`. A missing category is a level, or all zero. Default `refuse`.",
    "drop_first": "whether the first level of each category has no feature. Default False.",
    "rare": "levels with fewer rows are one, `town=(rare)`; None for none. Default None.",
    "features": "map to other features, in which the model is linear, and `coef_` is: a name (`nystroem`, ...), "
    '`{"name": ..., option: value}`, or a transformer. Default None.',
    "verbose": "1 prints a line a second, 2 one each iteration. Default 0.",
}
"""Descriptions of the parameters that estimators share."""
ATTRIBUTES = {
    "model_": "the `bmrm.Model`, which can be saved, shown and plotted.",
    "solution_": "the `bmrm.Solution`: status, objective, lower bound, history.",
    "n_iter_": "iterations of the solver.",
    "dual_gap_": "objective minus lower bound, inf where there is no bound.",
    "lower_bound_": "of the minimum of the objective.",
    "encoding_": "how columns of categories and text, or with missing values, became features, whose names are "
    "`encoding_.names`; None where the columns are the features.",
    "n_features_in_": "number of columns.",
    "feature_names_in_": "(columns,) their names; there only where `X` was a data frame with names.",
}
ROWS = {
    "X": "(rows, features) array, sparse matrix or data frame of finite numbers; float32 stays float32.",
    "sample_weight": "(rows,) array of numbers >= 0; None for 1 each.",
    "offset": "(rows,) numbers, or (rows, scores) for several scores a row, which are added to the scores; `predict` "
    "needs them where `fit` had some. None for 0.",
    "alphas": "list of decreasing numbers > 0; None for a grid from the least with weights of 0 down (`bmrm.path`).",
    "n_alphas": "points of that grid.",
    "eps": "the last of it over the first; None for 1e-3, 1e-2 where there are fewer rows than features.",
    "stop": "ends the path early: `{'nonzeros': 50}` or `{'explained': 0.99}`; None for not.",
}
"""Descriptions of the arguments of methods."""


def documented(text: str, function: Any, known: Mapping[str, str], attributes: Mapping[str, str] | None = None) -> str:
    """A docstring with all parameters of `function` and all `attributes`; `known` has those that it leaves out."""
    head, *sections = re.split(r"\n\n(?=\w+\n---+\n)", inspect.cleandoc(text))
    named = dict(section.split("\n", 1) for section in sections)
    for title, names in (("Parameters", inspect.signature(function).parameters), ("Attributes", attributes or {})):
        own = re.split(r"\n(?=\S)", named.get(title, "").partition("\n")[2])
        said = {entry.partition(" : ")[0]: entry for entry in own if entry}
        lines = [said.pop(name, None) or _entry(name, {**known, **(attributes or {})}) for name in names]
        if title == "Attributes" or not any(lines):
            lines = [*said.values(), *lines]
        if any(lines):
            named[title] = "\n".join(["-" * len(title), *filter(None, lines)])
    order = sorted(named, key=lambda title: (title != "Parameters", title != "Attributes"))
    return "\n\n".join([head, *(f"{title}\n{named[title]}" for title in order)])


def _entry(name: str, known: Mapping[str, str]) -> str | None:
    return textwrap.fill(f"{name} : {known[name]}", 112, subsequent_indent="    ") if name in known else None


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def estimator(cls: type[E]) -> type[E]:
    """Class decorator: `__init__` takes the fields, and the docstring says what each is.

    The signature is explicit, as scikit-learn wants it; the loss may stand first, the others are named. Names that
    parameters have in `bmrm.fit` and configs are taken too.
    """
    made: Any = dataclass(repr=False, eq=False, kw_only=True)(cls)
    known, attributes = {**PARAMETERS, **made.more_parameters}, {**made.more_attributes, **ATTRIBUTES}
    made.__doc__ = documented(made.__doc__, made.__init__, known, attributes)
    made.__init__ = other_words("estimator", cls.__name__)(made.__init__)
    return made  # type: ignore[no-any-return]


@dataclass(repr=False, eq=False, kw_only=True)
class LinearEstimator(BaseEstimator):
    """Parameters to `bmrm.fit`, a model to attributes.

    The docstrings of subclasses leave out what is in PARAMETERS, ATTRIBUTES and `rows`: it is added.
    """

    loss: str | Mapping[str, Any] | Loss = field(kw_only=False)
    alpha: float = 1e-4
    l1_ratio: float = 0.0
    regularizer: str | Mapping[str, Any] | Regularizer | None = None
    tol: float = 1e-4
    max_iter: int = 100_000
    time_limit: float | None = None
    solver: str | Mapping[str, Any] | Solver = "auto"
    warm_start: bool = False
    threads: int | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0
    features: str | Mapping[str, Any] | Features | Transformer | None = None
    rows: ClassVar[Mapping[str, str]] = ROWS
    """What arguments of its methods mean."""
    more_parameters: ClassVar[Mapping[str, str]] = {}
    more_attributes: ClassVar[Mapping[str, str]] = {}
    """Descriptions beside PARAMETERS and ATTRIBUTES."""
    tasks: ClassVar[tuple[str, ...]]
    """Tasks of the losses that fit."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, member in vars(cls).items():
            method = getattr(member, "fn", member)  # of `available_if`
            if inspect.isfunction(method) and not name.startswith("_") and method.__doc__:
                method.__doc__ = documented(method.__doc__, method, cls.rows)
        if "fit" in vars(cls):
            cls.fit = other_words("estimator", f"{cls.__name__}.fit")(cls.fit)

    def set_params(self, **params: Any) -> LinearEstimator:
        """Change parameters, which may have the names that they have in `bmrm.fit` and configs, too.

        Parameters
        ----------
        **params : new values by name; `step__name` in a pipeline.
        """
        own = {word: value for word, value in params.items() if "__" not in word}
        found = translated(f"{self._title} has no parameter", own, self._get_param_names(), "estimator")
        super().set_params(**found, **{word: value for word, value in params.items() if word not in own})
        return self

    def _prepared_loss(self) -> Any:
        """The instance that the parameter `loss` stands for; InputError for one of another task."""
        loss = LOSSES.instance(self.loss)
        facts = facts_of(loss)
        if not self._fits(facts):
            known = ", ".join(entry.name for entry in LOSSES.all() if self._fits(facts_of(entry.cls)))
            raise InputError(f"{self._title}: loss {facts.title} is for another task, expected one of {known}")
        return loss

    def _fits(self, facts: LossFacts) -> bool:
        """Whether this is an estimator for such a loss."""
        return facts.task in self.tasks

    def _loss_facts(self) -> LossFacts:
        """Of the parameter `loss`, as far as it can be told before `fit`."""
        try:
            return facts_of(LOSSES.instance(self.loss))
        except BmrmError:  # `fit` will say what is wrong
            return LossFacts()

    @property
    def _title(self) -> str:
        return type(self).__name__

    def _train(self, data: Dataset, loss: Any, free: bool, **more: Any) -> Model:
        """Fit, keep the model, and warn where the gap is wider than wanted.

        Parameters
        ----------
        data : the rows.
        loss : an instance.
        free : whether there is a free intercept where the loss has one.
        more : arguments of `bmrm.fit` that one estimator has.

        Raises
        ------
        InputError
            Wrong parameters, or targets that the loss does not take.
        BmrmError
            The objective is not finite, or not convex.
        """
        self._check_ranges()
        from bmrm.app.fit import fit  # loads numba

        regularizer, lam = self._omega()
        bias: Literal["free", "none"] = "free" if free and not facts_of(loss).no_free_intercept else "none"
        try:
            model = fit(
                data,
                loss=loss,
                regularizer=regularizer,
                lam=lam,
                solver=self._solver(),
                bias=bias,
                threads=self._value("threads"),
                start=getattr(self, "model_", None) if self.warm_start else None,
                callback=self._printed(),
                features=self.features,
                **more,
            )
        except IncompatibleError as error:
            hint = "; or try fit_intercept=False" if bias == "free" else ""
            raise IncompatibleError(f"{self._title}: {error}{hint}") from error
        self._judge(model.solution)
        self._keep(model)
        return model

    def _keep(self, model: Model) -> None:
        """Set the attributes about the model."""
        self.model_, self.solution_ = model, model.solution
        self.n_iter_ = max(1, model.solution.iterations)  # scikit-learn asks for 1 where the start was the answer
        self.dual_gap_, self.lower_bound_ = model.solution.gap, model.solution.lower_bound

    def _printed(self) -> Callable[[Iteration], None] | None:
        """The callback that prints as `verbose` says."""
        return _printed(self.verbose)

    def _omega(self) -> tuple[Any, float | None]:
        """The arguments `regularizer` and `lam` of `bmrm.fit`."""
        family = self._family("alpha", "l1_ratio")
        if self.regularizer is not None:
            return family, None
        alpha = self._value("alpha")
        if alpha == 0.0:
            return "none", None
        return ({**family, "lambda": alpha}, None) if isinstance(family, Mapping) else (family, alpha)

    def _family(self, *beside: str) -> Any:
        """The regularizer, without lambda where it is not given; InputError for what is given beside it."""
        l1_ratio = self._value("l1_ratio")
        if self.regularizer is None:
            return {"name": "elastic_net", "l1_ratio": l1_ratio} if 0.0 < l1_ratio < 1.0 else "l1" if l1_ratio else "l2"
        for name in beside:
            if not self._is_default(name):
                raise InputError(
                    f"{self._title}: {name} is {shown(getattr(self, name))} beside a regularizer, expected one of "
                    "the two; the regularizer has its own lambda, as in {'name': 'l1', 'lambda': 1e-3}"
                )
        return self.regularizer

    def _solver(self) -> Any:
        """The solver with `tol` and the other options, unless it brings its own."""
        solver = {"name": self.solver} if isinstance(self.solver, str) else self.solver
        own: Any = solver if isinstance(solver, Mapping) else SOLVER_OPTIONS.values()  # an instance has them all
        for name, option in SOLVER_OPTIONS.items():
            if option in own and not self._is_default(name):
                raise InputError(
                    f"{self._title}: {name} is {shown(getattr(self, name))} beside a solver with its own {option}"
                )
        if not isinstance(solver, Mapping):
            return solver
        options = {option: self._value(name) for name, option in SOLVER_OPTIONS.items() if name != "random_state"}
        return options | self._seed(solver.get("name")) | dict(solver)

    def _seed(self, solver: Any) -> dict[str, int]:
        """The option `seed` of the solver of this name, where it has one and `random_state` is given."""
        state = self.random_state
        if state is None or not isinstance(solver, str):
            return {}
        if "seed" not in SOLVERS.options(solver):
            return {}
        drawn: Any = state if isinstance(state, numbers.Integral) else check_random_state(state).randint(LARGEST_SEED)
        return {"seed": int(drawn)}

    def _value(self, name: str) -> Any:
        """A parameter, numbers of NumPy as those of Python; InputError where it is not what it may be."""
        kinds, limits = CHECKED.get(name, UNCHECKED)
        return checked_value(f"{self._title}: {name}", getattr(self, name), kinds, limits)

    def _is_default(self, name: str) -> bool:
        value, default = getattr(self, name), self._defaults()[name]
        return value is default or bool(value == default)

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """As of scikit-learn, which reads the signature at each call; read once for each class."""
        names: list[str] = super()._get_param_names()
        return names

    @classmethod
    @cache
    def _defaults(cls) -> Mapping[str, Any]:
        known: Any = cls.__init__
        return {name: one.default for name, one in inspect.signature(known).parameters.items() if name != "self"}

    def _check_ranges(self) -> None:
        for name, default in self._defaults().items():
            if getattr(self, name) is not default:
                self._value(name)

    def _judge(self, solution: Solution) -> None:
        """Raise where there is no usable model, warn where the gap is wider than wanted."""
        status, found = solution.status, solution.message
        if status in USELESS:
            raise BmrmError(f"{self._title}: {status.name}: {solution.message or status.advice}")
        if status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if status in REMEDIES:
            warnings.warn(
                f"{self._title}: {status.name} after {solution.iterations} iterations and {solution.seconds:.3g} s: "
                f"the objective is {solution.objective:.6g}, its minimum at least {solution.lower_bound:.6g}, a "
                f"relative gap of {solution.relative_gap:.2g}; {'; '.join(filter(None, (REMEDIES[status], found)))}",
                ConvergenceWarning,
                stacklevel=4,
            )
        elif found:
            warnings.warn(f"{self._title}: {found}", UserWarning, stacklevel=4)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def present(y: NDArray[Any], weights: Any) -> NDArray[Any]:
    """The targets of rows whose weight is not 0."""
    return y if weights is None else y[check_weights(weights, len(y)) > 0.0]


def places_in(y: NDArray[Any], grades: NDArray[Any]) -> NDArray[np.int64]:
    """For each entry its place among the grades, (rows,); InputError for one that is not among them."""
    if (y.dtype.kind in "US") != (grades.dtype.kind in "US"):
        raise InputError(f"y: row 0 is {shown(y[0].item())}, expected one of the grades {shown(grades.tolist())}")
    order = np.argsort(grades)
    found = order[np.minimum(np.searchsorted(grades, y, sorter=order), len(grades) - 1)]
    strange = np.flatnonzero(grades[found] != y)
    if strange.size:
        row = int(strange[0])
        raise InputError(f"y: row {row} is {shown(y[row].item())}, expected one of the grades {shown(grades.tolist())}")
    return np.asarray(found, np.int64)


def has_probabilities(self: Any) -> bool:
    """Whether `predict_proba` is there; raises AttributeError where the loss has no probabilities."""
    if getattr(self, "calibrate", None) is not None:
        return True
    try:
        loss = self.model_.loss if hasattr(self, "model_") else LOSSES.instance(self.loss)
    except BmrmError as error:
        raise AttributeError(str(error)) from error
    if not provides(loss, HasProbabilities):
        from bmrm.app.measure import without_probabilities  # loads numba

        raise AttributeError(f"loss {without_probabilities(loss)}")
    return True


def _printed(verbose: int) -> Callable[[Iteration], None] | None:
    """A callback that prints a line a second, or every iteration where `verbose` is 2 or more."""
    if not verbose:
        return None
    last = -math.inf

    def line(now: Iteration) -> None:
        nonlocal last
        if verbose < 2 and time.monotonic() < last + 1.0:
            return
        last = time.monotonic()
        print(
            f"[bmrm] iteration {now.iteration}, {now.seconds:.2f} s, {now.passes:.1f} passes: "
            f"{now.lower_bound:.6g} <= min J <= {now.objective:.6g}"
        )

    return line
