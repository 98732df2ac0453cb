"""An instance of every registered loss; targets for them are those of `bmrm.checks`."""

import dataclasses

from bmrm.checks.targets import CLASSES, MAKERS, groups_for, targets_for
from bmrm.losses import LOSSES

__all__ = ["CLASSES", "MAKERS", "default_instance", "examples", "groups_for", "losses", "targets_for"]


def examples(entry, required_only=False):
    """The example of each parameter, or of those without a default."""
    return {
        field.name: field.metadata["example"]
        for field in entry.parameters
        if field.metadata.get("example") is not None and not (required_only and has_default(field))
    }


def has_default(field):
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def default_instance(entry):
    """The loss as its name alone makes it; parameters without a default are at their example."""
    return entry.cls(**examples(entry, required_only=True))


def losses():
    """Each registered loss with its defaults, and once more with every parameter at its example."""
    for entry in LOSSES.all():
        yield default_instance(entry)
        if examples(entry) != examples(entry, required_only=True):
            yield entry.cls(**examples(entry))
