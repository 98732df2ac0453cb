"""What the losses of sequence labeling share: sentences, scores of transitions, prediction by the best labeling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.vectors import plain
from bmrm.kernels.sequences.curvature import chain_curvatures
from bmrm.kernels.sequences.likelihood import chain_likelihoods
from bmrm.kernels.sequences.margins import Margins, margins_of, oracle_of
from bmrm.kernels.sequences.viterbi import best_labels, best_labels_observed
from bmrm.losses._core import domain
from bmrm.losses._core.prepared import NO_WEIGHTS, Array, Curve, Positions
from bmrm.losses._core.rescaling import rescaled
from bmrm.losses.base import Labels, LossBase
from bmrm.problem import Hessian, InputError, PreparedLoss, Summary, Targets, Vector
from bmrm.registry import parameter


class PreparedChains(PreparedLoss):
    """Some sentences, ready to be evaluated.

    Attributes
    ----------
    y : (tokens,) positions of labels, int64.
    starts : (sentences + 1,) int64, where each sentence starts, and the number of tokens.
    weights : (sentences,), or None where all are 1.
    labels : K.
    """

    infimum = 0.0

    def __init__(self, loss: Any, y: Positions, starts: Positions, weights: Vector | None, labels: int) -> None:
        self.loss, self.y, self.starts, self.weights, self.labels = loss, y, starts, weights, labels
        self.observed = loss.transitions == "observed"
        self.scores_per_row = labels + (labels * labels if self.observed else 0)
        self.extra_dim = labels * labels
        self.mass = float(starts.size - 1) if weights is None else float(weights.sum())
        self.smooth = bool(loss.smooth)

    def part(self, start: int, stop: int) -> PreparedChains:
        """The tokens [start, stop), whole sentences."""
        first, last = np.searchsorted(self.starts, (start, stop))
        if self.starts[first] != start or self.starts[last] != stop:
            raise InputError(f"{self.loss.title}: the rows {start} to {stop} part a sentence")
        weights = None if self.weights is None else self.weights[first:last]
        starts = self.starts[first : last + 1] - start
        return type(self)(self.loss, self.y[start:stop], starts, weights, self.labels)

    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """The weighted sum over the sentences, and its slope; `f` and slope are flat, the transitions last."""
        f = plain(f)
        slope = np.zeros_like(f)
        return float(self._add_up(*self._split(f), *self._split(slope))), slope

    def _add_up(self, f: Array, transitions: Array, slope: Array, transitions_slope: Array) -> float:
        """The weighted sum; the slopes, which are 0, are filled."""
        raise TypeError(f"{type(self).__name__} defines no sum over sentences")

    @property
    def _kernel_weights(self) -> Vector:
        return NO_WEIGHTS if self.weights is None else self.weights

    def _split(self, f: Array) -> tuple[Array, Array]:
        rows = self.y.shape[0]
        border = rows * self.scores_per_row
        return f[:border].reshape(rows, self.scores_per_row), f[border:].reshape(self.labels, self.labels)


class LikelihoodChains(PreparedChains):
    """Sentences for `chain_crf`."""

    hessian: Hessian = "product"

    def _add_up(self, f: Array, transitions: Array, slope: Array, transitions_slope: Array) -> float:
        own = (self.observed, self.y, self.starts, self._kernel_weights)
        return chain_likelihoods(f, transitions, *own, slope, transitions_slope)

    def hessian_product(self, f: Array, step: Array) -> Array:
        """The second derivative of the weighted sum at `f`, times `step`; a new flat array."""
        f, step = plain(f), plain(step)
        product = np.zeros_like(f)
        at, along, into = self._split(f), self._split(step), self._split(product)
        chain_curvatures(*at, self.observed, *along, self.starts, self._kernel_weights, *into)
        return product

    def marginals(self, f: Array) -> Array:
        """How probable each label of each token is at the flat `f`: (tokens, K)."""
        _, slope = self.value_and_slope(f)
        shares: Array = self._split(slope)[0][:, : self.labels].copy()
        shares[np.arange(self.y.size), self.y] += 1.0  # the slope is the marginals minus the labels `y`
        return shares


class MarginChains(PreparedChains):
    """Sentences for `chain_margin`."""

    scaled = False

    @property
    def worst_labeling(self) -> Callable[..., None]:
        """The compiled search for the labeling of most errors + score, which dual steps use."""
        return oracle_of(self.observed)

    def _add_up(self, f: Array, transitions: Array, slope: Array, transitions_slope: Array) -> float:
        add_up, _ = margins_of(self.observed, self.scaled)
        total: float = add_up(f, transitions, self._sentences, slope, transitions_slope)
        return total

    @cached_property
    def _sentences(self) -> Margins:
        errors = np.arange(1.0 + np.diff(self.starts).max(initial=0))
        return Margins(self.observed, self.y, self.starts, self._kernel_weights, *self._tables(errors))

    def _tables(self, errors: Array) -> tuple[Array, Array]:
        """Margins and rates by the number of errors, 0, 1 and so on."""
        return errors, np.ones_like(errors)

    def along(self, f: Array, step: Array) -> Curve:
        """The function t -> (sum at f + t step, its derivative in t), for a vector of t; no slope is formed."""
        at, towards = self._split(plain(f)), self._split(plain(step))
        sentences = self._sentences
        _, along = margins_of(self.observed, self.scaled)

        def curve(ts: Vector) -> tuple[Vector, Vector]:
            ts = np.array(ts, np.float64)
            values, derivatives = np.empty_like(ts), np.empty_like(ts)
            along(*at, *towards, sentences, ts, values, derivatives)
            return values, derivatives

        return curve


class ScaledMarginChains(MarginChains):
    """Sentences for `chain_scaled_margin`."""

    scaled = True

    def __init__(self, loss: Any, y: Positions, starts: Positions, weights: Vector | None, labels: int) -> None:
        super().__init__(loss, y, starts, weights, labels)
        _ = self._sentences  # which refuses powers that are not finite

    def _tables(self, errors: Array) -> tuple[Array, Array]:
        return rescaled(errors, errors == 0.0, self.loss.margin, self.loss.beta, self.loss.title)


def sentence_starts(groups: NDArray[np.int64] | None, rows: int, loss: str) -> Positions:
    """(sentences + 1,) int64: the first row of each run of equal groups, then the number of rows."""
    if groups is None and rows:
        raise InputError(f"{loss}: no groups, expected the number of its sentence for each token")
    inner = np.empty(0, np.int64) if groups is None else np.flatnonzero(np.diff(groups)) + 1
    ends = [0, rows] if rows else [0]
    return np.concatenate((ends[:1], inner, ends[1:])).astype(np.int64)


def sentence_weights(weights: Vector | None, starts: Positions, loss: str) -> Vector | None:
    """(sentences,): the weight that all tokens of a sentence share."""
    if weights is None:
        return None
    each = weights[starts[:-1]]
    other = np.flatnonzero(weights != np.repeat(each, np.diff(starts)))
    if other.size:
        raise InputError(f"{loss}: the weight of row {other[0]} differs from that of the rest of its sentence")
    return each


@dataclass(frozen=True)
class ChainLoss(LossBase):
    """A label per token, transitions of order 1 between them.

    A row is a token, a group of consecutive rows a sentence. The score of a labeling y of a sentence is

        s(y) = sum_t f[t, y_t] + sum_{t > 1} T[y_{t-1}, y_t]

    with the scores `f` of its tokens and the (K, K) transitions `T`, parameters that are learned and regularized with
    the weights. R is the mean over sentences, by weight; all tokens of a sentence have one weight. (CRFsuite and CRF++
    minimise a sum over sentences: with N of them, their `c2` is lambda N / 2 and their `C` is 1 / (lambda N).)

    With `transitions: observed` each token has K K scores more, (i, j) after the K of the labels, which are added to
    `T[i, j]` for the transition into it: every feature then has a weight for every transition, too.
    """

    transitions: str = parameter(
        "constant",
        choices=("constant", "observed"),
        doc="constant: a number for each pair of labels; observed: every feature speaks on each pair as well",
        example="observed",
    )

    task: ClassVar[str] = "sequence"
    instead_of_intercept: ClassVar[str] = "the scores of transitions tell how frequent labels are"
    decomposes: ClassVar[Literal["rows", "groups", "no"]] = "groups"
    metrics = ("token_accuracy", "token_f1", "chunk_f1")
    by_group = True

    prepared: ClassVar[type[PreparedChains]]
    """What `prepare` makes."""

    def summarise(self, targets: Targets) -> Summary:
        """The labels of these tokens and how many have each."""
        return domain.summary_of_labels(targets, self.title)

    def prepare(self, targets: Targets, summary: Summary) -> PreparedChains:
        """Bind to some sentences; InputError without groups, or with less than two labels over all rows."""
        if len(summary.labels) < 2:
            found = f"only one label: {domain.listed(summary.labels)}" if summary.labels else "no labelled tokens"
            raise InputError(f"{self.title}: {found}, expected at least two labels")
        y = domain.label_positions(targets, summary.labels, self.title)
        starts = sentence_starts(targets.groups, targets.rows, self.title)
        weights = domain.checked_weights(targets, self.title)
        return self.prepared(self, y, starts, sentence_weights(weights, starts, self.title), len(summary.labels))

    def extra_parameters(self, labels: int) -> int:
        """The number of parameters that are learned with the weights, for so many labels."""
        return labels * labels

    def named_parameters(self, parameters: Array, labels: int) -> dict[str, Array]:
        """As a model keeps them, by the names that `predict` gives them."""
        return {"transitions": parameters.reshape(labels, labels).copy()}

    def predict(
        self, f: Array, labels: Labels, transitions: Array, groups: NDArray[np.int64] | None = None
    ) -> NDArray[Any]:
        """The labels of each sentence's best labeling, (tokens,).

        Parameters
        ----------
        f : (tokens, scores per token).
        labels : K of them, in score order.
        transitions : (K, K), from the label of a row to that of a column.
        groups : (tokens,), equal and consecutive within a sentence.
        """
        starts = sentence_starts(groups, f.shape[0], self.title)
        trans = plain(transitions).reshape(len(labels), len(labels))
        nothing, path = np.empty(0, np.int64), np.empty(f.shape[0], np.int64)
        best = best_labels_observed if self.transitions == "observed" else best_labels
        best(plain(f), trans, nothing, 0.0, starts, path)
        chosen: NDArray[Any] = np.array(labels)[path]
        return chosen
