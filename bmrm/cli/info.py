"""`bmrm info`: what is in a data file, or what is installed."""

from __future__ import annotations

import sys
from typing import Any

from bmrm.app.tables import print_json, print_pairs
from bmrm.cli._core.arguments import add_columns, add_data, columns_of, format_of, say_notes
from bmrm.cli._core.parser import Namespace, Parser
from bmrm.problem import InputError

EXAMPLES = """
bmrm info                                              # what is installed: for bug reports
bmrm info a9a.svm
bmrm info rows.csv --format '{name: csv, label: 0}' --json
bmrm info rows.csv --missing indicator --categorical zip
bmrm info rows.txt:42.42+ --targets | sort | uniq -c
"""


def add_arguments(parser: Parser) -> None:
    """The data."""
    parser.examples(EXAMPLES)
    add_data(parser, "; none: what is installed here", needed=False)
    add_columns(parser)
    parser.add_argument(
        "--targets",
        action="store_true",
        help="the target of each row instead, a line for each, and nothing else",
    )
    parser.add_argument("--json", action="store_true", help="the same as JSON, for programs")


def run(parsed: Namespace) -> int:
    """Print it."""
    if parsed.data is None:
        return _installation(parsed)
    from bmrm.app.profile import look, profile_of, target_lines

    data, _ = look(parsed.data, format_of(parsed), columns_of(parsed))
    profile = profile_of(data, parsed.data)
    if parsed.targets:
        sys.stdout.writelines(f"{line}\n" for line in target_lines(data, parsed.data, parsed.json))
        return 0
    say_notes(() if data.layout is None else data.layout.notes, parsed.data)
    print_json(profile.plain()) if parsed.json else print_pairs(parsed.data, _words(profile))
    return 0


def _installation(parsed: Namespace) -> int:
    for option, value, default in (("format", parsed.format, "auto"), ("data.header", parsed.data_header, None)):
        if value != default:
            raise InputError(f"--{option} is of a data file, expected DATA, too")
    of_columns = ["ignore"] if parsed.ignore is not None else [*columns_of(parsed)]
    if parsed.targets:
        raise InputError("--targets is of a data file, expected DATA, too")
    if of_columns:
        raise InputError(f"--{of_columns[0].replace('_', '-')} is of a data file, expected DATA, too")
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
    if profile.offset is not None:
        pairs["offset"] = f"from {profile.offset[0]:g} to {profile.offset[1]:g}"
    if profile.weights is not None:
        low, high, total = profile.weights
        pairs["weights"] = f"from {low:g} to {high:g}, sum {total:g}"
    return pairs
