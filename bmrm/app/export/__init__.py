"""Models in the formats of other programs, one file each: `bmrm export` and `Model.export`."""

from bmrm.app.export._core.exported import Format
from bmrm.registry import Registry

EXPORTS: Registry[Format] = Registry("export format", "bmrm.app.export")
register = EXPORTS.register
