"""The fields of a config: types, defaults, ranges and what each is, from which tables and the JSON Schema are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from bmrm.app.calibration.asked import checked as calibration_of
from bmrm.app.calibration.curves import METHODS
from bmrm.app.stopping import checked as stopping_of
from bmrm.data.class_weights import BALANCED, pairs_of
from bmrm.data.raw_columns import FORMS as TEXT_FORMS
from bmrm.mpi.guard import Guard
from bmrm.problem import InputError

_STRICT = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def _no_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a number, not true or false")
    return value


def _file_list(value: Any) -> Any:
    if isinstance(value, str):
        value = (value,)
    if not isinstance(value, (list, tuple)) or not value or not all(isinstance(v, str) and v for v in value):
        raise ValueError("a path or a list of paths")
    return tuple(value)


def _columns(value: Any) -> Any:
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        value = (value,)
    if not isinstance(value, (list, tuple)) or not all(type(one) in (int, str) and one != "" for one in value):
        raise ValueError("a list of columns: names, or numbers from 0")
    return tuple(value)


def _forms(value: Any) -> Any:
    if not isinstance(value, dict) or not all(
        type(key) in (int, str) and form in TEXT_FORMS for key, form in value.items()
    ):
        raise ValueError("columns with `hashed` or `counted`, such as {comment: hashed}")
    return value


def _names(value: Any) -> Any:
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
        raise ValueError("a list of measures, such as [auc, log_loss], or null")
    return tuple(value)


def _label(value: Any) -> Any:
    if value is None or (isinstance(value, (int, float, str)) and not isinstance(value, bool)):
        return value
    raise ValueError("a label: a number or text")


def _factors(value: Any) -> Any:
    try:
        return pairs_of(value)
    except InputError as error:
        raise ValueError(str(error).partition(", expected ")[2] or "each label once") from error


def _plain(checked: Callable[[Any], Any]) -> BeforeValidator:
    """What a record says of itself in plain JSON; its message is what it expects."""

    def validated(value: Any) -> Any:
        try:
            found = checked(value)
        except InputError as error:
            raise ValueError(str(error).partition(", expected ")[2]) from error
        return None if found is None else found.plain()

    return BeforeValidator(validated)


def _record(properties: Mapping[str, Any], required: Sequence[str] = ()) -> dict[str, Any]:
    """JSON Schema of an object with these fields and no others."""
    needed = {"required": [*required]} if required else {}
    return {"type": "object", "properties": dict(properties), **needed, "additionalProperties": False}


def _offset(value: Any) -> Any:
    parts = ("train", "validation", "test")
    if (
        isinstance(value, Mapping)
        and set(value) <= set(parts)
        and all(isinstance(v, str) and v for v in value.values())
    ):
        return dict(value)
    if value is None or (isinstance(value, str) and value):
        return value
    raise ValueError("the name of a column, a file, or {train: FILE, test: FILE}")


Count = Annotated[int, BeforeValidator(_no_bool), Field(ge=-(2**63), lt=2**63)]
Number = Annotated[float, BeforeValidator(_no_bool)]
Files = Annotated[tuple[str, ...], BeforeValidator(_file_list)]
Columns = Annotated[tuple[str | int, ...], BeforeValidator(_columns)]
Forms = Annotated[dict[str | int, Literal["hashed", "counted"]], BeforeValidator(_forms)]
Label = Annotated[Any, BeforeValidator(_label)]
Calibration = Annotated[
    dict[str, Any] | None,
    _plain(calibration_of),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": [*METHODS]},
                _record(
                    {
                        "method": {"enum": [*METHODS]},
                        "folds": {"anyOf": [{"type": "integer", "minimum": 2}, {"type": "null"}]},
                    },
                    required=["method"],
                ),
                {"type": "null"},
            ]
        }
    ),
]
Stop = Annotated[
    dict[str, Any] | None,
    _plain(stopping_of),
    WithJsonSchema(
        {
            "anyOf": [
                _record(
                    {"measure": {"type": "string"}, "patience": {"type": "integer", "minimum": 1}},
                    required=["measure"],
                ),
                {"type": "null"},
            ]
        }
    ),
]
Factors = Annotated[
    str | tuple[tuple[Any, float], ...] | None,
    BeforeValidator(_factors),
    WithJsonSchema(
        {
            "anyOf": [
                {"const": BALANCED},
                {"type": "object", "additionalProperties": {"type": "number", "minimum": 0}},
                {"type": "array", "items": {"type": "array", "minItems": 2, "maxItems": 2}},
                {"type": "null"},
            ]
        }
    ),
]
Guarded = Annotated[
    dict[str, Any] | None,
    _plain(Guard.checked),
    WithJsonSchema(
        {
            "anyOf": [
                _record(
                    {
                        "min_rows": {"type": "integer", "minimum": 2, "default": Guard.min_rows},
                        "secure_sums": {"type": "boolean", "default": Guard.secure_sums},
                    }
                ),
                {"type": "boolean"},
                {"type": "null"},
            ]
        }
    ),
]
Offset = Annotated[str | dict[str, str] | None, BeforeValidator(_offset)]


class DataSection(BaseModel):
    """What to read."""

    model_config = _STRICT
    train: Files = Field(
        description="training rows: a path, a list of paths, a glob, a path with `{rank}`, "
        "`sklearn:NAME` or `synthetic:NAME`"
    )
    validation: Files | None = Field(None, description="rows to score after training")
    test: Files | None = Field(None, description="rows to score after training")
    format: str | dict[str, Any] = Field(
        "auto", description="`auto` (by name and content), the name of a format, or `{name: ..., option: value}`"
    )
    header: bool | None = Field(
        None,
        description="whether the first line of csv files holds the names of the columns; null = by what it holds, "
        "which the run says where it is not certain",
    )
    ignore: Columns | None = Field(
        None,
        description="columns that are left out, by name or number from 0; null = none but the index of a data frame, "
        "which `[]` keeps",
    )
    categorical: Columns | None = Field(
        None,
        description="columns of numbers that are categories all the same, by name or number from 0; those of text are "
        "in any case: each level is a feature, such as `town=Oslo`; null = none",
    )
    text: Forms | None = Field(
        None,
        description="columns whose words are features, `{column: hashed}` (as scikit-learn's `HashingVectorizer`) or "
        "`counted` (`CountVectorizer`); null = none",
    )
    missing: Literal["refuse", "mean", "indicator", "zero"] = Field(
        "refuse",
        description="what stands in place of a missing number: `mean`, that with a feature which is 1 there "
        "(`indicator`), or `zero`; a missing category is a level, `town=missing`, or has only zeros",
    )
    drop_first: bool = Field(False, description="whether the first level of each category has no feature")
    rare: Annotated[Count, Field(ge=1)] | None = Field(
        None, description="levels with fewer rows are one, `town=(rare)`; null = none"
    )
    dimension: Annotated[Count, Field(ge=1, le=2**31)] | None = Field(
        None, description="number of features; null = the largest index on any rank"
    )
    bias: Literal["free", "regularized", "none"] | None = Field(
        None,
        description="`free`: an intercept that the regularizer does not touch; `regularized`: a constant feature 1; "
        "null = `free` where the loss has such an intercept, else `none`; `none` for sequences, whose transitions take "
        "its place",
    )
    scale: Literal["none", "unit_norm", "standardize", "max_abs"] = Field(
        "none", description="`unit_norm` per row; `standardize`, `max_abs` per feature, folded back into the weights"
    )
    features: dict[str, Any] | None = Field(
        None,
        description="a map of the rows, scaled as `scale` says, to other features, in which the model is linear: a "
        "name or `{name: ..., option: value}`; null = none",
    )
    weights: str | None = Field(None, description="a file with one sample weight per row")
    offset: Offset = Field(
        None,
        description="what is added to the scores of the rows, outside the weights: the name of a column, which is no "
        "feature then, or a file with a number per row, or as many as there are scores; with other parts "
        "`{train: FILE, test: FILE}`; null = 0",
    )
    share_rows: bool | None = Field(
        None,
        description="whether ranks may give rows to one another: all dealt out by chance, some for rank 0 to start "
        "from, all of a small problem for rank 0; null = unless a path has `{rank}`",
    )
    guard: Guarded = Field(
        None,
        description="ranks answer by sums over at least `min_rows` of their rows, and refuse what would tell of single "
        "ones: `true`, or `{min_rows: 10, secure_sums: false}`, where `secure_sums` hides from rank 0 whose parts sums "
        "are made of; null = no guard",
    )
    positive_label: Label = Field(None, description="of two classes the positive one; null = the last in sort order")
    classes: Literal["together", "one_vs_rest"] = Field(
        "together",
        description="`one_vs_rest`: a loss of two classes for each class against all others",
    )
    labels: Literal["together", "each"] = Field(
        "together",
        description="`each`: a loss of two classes for each label of rows that may have several",
    )
    class_weight: Factors = Field(
        None,
        description="factors of the weights of training rows by their class, `{label: factor}`, 1 where none is given; "
        "`balanced`: all classes weigh the same; null = 1",
    )


class OutputSection(BaseModel):
    """Where to write."""

    model_config = _STRICT
    directory: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="folder of the run's files; null = `runs/` and the name of the config file"
    )
    checkpoint_every: Annotated[Number, Field(gt=0)] | None = Field(
        60.0, description="seconds between two savings of the best model so far, `checkpoint.npz`; null = never"
    )
    overwrite: bool = Field(
        False, description="whether files in the folder that are of another problem or other data are replaced"
    )
    metrics: Annotated[tuple[str, ...], BeforeValidator(_names)] | None = Field(
        None,
        description="measures of the rows of each part, such as `[auc, map, ndcg@5]`: any that fit the task, see "
        "`bmrm measures`; null = those of the loss",
    )
    follow: Annotated[tuple[str, ...], BeforeValidator(_names)] | None = Field(
        None, description="measures of the validation rows while the solver runs, such as `[map]`; null = none"
    )
    follow_every: Annotated[Count, Field(ge=1)] = Field(10, description="iterations between two such measurements")


class MpiSection(BaseModel):
    """How ranks work together."""

    model_config = _STRICT
    timeout: Annotated[Number, Field(ge=1)] | None = Field(
        600.0, description="seconds without a sign of life of a rank after which the job ends; null = never"
    )
    slices: bool = Field(
        False,
        description="whether each rank runs the solver on a slice of the features, so that planes and vectors are "
        "divided among the ranks; for `bundle`, `line_search_bundle` and `lbfgs` with `l2`",
    )


class Settings(BaseModel):
    """A whole config, checked; `loss`, `regularizer`, `solver` are `{name: ..., option: value}` with every option."""

    model_config = _STRICT
    version: Annotated[Literal[1, 2], BeforeValidator(_no_bool)] = Field(
        2,
        alias="schema",
        description="version of this schema; 1 is read with its defaults, such as `data.bias: none`",
    )
    data: DataSection
    loss: dict[str, Any] | None = Field(
        None,
        description="a name or `{name: ..., option: ...}`, see `bmrm losses`; null = by the targets: `hinge` for two "
        "classes, `multiclass_hinge` for more, `least_squares` for numbers",
    )
    regularizer: dict[str, Any] = Field(description="a name or `{name: ..., option: ...}`; see `bmrm regularizers`")
    solver: dict[str, Any] = Field(description="a name or `{name: ..., option: ...}`; see `bmrm solvers`")
    search: dict[str, Any] | None = Field(
        None, description="several trainings, of which one is kept: a name or `{name: ..., option: ...}`"
    )
    calibrate: Calibration = Field(
        None,
        description="probabilities of any loss of classes from its scores: `sigmoid`, `isotonic`, or `{method: ..., "
        "folds: 5}`; on the validation rows, else on rows that are left out in turn; null = those of the loss, if any",
    )
    start: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="a model or a checkpoint to go on from: a path; a checkpoint must be of the same problem"
    )
    output: OutputSection = Field(default_factory=lambda: OutputSection.model_validate({}))
    mpi: MpiSection = Field(default_factory=lambda: MpiSection.model_validate({}))
    seed: Annotated[Count, Field(ge=0, lt=2**32)] = Field(0, description="of everything that draws random numbers")

    def plain(self) -> dict[str, Any]:
        """Plain JSON, which ranks exchange and from which `config.yaml` is written."""
        return self.model_dump(mode="json", by_alias=True)
