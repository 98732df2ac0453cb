"""What settings are called, here and in other programs: one table, read by `fit`, estimators, configs and `bmrm train`.

A setting has a name at each door; the names at the others, and a few more, are accepted there too (`SETTINGS`). A word
of another program that means something else is answered by what to write (`ANSWERS`), and so are names of losses,
regularizers, solvers and formats (`ELSEWHERE`). The page *Coming from another program* prints all three.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from bmrm.problem import InputError, shown

P = ParamSpec("P")
T = TypeVar("T")
Hint = Callable[[str, Mapping[str, Any]], str]
"""From an unknown word, and all words that are given, to what to write instead."""
_LONGEST_WORD = 200
CONFIGS = (".yaml", ".yml")
"""Suffixes of the names of configs."""
PAGE = "see the page Coming from another program"


@dataclass(frozen=True)
class Setting:
    """One setting and its names; "" where a door has none.

    Attributes
    ----------
    fit : argument of `bmrm.fit` and `bmrm.minimize`.
    estimator : parameter of an estimator, or argument of its `fit`.
    config : field of a config, and option of `bmrm train`.
    others : further names that all doors accept.
    """

    fit: str
    estimator: str
    config: str
    others: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, fields without their section; what `canonical` finds first stands first."""
        names = self.fit, self.config.rpartition(".")[2], self.estimator, *self.others
        return tuple(dict.fromkeys(filter(None, names)))


SETTINGS = (
    Setting("loss", "loss", "loss"),
    Setting("regularizer", "regularizer", "regularizer"),
    Setting("lam", "alpha", "regularizer.lambda", ("lambda_", "reg_lambda")),
    Setting("solver", "solver", "solver"),
    Setting("tolerance", "tol", "solver.tolerance"),
    Setting("absolute_tolerance", "", "solver.absolute_tolerance"),
    Setting("max_iterations", "max_iter", "solver.max_iterations", ("maxiter",)),
    Setting("time_limit", "time_limit", "solver.time_limit"),
    Setting("threads", "threads", "solver.threads"),
    Setting("seed", "random_state", "seed"),
    Setting("bias", "fit_intercept", "data.bias"),
    Setting("scale", "", "data.scale"),
    Setting("sample_weight", "sample_weight", "data.weights", ("sample_weights", "weight")),
    Setting("offset", "offset", "data.offset", ("base_margin", "init_score")),
    Setting("groups", "groups", ""),
    Setting("positive_label", "", "data.positive_label", ("pos_label",)),
    Setting("class_weight", "class_weight", "data.class_weight", ("class_weights",)),
    Setting("classes", "", "data.classes"),
    Setting("labels", "", "data.labels"),
    Setting("calibrate", "calibrate", "calibrate", ("calibration",)),
    Setting("categorical", "categorical", "data.categorical", ("categorical_features", "cat_features")),
    Setting("text", "text", "data.text"),
    Setting("missing", "missing", "data.missing"),
    Setting("drop_first", "drop_first", "data.drop_first"),
    Setting("rare", "rare", "data.rare", ("min_frequency",)),
    Setting("features", "features", "data.features", ("feature_map",)),
    Setting("start", "warm_start", "start"),
    Setting("validation", "", "data.validation"),
    Setting("follow", "", "output.follow"),
    Setting("stop", "", "solver.stop"),
)
KEPT_APART = frozenset({"warm_start"})
"""Names that are not synonyms: `warm_start` is true or false, `start` a model."""
_TOGETHER = [[name for name in setting.names if name not in KEPT_APART] for setting in SETTINGS]
_SAME: Mapping[str, list[str]] = {name: names for names in reversed(_TOGETHER) for name in names}
"""For each name all names of that setting, the first one that has it."""

_LAMBDA = "the factor of the regularizer beside the mean loss"
_EPOCHS = "iterations of the solver at most; a run ends by its proved gap"
_STEP = "solvers choose their steps, leave it out"
_GAP = "a run ends where its proved gap is within the tolerance, leave it out"
_KERNEL = "models are linear, in the features of a map such as {name: nystroem, kernel: rbf, gamma: 0.1}"
_SEARCH = (
    "bmrm.cross_validate, `bmrm cv`, or GridSearchCV of scikit-learn with bmrm.Classifier and the other estimators"
)
_SHOWN = "the command line shows progress unless --quiet, estimators have verbose, bmrm.fit has callback"
ANSWERS: Mapping[str, tuple[str, str]] = {
    "c": ("lam", "1 / (C m) for m rows, 1 / (2 C m) for squared_hinge"),
    "c1": ("regularizer", "l1 with lambda c1 / n for n sequences"),
    "c2": ("regularizer", "l2 with lambda 2 c2 / n for n sequences"),
    "l1": ("regularizer", "l1 with its lambda"),
    "l2": ("regularizer", "l2 with its lambda"),
    "lambda_l1": ("regularizer", "l1 with its lambda"),
    "lambda_l2": ("regularizer", "l2 with its lambda"),
    "reg_alpha": ("regularizer", "l1 with its lambda"),
    "l1_ratio": ("regularizer", "elastic_net with the options lambda and l1_ratio"),
    "l1_reg": ("regularizer", "l1 with its lambda"),
    "l2_reg": ("regularizer", "l2 with its lambda"),
    "penalty": ("regularizer", "l2, l1, or elastic_net with its option l1_ratio"),
    "reg": ("lam", _LAMBDA),
    "reg_param": ("lam", _LAMBDA),
    "regularization": ("lam", _LAMBDA),
    "weight_decay": ("lam", _LAMBDA),
    "lambdas": ("lam", "one number; bmrm.path fits many, one after another"),
    "alphas": ("lam", "one number; bmrm.path fits many, one after another"),
    "cs": ("lam", "one number, 1 / (C m) for m rows"),
    "nu": ("loss", "novelty with its option rho"),
    "epsilon": ("loss", "epsilon_insensitive or another with an option epsilon"),
    "quantile": ("loss", "quantile with its option tau"),
    "objective": ("loss", "one that `bmrm losses` lists"),
    "loss_function": ("loss", "one that `bmrm losses` lists"),
    "criterion": ("loss", "one that `bmrm losses` lists"),
    "multi_class": ("loss", "softmax or multiclass_hinge for more than two classes"),
    "probability": ("calibrate", "sigmoid or isotonic; logistic and softmax have probabilities by themselves"),
    "algorithm": ("solver", "auto, or one that `bmrm solvers` lists"),
    "optimizer": ("solver", "auto, or one that `bmrm solvers` lists"),
    "method": ("solver", "auto, or one that `bmrm solvers` lists"),
    "dual": ("solver", "dual_coordinate works on the dual; auto takes it where it is fast"),
    "eps": ("tolerance", "the relative gap, (objective - lower bound) / objective"),
    "stopping_tol": ("tolerance", "the relative gap, (objective - lower bound) / objective"),
    "epochs": ("max_iterations", _EPOCHS),
    "n_epochs": ("max_iterations", _EPOCHS),
    "n_iter": ("max_iterations", _EPOCHS),
    "iterations": ("max_iterations", _EPOCHS),
    "num_iterations": ("max_iterations", _EPOCHS),
    "passes": ("max_iterations", _EPOCHS),
    "timeout": ("time_limit", "seconds at most"),
    "max_time": ("time_limit", "seconds at most"),
    "n_jobs": ("threads", "at most so many; all usable cores where it is left out"),
    "nthread": ("threads", "at most so many; all usable cores where it is left out"),
    "n_threads": ("threads", "at most so many; all usable cores where it is left out"),
    "num_threads": ("threads", "at most so many; all usable cores where it is left out"),
    "intercept": ("bias", "free, regularized or none; for estimators True or False"),
    "intercept_scaling": ("bias", "a free intercept is not regularized and needs no scaling"),
    "scale_pos_weight": ("class_weight", "a dict with a factor for the positive label"),
    "normalize": ("scale", "standardize, max_abs or unit_norm; StandardScaler before an estimator"),
    "standardize": ("scale", "standardize; StandardScaler before an estimator"),
    "group": ("groups", "for each row the query that it belongs to, not how many rows a query has"),
    "qid": ("groups", "for each row the query that it belongs to"),
    "query": ("groups", "for each row the query that it belongs to"),
    "coef_init": ("start", "a model or the path of its file"),
    "init": ("start", "a model or the path of its file"),
    "init_model": ("start", "a model or the path of its file"),
    "x0": ("start", "a model or the path of its file"),
    "w0": ("start", "a model or the path of its file"),
    "warm_start": ("start", "a model or the path of its file"),
    "eval_set": ("validation", "rows that are followed while the solver runs"),
    "validation_data": ("validation", "rows that are followed while the solver runs"),
    "valid_sets": ("validation", "rows that are followed while the solver runs"),
    "eval_metric": ("follow", "measures of the validation rows"),
    "early_stopping": ("", _GAP),
    "early_stopping_rounds": ("", _GAP),
    "validation_fraction": ("", _GAP),
    "n_iter_no_change": ("", _GAP),
    "eta": ("", _STEP),
    "eta0": ("", _STEP),
    "learning_rate": ("", _STEP),
    "learning_rate_init": ("", _STEP),
    "lr": ("", _STEP),
    "momentum": ("", _STEP),
    "power_t": ("", _STEP),
    "step_size": ("", _STEP),
    "batch_size": ("", "solver pegasos takes steps on some rows, its option sample; the others read all"),
    "average": ("", "solver pegasos has the option averaging; the others need none"),
    "shuffle": ("", "solvers that draw rows do so by themselves, by their option seed"),
    "kernel": ("features", _KERNEL),
    "gamma": ("features", _KERNEL),
    "degree": ("features", _KERNEL),
    "coef0": ("features", _KERNEL),
    "cache_size": ("", "there is no cache to size, leave it out"),
    "copy_x": ("", "X is never changed, leave it out"),
    "positive": ("", "weights have no bounds"),
    "cv": ("", _SEARCH),
    "folds": ("", _SEARCH),
    "n_folds": ("", _SEARCH),
    "param_grid": ("", _SEARCH),
    "verbose": ("", _SHOWN),
    "verbosity": ("", _SHOWN),
    "disp": ("", _SHOWN),
}
"""For words of other programs, in lower case: the setting to use (its argument of `fit`), and how."""

_LOGISTIC = "logistic for two classes, softmax for more"
_SQUARES = "least_squares, (f - y)^2 / 2"
_ABSOLUTE = "least_absolute_deviation"
_HINGE = "hinge for two classes, multiclass_hinge for more"
_SVR = "epsilon_insensitive or squared_epsilon_insensitive"
_RANKING = "rank_hinge within queries, or ndcg"
_STOCHASTIC = "pegasos, which takes steps on some rows; auto is faster to a small gap"
_NEWTON = "newton"
_OTHER_FILE = "csv or arrow (Parquet), which pandas and polars write of such files"
_LINEAR_PROGRAM = "bundle or coordinate_descent; auto chooses"
ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "loss": {
        **dict.fromkeys(("log", "log_loss", "logloss", "logit", "logistic_regression", "deviance"), _LOGISTIC),
        **dict.fromkeys(("cross_entropy", "crossentropy", "ce", "nll", "maxent", "classification"), _LOGISTIC),
        **dict.fromkeys(("binary", "bce", "binomial", "bernoulli", "binary_logloss"), "logistic"),
        **dict.fromkeys(("binary_crossentropy", "binary_cross_entropy", "binary:logistic"), "logistic"),
        **dict.fromkeys(("multinomial", "multiclass", "multi_logloss", "categorical_crossentropy"), "softmax"),
        **dict.fromkeys(("multi:softmax", "multi:softprob", "sparse_categorical_crossentropy"), "softmax"),
        **dict.fromkeys(("squared", "squared_error", "squared_loss", "square", "mse", "l2", "ols"), _SQUARES),
        **dict.fromkeys(("mean_squared_error", "regression", "gaussian", "rmse", "linear"), _SQUARES),
        **dict.fromkeys(("reg:squarederror", "reg:linear"), _SQUARES),
        **dict.fromkeys(("ridge", "ridge_regression"), "least_squares with the regularizer l2"),
        "lasso": "least_squares with the regularizer l1",
        **dict.fromkeys(("elasticnet", "elastic_net"), "least_squares with the regularizer elastic_net"),
        **dict.fromkeys(("absolute_error", "absolute", "mae", "l1", "lad", "regression_l1"), _ABSOLUTE),
        **dict.fromkeys(("mean_absolute_error", "reg:absoluteerror"), _ABSOLUTE),
        **dict.fromkeys(("pinball", "pinball_loss", "quantile_loss", "reg:quantileerror"), "quantile with its tau"),
        **dict.fromkeys(("svm", "svc", "linear_svc", "linearsvc", "binary:hinge", "hinge_loss"), _HINGE),
        "l2svm": "squared_hinge",
        **dict.fromkeys(("svr", "linear_svr", "linearsvr"), _SVR),
        **dict.fromkeys(("crammer_singer", "mcsvm"), "multiclass_hinge"),
        **dict.fromkeys(("one_class_svm", "oneclasssvm", "ocsvm", "one_class"), "novelty with its rho"),
        **dict.fromkeys(("lambdarank", "lambdamart", "rank_xendcg", "rank:pairwise"), _RANKING),
        **dict.fromkeys(("ranknet", "ranksvm", "rank_svm", "svmrank", "pairwise"), _RANKING),
        **dict.fromkeys(("rank:ndcg", "ndcg_loss"), "ndcg"),
        **dict.fromkeys(("auc", "roc", "roc_auc"), "roc_area"),
        **dict.fromkeys(("f1", "f1_score", "fbeta", "f_measure"), "f_beta"),
        **dict.fromkeys(("prbep", "breakeven"), "break_even"),
        **dict.fromkeys(("crf", "linear_chain_crf"), "chain_crf"),
        **dict.fromkeys(("m3n", "structured_svm", "ssvm", "svm_hmm"), "chain_margin"),
        **dict.fromkeys(("smooth_l1", "pseudohuber"), "huber"),
        **dict.fromkeys(("count:poisson", "poisson_regression"), "poisson"),
        **dict.fromkeys(("reg:gamma", "gamma_regression"), "gamma"),
        **dict.fromkeys(("reg:tweedie", "tweedie_regression"), "tweedie"),
        **dict.fromkeys(("proportional_odds", "ordinal_logistic", "ordered_logit"), "ordinal_thresholds"),
        **dict.fromkeys(("adaboost", "exp"), "exponential"),
    },
    "regularizer": {
        **dict.fromkeys(("ridge", "tikhonov", "squared_l2", "weight_decay"), "l2"),
        "lasso": "l1",
        **dict.fromkeys(("group_lasso", "grouplasso", "grlasso", "group_l1"), "group_l2 with its groups"),
        **dict.fromkeys(("sparse_group_lasso", "sgl"), "sparse_group with its groups and l1_ratio"),
        **dict.fromkeys(("multi_task_lasso", "l21", "mtlasso", "l2_1"), "row_group_l2"),
        **dict.fromkeys(("nonnegative", "non_negative", "positive", "nnls", "bounds"), "box with lower and upper"),
        **dict.fromkeys(("elasticnet", "enet", "l1_l2", "l1l2"), "elastic_net with its l1_ratio"),
        **dict.fromkeys(("null", "unpenalized", "unregularized", "no_penalty", "mle"), "none"),
    },
    "solver": {
        "liblinear": "dual_coordinate or newton; auto chooses",
        **dict.fromkeys(("libsvm", "smo", "svmperf", "dcd", "sdca", "sdcm"), "dual_coordinate, or auto"),
        **dict.fromkeys(("sag", "saga", "svrg", "sgd", "adam", "adagrad", "rmsprop", "asgd"), _STOCHASTIC),
        **dict.fromkeys(("newton_cg", "newton_cholesky", "tron", "trust_ncg", "trust_region"), _NEWTON),
        **dict.fromkeys(("cholesky", "svd", "lsqr", "normal"), _NEWTON),
        **dict.fromkeys(("bfgs", "l_bfgs", "l_bfgs_b", "lbfgsb", "quasi_newton", "owlqn"), "lbfgs"),
        **dict.fromkeys(("cg", "sparse_cg", "conjugate_gradient"), "nonlinear_cg"),
        **dict.fromkeys(("cd", "cyclic", "lars", "glmnet"), "coordinate_descent or proximal_newton; auto chooses"),
        **dict.fromkeys(("ista", "fista", "gd", "gradient_descent", "prox", "pgd"), "proximal_gradient"),
        **dict.fromkeys(("interior_point", "simplex", "revised_simplex", "linprog"), _LINEAR_PROGRAM),
        **dict.fromkeys(("highs", "highs_ds", "highs_ipm"), _LINEAR_PROGRAM),
        **dict.fromkeys(("bmrm", "cutting_plane", "cutting_planes"), "bundle"),
        **dict.fromkeys(("admm", "alm", "ssnal", "augmented_lagrangian"), "semismooth_newton"),
        **dict.fromkeys(("default", "best"), "auto"),
    },
    "data format": {
        **dict.fromkeys(("libsvm", "liblinear", "svm", "svm_light", "svmrank", "svm_rank", "letor"), "svmlight"),
        **dict.fromkeys(("parquet", "feather", "ipc", "pyarrow"), "arrow"),
        **dict.fromkeys(("tsv", "text", "table", "dat", "delimited"), "csv with its delimiter"),
        **dict.fromkeys(("numpy", "scipy"), "npz, or npy"),
        **dict.fromkeys(("iob", "bio", "conll2000", "conll_2000", "crf++", "yamcha"), "conll with its templates"),
        **dict.fromkeys(("json", "jsonl", "excel", "xlsx", "xls", "hdf5", "h5", "arff", "sql", "pickle"), _OTHER_FILE),
    },
}
"""For names of other programs, by kind, in lower case with `_`: our name."""


def nearest(word: str, known: Iterable[str]) -> str:
    """' (did you mean X?)' for the closest of `known`, or the empty string."""
    if len(str(word)) > _LONGEST_WORD:
        return ""
    close = difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


def canonical(word: str, known: Collection[str]) -> str | None:
    """The one of `known` that is the same setting as `word`; None where there is none."""
    if word in known:
        return word
    return next((name for name in _SAME.get(word, ()) if name in known), None)


def answer(word: str, known: Iterable[str], door: str | Callable[[Setting], str]) -> str:
    """What to write instead of an unknown word: by the table of other programs, else the nearest of `known`.

    Parameters
    ----------
    door : "fit", "estimator" or "config", whose names are meant; or what gives the name of a setting.
    """
    plain = word.strip("-").replace("-", "_").lower()
    name_of = door if callable(door) else operator.attrgetter(door)
    if plain in ANSWERS:
        name, text = ANSWERS[plain]
        here = next((name_of(setting) for setting in SETTINGS if setting.fit == name), "")
        return f"; use {here}: {text} ({PAGE})" if here else f": {text} ({PAGE})"
    here = next((name_of(setting) for setting in SETTINGS if plain in setting.names), plain)
    if here == plain and door == "fit" and any(setting.fit == plain for setting in SETTINGS):
        return "; it is an argument of its own"
    return f"; use {here}" if here not in ("", plain) else nearest(word, known)


def elsewhere(kind: str, name: str) -> str | None:
    """What a loss, regularizer, solver or format of another program is called here; None for a name that none has."""
    plain = name.strip().lower()
    return ELSEWHERE.get(kind, {}).get(plain.replace("-", "_").replace(" ", "_"))


class ParameterError(InputError):
    """A parameter of a plug-in has a value that it cannot have; the message calls it as the user does.

    Parameters
    ----------
    owner : the class.
    field : the name of the parameter in Python.
    said : the rest of the message: "is -1.0, expected ...".
    word : what the user has written for it; "" for `field`.
    """

    def __init__(self, owner: str, field: str, said: str, word: str = "") -> None:
        super().__init__(f"{owner}: {word or field} {said}")
        self.owner, self.field, self.said, self.word = owner, field, said, word

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.owner, self.field, self.said, self.word)

    def called(self, words: Mapping[str, str]) -> ParameterError:
        """The same, with the word that stands for the field; itself where there is none."""
        word = words.get(self.field)
        return self if word is None else ParameterError(self.owner, self.field, self.said, word)


def translated(
    title: str, given: Mapping[str, Any], known: Collection[str], door: str, more: Hint | None = None
) -> dict[str, Any]:
    """Arguments by the names that they have here.

    Parameters
    ----------
    title : of the receiver, which messages begin with: "fit has no argument".
    more : asked first what to write instead of an unknown word; it returns "" where it does not know.

    Raises
    ------
    InputError
        For a word that means nothing here, with what to write; for two names of one setting.
    """
    found: dict[str, Any] = {}
    for word, value in given.items():
        name = canonical(word, known)
        if name is None:
            said = (more(word, given) if more is not None else "") or answer(word, known, door)
            raise InputError(f"{title} {shown(word)}{said}")
        if name in found:
            both = " and ".join(sorted(other for other in given if canonical(other, known) == name))
            raise InputError(f"{both} are the same setting, expected one of them")
        found[name] = converted(word, name, value)
    return found


def once(title: str, own: Mapping[str, Any], beside: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a mapping and those beside it; InputError where one stands in both."""
    for word in own:
        if word in beside:
            raise InputError(f"{title}: {word} is given twice, in the mapping and beside it")
    return {**own, **beside}


def converted(word: str, name: str, value: Any) -> Any:
    """The value of `word` as that of `name`, which is the same setting."""
    if word == name or {word, name} != {"bias", "fit_intercept"}:
        return value
    meanings = BIAS_OF if name == "bias" else {"none": False, "free": True, None: True}
    if not any(value is one or (isinstance(value, str) and value == one) for one in meanings):
        instead = "true or false" if name == "bias" else "none or free, or fit_intercept"
        raise InputError(f"{word} is {shown(value)}, expected {instead}")
    return meanings[value]


BIAS_OF: Mapping[Any, str | None] = {True: None, False: "none"}
"""`bias` for a value of `fit_intercept`; None is the default, a free intercept where the loss has one."""


def other_words(door: str, title: str = "", more: Hint | None = None) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorator: keywords may have the names of other doors; unknown ones are an InputError with what to write.

    Parameters
    ----------
    door, more : as of `answer` and `translated`.
    title : what the function is called in messages; None for its name.
    """

    def wrapped(function: Callable[P, T]) -> Callable[P, T]:
        known = list(inspect.signature(function).parameters)

        @functools.wraps(function)
        def call(*args: P.args, **given: P.kwargs) -> T:
            if not any(word not in known for word in given):
                return function(*args, **given)
            said = f"{title or function.__name__} has no argument"
            words = {canonical(word, known) or word: word for word in given}
            given = translated(said, given, known, door, more)  # type: ignore[assignment]
            try:
                return function(*args, **given)
            except ParameterError as error:
                raise error.called(words) from None

        return call

    return wrapped
