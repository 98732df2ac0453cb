"""Losses, a file each or per small family; they see scores and targets, nothing else."""

from bmrm.problem import Loss
from bmrm.registry import Registry

LOSSES: Registry[Loss] = Registry("loss", "bmrm.losses")
register = LOSSES.register
