"""Losses, one file each: functions of the scores, which know nothing of data, weights or solvers."""

from bmrm.problem import Loss
from bmrm.registry import Registry

LOSSES: Registry[Loss] = Registry("loss", "bmrm.losses")
register = LOSSES.register
