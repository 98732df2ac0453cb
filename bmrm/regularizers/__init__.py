"""Regularizers, a file each, with the master that serves them in the bundle method."""

from bmrm.problem import Regularizer
from bmrm.registry import Registry

REGULARIZERS: Registry[Regularizer] = Registry("regularizer", "bmrm.regularizers")
register = REGULARIZERS.register
