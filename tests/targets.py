"""An instance of every registered loss; targets for them are those of `bmrm.checks`."""

import dataclasses

from bmrm.checks.plug_in import CLASSES, MAKERS, groups_for, targets_for
from bmrm.losses import LOSSES

__all__ = [
    "CLASSES",
    "MAKERS",
    "RESCALED",
    "default_instance",
    "examples",
    "groups_for",
    "losses",
    "rescaled",
    "targets_for",
]

COST = ((0.0, 2.0, 1.0), (1.0, 0.0, 0.0), (3.0, 0.5, 0.0))
"""Of three classes; one mistake costs nothing."""
RESCALED = {
    "scaled_multiclass_hinge": [
        {"cost": COST, "margin": "cost", "beta": 1.0},
        {"cost": COST, "margin": "cost", "beta": 0.0},
        {"cost": COST, "margin": "one", "beta": 0.5},
        {"cost": COST, "margin": "one", "beta": 0.0},
    ],
    "chain_scaled_margin": [
        {"margin": "cost", "beta": 1.0},
        {"margin": "cost", "beta": 0.0},
        {"margin": "one", "beta": 2.0},
        {"margin": "one", "beta": 0.0},
    ],
    "ontology_hinge": [
        {"margin": "cost", "beta": 1.0},
        {"margin": "one", "beta": 1.0},
        {"margin": "one", "beta": 0.0},
        {"cost": COST, "margin": "cost", "beta": 1.0},
        {"cost": COST, "margin": "cost", "beta": 0.0},
    ],
}
"""Options of losses whose margins and slacks are rescaled, beside the defaults and the examples."""


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
    """Each registered loss with its defaults, with every parameter at its example, and with those of `RESCALED`."""
    for entry in LOSSES.all():
        yield default_instance(entry)
        if examples(entry) != examples(entry, required_only=True):
            yield entry.cls(**examples(entry))
        for options in RESCALED.get(entry.name, ()):
            yield rescaled(entry, options)


def rescaled(entry, options):
    """The loss with some of `RESCALED`."""
    return entry.cls(**examples(entry, required_only=True) | options)
