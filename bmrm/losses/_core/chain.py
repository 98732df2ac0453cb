"""What the losses of sequence labelling share: sentences, scores of transitions, prediction by the best labelling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.vectors import plain
from bmrm.kernels.sequences.viterbi import best_labels, best_labels_observed
from bmrm.losses._core import domain
from bmrm.losses._core.prepared import Array
from bmrm.losses._core.sentences import PreparedChains, sentence_starts, sentence_weights
from bmrm.losses.base import Labels, LossBase
from bmrm.problem import InputError, Summary, Targets
from bmrm.registry import parameter


@dataclass(frozen=True)
class ChainLoss(LossBase):
    """A label per token, transitions of order 1 between them.

    A row is a token, a group of consecutive rows a sentence. The score of a labelling y of a sentence is

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
        """The labels of each sentence's best labelling, (tokens,).

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
