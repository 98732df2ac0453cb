"""`bmrm info`: what is in a data file, or what is installed."""

from __future__ import annotations

from typing import Any

from bmrm.app.tables import print_json, print_pairs
from bmrm.cli._core.arguments import add_data, format_of, say_notes
from bmrm.cli._core.parser import Namespace, Parser
from bmrm.problem import InputError

EXAMPLES = """
bmrm info                                              # what is installed: for bug reports
bmrm info a9a.svm
bmrm info rows.csv --format '{name: csv, label: 0}' --json
"""


def add_arguments(parser: Parser) -> None:
    """The data."""
    parser.examples(EXAMPLES)
    add_data(parser, "; none: what is installed here", needed=False)
    parser.add_argument("--json", action="store_true", help="the same as JSON, for programs")


def run(parsed: Namespace) -> int:
    """Print it."""
    if parsed.data is None:
        return _installation(parsed)
    from bmrm.app.profile import profile_of
    from bmrm.data.reading import read

    data = read(parsed.data, format=format_of(parsed))
    profile = profile_of(data, parsed.data)
    say_notes(() if data.layout is None else data.layout.notes, parsed.data)
    print_json(profile.plain()) if parsed.json else print_pairs(parsed.data, _words(profile))
    return 0


def _installation(parsed: Namespace) -> int:
    for option, value, default in (("format", parsed.format, "auto"), ("data.header", parsed.data_header, None)):
        if value != default:
            raise InputError(f"--{option} is of a data file, expected DATA, too")
    if parsed.ignore is not None:
        raise InputError("--ignore is of a data file, expected DATA, too")
    from bmrm.app.installation import in_words, installation

    facts = installation()
    print_json(facts) if parsed.json else print_pairs(f"bmrm {facts['versions']['bmrm']}", in_words(facts))
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
