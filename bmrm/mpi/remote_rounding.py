"""The rounding of a risk on many ranks, as rank 0 has it (`Rounding`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.mpi.client import Client
from bmrm.mpi.remote_phi import GatheredPhi, RemoteMap
from bmrm.mpi.requests import Operation
from bmrm.problem import Magnitudes, Rounding, Vector, ability
from bmrm.problem.results import is_own
from bmrm.risk.layout import Layout
from bmrm.risk.rounding import measured, row_norm, subject_of
from bmrm.risk.score_function import LossPhi


@dataclass(frozen=True)
class RemoteRounding:
    """What the ranks add, each for its rows, and all of them together."""

    risk: Client

    @property
    def subject(self) -> str:
        return self._own.subject

    @property
    def foreign(self) -> bool:
        return self._own.foreign

    @property
    def row_norm(self) -> float:
        return self._own.row_norm

    @property
    def _own(self) -> Rounding:
        own = ability(self.risk.local.share.risk, Rounding)
        assert own is not None
        return own

    def at(self, w: Vector, constant: Vector | None = None) -> Magnitudes:
        packed = self.risk.ask(Operation.ROUNDING, *([] if constant is None else constant.tolist()), sent=w)
        sizes, grown = packed[3:], float(packed[2])
        return Magnitudes(sizes, float(packed[0]), float(packed[1]), grown / float(sizes.sum()) if grown > 0.0 else 0.0)


@dataclass(frozen=True)
class GatheredRounding:
    """The same for a loss of all rows at once: their scores come in, its slopes go out."""

    risk: Client
    whole: LossPhi

    @property
    def subject(self) -> str:
        return subject_of(self.whole.bound.loss)

    @property
    def foreign(self) -> bool:
        return not is_own(self.whole.bound.loss)

    @property
    def row_norm(self) -> float:
        return row_norm(self.risk.local.share.map)  # type: ignore[arg-type]

    def at(self, w: Vector, constant: Vector | None = None) -> Magnitudes:
        risk, gathered = self.risk, GatheredPhi(self.risk, self.whole)
        f = gathered.collect(RemoteMap(risk).matvec(w))
        kept, number = risk.new()
        longest = int(risk.ask(Operation.ABSOLUTE_SCORES, number, sent=np.abs(w))[0])
        free = gathered.collect(kept)
        b = np.zeros(self.whole.facts.scores_per_row) if constant is None else np.abs(constant)
        if constant is not None:
            f, free = f + self.whole.constant(constant), free + self.whole.constant(b)
        layout = Layout(self.whole.facts.scores_per_row)
        sizes, terms, length, growth = measured(self.whole, layout, f, free, longest, b, coupled=True)
        slope = gathered.hand_out(sizes)
        absolute_product = risk.ask(Operation.ABSOLUTE_RMATVEC, risk.number(slope))
        return Magnitudes(absolute_product, terms, length, growth * self.row_norm)
