"""What the losses of sequence labeling share: chains of labels, scores of transitions between neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from bmrm.kernels.sequences.curvature import chain_curvatures
from bmrm.kernels.sequences.likelihood import chain_likelihoods
from bmrm.kernels.sequences.marginals import labeling_marginals, log_partition
from bmrm.kernels.sequences.margins import score, terms, violating
from bmrm.kernels.sequences.viterbi import best, worst
from bmrm.kernels.structures.sums import Groups
from bmrm.losses._core.prepared import Array
from bmrm.losses._core.structure import Structure, StructuredLoss
from bmrm.registry import parameter


@dataclass(frozen=True)
class Chain(Structure):
    """Labels in a row; the parameters are (K, K), transitions from a label to the next.

    `observed`: each row has K K scores more, which are added to those of the transitions into it.
    """

    observed: bool

    terms = staticmethod(terms)
    score = staticmethod(score)
    best = staticmethod(best)
    worst = staticmethod(worst)
    violating = staticmethod(violating)
    marginals = staticmethod(labeling_marginals)
    log_partition = staticmethod(log_partition)

    def scores(self, labels: int) -> int:
        """As of `Structure`."""
        return labels + (labels * labels if self.observed else 0)

    def likelihoods(self, f: Array, parameters: Array, groups: Groups, slope: Array, of_parameters: Array) -> float:
        """As of `Structure`; the exponentials of transitions are taken once for all sentences."""
        _, y, starts, weights = groups
        return chain_likelihoods(f, parameters, self.observed, y, starts, weights, slope, of_parameters)

    def curvatures(
        self, f: Array, trans: Array, step: Array, step_trans: Array, groups: Groups, slope: Array, of_trans: Array
    ) -> None:
        """As of `Structure`."""
        _, _, starts, weights = groups
        chain_curvatures(f, trans, self.observed, step, step_trans, starts, weights, slope, of_trans)


@dataclass(frozen=True)
class ChainLoss(StructuredLoss):
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

    group: ClassVar[str] = "sentence"
    member: ClassVar[str] = "token"
    instead_of_intercept: ClassVar[str] = "the scores of transitions tell how frequent labels are"
    metrics = ("token_accuracy", "token_f1", "chunk_f1")

    @cached_property
    def structure(self) -> Chain:
        """Chains, with the transitions that the loss has."""
        return Chain(self.transitions == "observed")
