"""Feature maps, one file each: rows become others, whose linear scores are no linear functions of the former."""

from bmrm.data.features._core.rows import Features
from bmrm.registry import Registry

FEATURES: Registry[Features] = Registry("feature map", "bmrm.data.features")
register = FEATURES.register
