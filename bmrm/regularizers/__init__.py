"""Regularizers, one file each, which names its master problem for the bundle method."""

from bmrm.problem import Regularizer
from bmrm.registry import Registry

REGULARIZERS: Registry[Regularizer] = Registry("regularizer", "bmrm.regularizers")
register = REGULARIZERS.register
