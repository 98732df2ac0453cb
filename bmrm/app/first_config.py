"""A config to begin with, from a look at the data: loss, intercept and scaling that fit them, with comments."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from bmrm.app.config.config import run_name
from bmrm.app.config.marks import yaml_value
from bmrm.app.defaults import default_bias
from bmrm.app.profile import Profile, look, profile_of
from bmrm.data.dataset import Dataset
from bmrm.data.files import open_bytes
from bmrm.data.matrix import features_of
from bmrm.data.readers.conll import Conll
from bmrm.data.reading import format_for, parted
from bmrm.losses import LOSSES
from bmrm.problem import facts_of

UNEVEN = 10.0
"""Ratio of the spreads of features above which they are standardized."""
WORD_AND_LABEL = 2
"""Fewest columns of a file of tokens."""
FREE = "an intercept that the regularizer does not touch; else: regularized (a constant feature 1), none"
SAMPLE = 10_000
"""Rows from which spreads are estimated."""


@dataclass(frozen=True)
class Choice:
    """What a config begins with, and why.

    Attributes
    ----------
    loss : its name.
    why : the reason, in words.
    others : losses that would fit too, in words.
    """

    loss: str
    why: str
    others: str


CHOICES: Mapping[str, Choice] = {
    "sequence": Choice(
        "chain_crf", "a label for each token", "chain_margin; `transitions: observed` for features of transitions"
    ),
    "novelty": Choice("novelty", "no labels, or only one", "-"),
    "sets": Choice("multilabel_hinge", "a set of labels for each row", "-"),
    "vectors": Choice("multivariate_least_squares", "several numbers for each row", "-"),
    "ranking": Choice(
        "rank_hinge", "rows in groups, with grades", "ndcg, mean_reciprocal_rank; chain_crf for sequences"
    ),
    "binary": Choice("hinge", "two labels", "logistic (probabilities), squared_hinge, roc_area, f_beta"),
    "multiclass": Choice("softmax", "several labels", "multiclass_hinge, weston_watkins; ordinal for grades"),
    "regression": Choice("least_squares", "numbers", "huber, least_absolute_deviation, quantile, poisson for counts"),
}
"""Losses by the kind of the targets."""


def kind_of(profile: Profile, text: bool) -> str:
    """The key of `CHOICES` for data; `text`: features are made by templates."""
    if profile.kind == "none" or (profile.kind == "labels" and profile.distinct == 1):
        return "novelty"
    if text or profile.kind in ("sets", "vectors"):
        return "sequence" if text else profile.kind
    if profile.groups is not None and profile.whole:
        return "ranking"
    if profile.distinct == 2:
        return "binary"
    return "multiclass" if profile.kind == "labels" else "regression"


def first_config(source: str, format: Any = "auto", columns: Mapping[str, Any] | None = None) -> str:
    """The text of a config that trains on a source.

    Parameters
    ----------
    source : as of `data.train`: one file, glob, `sklearn:NAME` or `synthetic:NAME`.
    format : as of `data.format`.
    columns : fields of the section `data` about columns that are given, see `bmrm.app.profile.look`.

    Raises
    ------
    InputError
        The source cannot be read, or has no such columns.
    """
    format, columns = _suited(source, format), {} if columns is None else columns
    data, text = look(source, format, columns)
    profile = profile_of(data, source)
    notes = () if data.layout is None else data.layout.notes
    offset_in_file = "offset" in columns and (data.layout is None or data.layout.offset is None)
    test = None if offset_in_file else test_of(source)  # of its rows no offset is known
    return _text(source, format, profile, CHOICES[kind_of(profile, text)], scaling(data), test, notes, columns)


def _suited(source: str, format: Any) -> Any:
    """The format; for columns of tokens and labels alone, with templates that need no more."""
    path = Path(source)
    if format != "auto" or not path.is_file() or not isinstance(format_for(path, format), Conll):
        return format
    with open_bytes(path) as file:
        first = next((line.split() for line in file if line.strip()), [])
    return {"name": "conll", "templates": "tagging"} if len(first) == WORD_AND_LABEL else format


def scaling(data: Dataset) -> tuple[str, str]:
    """`data.scale` and the reason."""
    table = features_of(data.X).table
    if table is None:
        return "none", "none | unit_norm | standardize | max_abs"
    spread = np.std(table[:SAMPLE], axis=0)
    spread = spread[spread > 0.0]
    if spread.size and spread.max() > UNEVEN * spread.min():
        return "standardize", f"the features' standard deviations go from {spread.min():.2g} to {spread.max():.2g}"
    return "none", "the features are of similar size"


def test_of(source: str) -> str | None:
    """A file beside it that has the name of its test rows: a9a.t for a9a, test.csv for train.csv."""
    path = Path(source)
    if not path.is_file():
        return None
    names = [f"{path.name}.t", path.name.replace("train", "test")]
    found = (path.with_name(name) for name in names if name != path.name)
    return next((str(one) for one in found if one.is_file()), None)


def _text(
    source: str,
    format: Any,
    profile: Profile,
    choice: Choice,
    scale: tuple[str, str],
    test: str | None,
    notes: Sequence[str],
    given: Mapping[str, Any],
) -> str:
    format, columns = parted(format)
    columns = {**columns, **given}
    groups = "" if profile.groups is None else f", {profile.groups} groups"
    named = "auto" if format == "auto" else _section(format)
    found = f"{profile.format}: " if profile.format else ""
    test_line = "# test: FILE" if test is None else f"test: {_quoted(test)}"
    loss = LOSSES.get(choice.loss).cls
    facts = facts_of(loss)
    why = facts.no_free_intercept or facts.instead_of_intercept or FREE
    positive = "\n  # positive_label: ...    # of the two labels; the last in sort order unless given"
    return f"""\
# Written by `bmrm init`; `bmrm train` runs it, `bmrm train --help` lists all fields.
# {found}{profile.rows} rows, {profile.features} features, {profile.density:.3%} not 0{groups}
# targets: {_one_line(profile.targets_in_words())}{"".join(f"{chr(10)}# {note}" for note in notes)}
schema: 2
data:
  train: {_quoted(source)}
  {test_line}
  format: {named}{"".join(f"{chr(10)}  {key}: {_listed(value)}" for key, value in columns.items())}
  bias: {default_bias(loss)}    # {why}
  scale: {scale[0]}    # {scale[1]}{positive if profile.distinct == 2 and choice.loss == "hinge" else ""}
loss: {choice.loss}    # {choice.why}; others: {choice.others}
regularizer:
  name: l2    # l1 and elastic_net give weights of 0
  lambda: {1.0 / profile.rows:.2g}    # 1 / rows; larger for simpler models
solver:
  name: auto
  tolerance: 1.0e-4    # relative gap to the proved lower bound at which it ends
output:
  directory: {_quoted(f"runs/{run_name(source)}")}
seed: 0
"""


def _section(format: Any) -> str:
    """A format in one line, without options that are null."""
    plain = {key: value for key, value in format.items() if value is not None} if isinstance(format, dict) else format
    return yaml.safe_dump(plain, default_flow_style=True, sort_keys=False, width=1000).split("\n")[0]


def _listed(value: Any) -> str:
    """`data.header` or `data.ignore` as YAML."""
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def _quoted(text: str) -> str:
    """Text as YAML, in quotes where it needs them."""
    plain = re.fullmatch(r"[\w./-]+", text, re.ASCII) and yaml_value(text, text) == text
    return text if plain else json.dumps(text)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:100]
