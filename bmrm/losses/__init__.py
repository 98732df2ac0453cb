"""Losses, a file each: what a row of scores costs, and nothing of data, weights or solvers."""

from bmrm.problem import Loss
from bmrm.registry import Registry

LOSSES: Registry[Loss] = Registry("loss", "bmrm.losses")
register = LOSSES.register
