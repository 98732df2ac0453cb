"""A C file (C99) without dependencies: scores, labels and probabilities of a row."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, ClassVar

import numpy as np

from bmrm.app.export import register
from bmrm.app.export._core.exported import (
    EXPONENTIAL,
    NAMES,
    SEVERAL_OUTPUTS,
    SIGMOID,
    TEXT_LABELS,
    UNIT_NORM,
    Exported,
)
from bmrm.problem import InputError
from bmrm.registry import parameter

AT_ONCE = 4
"""Numbers in a line."""
SCORES = """
/* x: {name}_dim numbers; scores: {name}_count of them. */
void {name}_scores(const double *x, double *scores)
{{
    double factor = 1.0;
    for (size_t k = 0; k < {scores}; k++)
        scores[k] = 0.0;
    for (size_t j = 0; j < {dim}; j++)
        if (x[j] != 0.0)
            for (size_t k = 0; k < {scores}; k++)
                scores[k] += x[j] * {name}_weights[j * {scores} + k];
{norm}    for (size_t k = 0; k < {scores}; k++)
        scores[k] = factor * scores[k] + {name}_intercept[k];
}}

/* The same of a row of `entries` numbers, `values[i]` in the column `columns[i]`, counted from 0. */
void {name}_scores_sparse(size_t entries, const size_t *columns, const double *values, double *scores)
{{
    double factor = 1.0;
    for (size_t k = 0; k < {scores}; k++)
        scores[k] = 0.0;
    for (size_t i = 0; i < entries; i++)
        if (columns[i] < {dim})
            for (size_t k = 0; k < {scores}; k++)
                scores[k] += values[i] * {name}_weights[columns[i] * {scores} + k];
{sparse_norm}    for (size_t k = 0; k < {scores}; k++)
        scores[k] = factor * scores[k] + {name}_intercept[k];
}}
"""
NORM = """    {{
        double square = 0.0;
        for (size_t i = 0; i < {entries}; i++)
            square += {entry} * {entry};
        if (square > 0.0)
            factor = 1.0 / sqrt(square);
    }}
"""
SIGN = """
/* The place of the predicted label among {name}_labels, from the scores. */
size_t {name}_label(const double *scores)
{{
    return scores[0] > 0.0 ? 1 : 0;
}}
"""
LARGEST = """
/* The place of the predicted label among {name}_labels, from the scores. */
size_t {name}_label(const double *scores)
{{
    size_t best = 0;
    for (size_t k = 1; k < {scores}; k++)
        if (scores[k] > scores[best])
            best = k;
    return best;
}}
"""
VALUE = """
/* The predictions, from the scores. */
void {name}_values(const double *scores, double *values)
{{
    for (size_t k = 0; k < {scores}; k++)
        values[k] = {value};
}}
"""
TWO = """
/* The probabilities of {name}_labels, from the scores. */
void {name}_probabilities(const double *scores, double *probabilities)
{{
    {formula}
}}
"""
FORMULAS = {
    "sigmoid": """double f = {slope} * ({score}) + {offset};
    double e = exp(-fabs(f));
    int positive = f > 0.0;
    probabilities[positive] = 1.0 / (1.0 + e);
    probabilities[!positive] = e / (1.0 + e);""",
    "sigmoids": """static const double lines[{scores}][2] = {lines};
    double total = 0.0;
    for (size_t k = 0; k < {scores}; k++)
        total += probabilities[k] = 1.0 / (1.0 + exp(-(lines[k][0] * scores[k] + lines[k][1])));
    for (size_t k = 0; k < {scores}; k++)
        probabilities[k] = total > 0.0 ? probabilities[k] / total : 1.0 / {scores};""",
    "clip": """double f = fmin(fmax(scores[0], -1.0), 1.0);
    probabilities[0] = 0.5 * (1.0 - f);
    probabilities[1] = 0.5 * (1.0 + f);""",
    "softmax": """double most = scores[0], total = 0.0;
    for (size_t k = 1; k < {scores}; k++)
        most = fmax(most, scores[k]);
    for (size_t k = 0; k < {scores}; k++)
        total += probabilities[k] = exp(scores[k] - most);
    for (size_t k = 0; k < {scores}; k++)
        probabilities[k] /= total;""",
}
"""By the form of the probabilities."""


@register("c")
@dataclass(frozen=True)
class C:
    """A C file without dependencies, whose functions give scores, labels and probabilities of a row."""

    prefix: str = parameter("model", doc="how the names of its functions begin", example="spam")

    says: ClassVar[frozenset[str]] = frozenset({NAMES, UNIT_NORM, TEXT_LABELS, EXPONENTIAL, SEVERAL_OUTPUTS, SIGMOID})
    instead: ClassVar[str] = "; json says all of these"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", self.prefix):
            raise InputError(f"export format c: prefix is {self.prefix!r:.40}, expected a name of C, such as model")

    def write(self, model: Exported, stream: IO[bytes]) -> None:
        """The content of the file."""
        stream.writelines(piece.encode("ascii") for piece in _pieces(model, self.prefix))


def _pieces(model: Exported, name: str) -> Iterator[str]:
    facts = {"name": name, "scores": model.scores, "dim": model.dim, "norm": "", "sparse_norm": ""}
    if model.unit_norm:
        facts["norm"] = NORM.format(entries=model.dim, entry="x[i]")
        facts["sparse_norm"] = NORM.format(entries="entries", entry="values[i]")
    yield f"/* {model.title} */\n#include <math.h>\n#include <stddef.h>\n\n"
    yield f"const size_t {name}_dim = {model.dim}, {name}_count = {model.scores};\n"
    yield from _labels(model, name)
    if model.names is not None:
        names = ",\n    ".join(map(_quoted, model.names))
        yield f"const char *const {name}_features[{model.dim}] = {{\n    {names}}};\n"
    yield from _numbers(f"{name}_weights", model.weights.ravel())
    yield from _numbers(f"{name}_intercept", model.intercept)
    yield SCORES.format(**facts)
    if model.predicts in ("sign", "largest"):
        yield (SIGN if model.predicts == "sign" else LARGEST).format(**facts)
    else:
        value = "exp(scores[k])" if model.predicts == "exponential" else "scores[k]"
        yield VALUE.format(**facts, value=value)
    if model.probabilities is not None:
        form = model.probabilities
        (slope, offset), several = form.lines[0], len(form.lines) > 1
        lines = ", ".join(f"{{{a!r}, {b!r}}}" for a, b in form.lines)
        formula = FORMULAS["sigmoids" if several else form.form].format(
            scores=model.scores,
            score="scores[0]" if model.scores == 1 else "scores[1] - scores[0]",
            slope=repr(slope),
            offset=repr(offset),
            lines=f"{{{lines}}}",
        )
        yield TWO.format(**facts, formula=formula)


def _labels(model: Exported, name: str) -> Iterator[str]:
    labels = model.labels
    if not labels.size:
        return
    yield f"/* {'The score is that of the second.' if model.predicts == 'sign' else 'In the order of scores.'} */\n"
    if labels.dtype.kind in "UmM":
        kind, values = "const char *const", [_quoted(label) for label in labels.astype(np.str_).tolist()]
    elif labels.dtype.kind == "f":
        kind, values = "const double", list(map(repr, labels.astype(np.float64).tolist()))
    elif labels.dtype.kind == "u" and labels.max() > 2**63 - 1:
        kind, values = "const unsigned long long", [f"{label}ull" for label in labels.tolist()]
    else:
        kind, values = "const long long", [f"{int(label)}ll" for label in labels.tolist()]
    yield f"{kind} {name}_labels[{len(values)}] = {{{', '.join(values)}}};\n"


def _numbers(name: str, values: np.ndarray) -> Iterator[str]:  # type: ignore[type-arg]
    yield f"static const double {name}[{values.size}] = {{\n"
    for start in range(0, values.size, AT_ONCE):
        yield f"    {', '.join(map(repr, values[start : start + AT_ONCE].tolist()))},\n"
    yield "};\n"


def _quoted(text: str) -> str:
    """A string of C: UTF-8 bytes other than plain letters in octal, each of three digits, so that none runs on."""
    plain = json.dumps(text)
    if plain.isascii() and plain[1:-1] == text and "?" not in text and text.isprintable():
        return plain
    quoted = "".join(
        chr(byte) if chr(byte).isalnum() and byte < 128 else f"\\{byte:03o}" for byte in text.encode("utf-8", "replace")
    )
    return f'"{quoted}"'
