"""`bmrm info`: what is in a data file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bmrm.app.tables import print_json, print_pairs
from bmrm.cli._core.arguments import add_data, format_of

if TYPE_CHECKING:
    import argparse

    from bmrm.cli._core.parser import Parser


def add_arguments(parser: Parser) -> None:
    """The data."""
    parser.examples("bmrm info a9a.svm\nbmrm info rows.csv --format '{name: csv, label: 0}' --json")
    add_data(parser)
    parser.add_argument("--json", action="store_true", help="the same as JSON, for programs")


def run(parsed: argparse.Namespace) -> int:
    """Print it."""
    from bmrm.app.profile import profile_of
    from bmrm.data.reading import read

    profile = profile_of(read(parsed.data, format=format_of(parsed)), parsed.data)
    print_json(profile.plain()) if parsed.json else print_pairs(parsed.data, _words(profile))
    return 0


def _words(profile: Any) -> dict[str, str]:
    pairs = {
        "format": profile.format or "-",
        "rows": str(profile.rows),
        "features": str(profile.features),
        "non-zeros": f"{profile.nnz} ({profile.density:.3%} of the matrix)",
        "storage": profile.storage,
        "targets": profile.targets_in_words(),
    }
    if profile.groups is not None:
        pairs["groups"] = f"{profile.groups}"
    if profile.weights is not None:
        low, high, total = profile.weights
        pairs["weights"] = f"from {low:g} to {high:g}, sum {total:g}"
    return pairs
