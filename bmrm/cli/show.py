"""`bmrm show`: what a model is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bmrm.app.tables import print_json, print_lines, print_pairs
from bmrm.cli._core.arguments import add_model, count, model_file
from bmrm.cli._core.parser import Namespace, Parser

EXAMPLES = """
bmrm show runs/a9a
bmrm show runs/a9a/model.npz --top 5
bmrm show runs/chunking --json
"""
MOST_LABELS = 12


def add_arguments(parser: Parser) -> None:
    """The model and how many weights."""
    parser.examples(EXAMPLES)
    add_model(parser)
    parser.add_argument(
        "--top",
        type=count(0),
        default=10,
        metavar="COUNT",
        help="weights and transitions that are shown, those of largest size (a whole number >= 0; default %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="the same as JSON, for programs")


def run(parsed: Namespace) -> int:
    """Print it."""
    from bmrm.app.description import described
    from bmrm.app.model import load_model

    path = model_file(parsed.model)
    found = described(load_model(path), parsed.top, path.parent)
    if parsed.json:
        print_json(found)
        return 0
    print_pairs(str(path), _facts(found))
    if found["trained"] is not None:
        print()
        print_pairs("training", _training(found["trained"]))
    if found["transitions"]:
        _print_weights("transition", found["transitions"])
    for score, weights in found["weights"].items():
        _print_weights(f"weights for {score}" if score != "score" else "weights", weights)
    return 0


def _facts(found: Mapping[str, Any]) -> dict[str, str]:
    from bmrm.app.defaults import INTERCEPTS
    from bmrm.app.description import section_in_words
    from bmrm.app.report import number, regularizer_in_words

    labels = found["labels"]
    more = f" and {len(labels) - MOST_LABELS} more" if len(labels) > MOST_LABELS else ""
    status = found["status"]
    pairs = {
        "loss": section_in_words(found["loss"]),
        "regularizer": regularizer_in_words(found["regularizer"], found["lambda_from"]),
        "labels": ", ".join(labels[:MOST_LABELS]) + more if labels else "-",
        "features": f"{found['features']}, with {found['nonzero_weights']} weights that are not 0",
        "columns": _columns(found["columns"] or ()) or "-",
        "intercept": " ".join(f"{value:.6g}" for value in found["intercept"][:MOST_LABELS])
        + (f" ({INTERCEPTS[found['bias']]})" if found["bias"] in INTERCEPTS else ""),
        "objective": number(found["objective"], 10),
        "lower bound": number(found["lower_bound"], 10),
        "certificate": _certificate(found["relative_gap"]),
        "status": status if found["advice"] is None else f"{status}: {found['advice']}",
        "version": str(found["version"]),
    }
    if found["columns"] is None:
        del pairs["columns"]
    if found["row_scale"] != "none":
        pairs["rows"] = "divided by their norm"
    if found["feature_map"] is not None:
        given = {key: value for key, value in found["feature_map"].items() if value is not None}
        pairs["features"] += f", made of {given.pop('inputs')} by {section_in_words(given)}"
    if found["calibration"] is not None:
        pairs["probabilities"] = f"{found['calibration']['method']}, on {found['calibration']['rows']}"
    if found["offset"] is not None:
        pairs["offset"] = (
            f"{found['offset']}, needed to predict" if found["offset"] != "offset" else "needed to predict"
        )
    for name, value in found["learned"].items():
        pairs[name.replace("_", " ")] = str(value)
    return pairs


def _columns(columns: Sequence[Mapping[str, Any]]) -> str:
    """Those that are not features themselves: `town (category, 12 levels)`."""
    said = []
    for one in columns:
        more = {key: value for key, value in one.items() if key not in ("name", "kind", "features")}
        if one["kind"] != "number" or more:
            facts = [one["kind"], *(f"{key.replace('_', ' ')} {value:.6g}" for key, value in more.items())]
            said.append(f"{one['name']} ({', '.join(facts)})")
    left = len(said) - MOST_LABELS
    return "; ".join(said[:MOST_LABELS]) + (f" and {left} more" if left > 0 else "")


def _certificate(gap: float | None) -> str:
    if gap is None:
        return "none: no lower bound is known"
    return f"the objective is at most {gap:.2g} (relative) above the lowest possible one"


def _training(trained: Mapping[str, Any]) -> dict[str, str]:
    from bmrm.app.report import number

    data = trained["data"]
    pairs = {
        "data": ", ".join(data) if isinstance(data, list) else str(data or "-"),
        "rows": f"{trained['rows']}, {trained['nnz']} non-zeros",
        "scale, bias": f"{trained['scale']}, {trained['bias']}",
        "solver": str(trained["solver"]),
        "work": f"{trained['iterations']} iterations, {number(trained['passes'], 4)} passes",
        "seconds": f"{number(trained['seconds'], 3)} on {trained['ranks']} rank{'' if trained['ranks'] == 1 else 's'}",
    }
    for part, values in (trained["metrics"] or {}).items():
        pairs[part] = ", ".join(f"{name} {number(value, 5)}" for name, value in values.items()) or "-"
    return pairs


def _print_weights(title: str, weights: Sequence[Mapping[str, Any]]) -> None:
    if weights:
        print()
        print_lines(("   weight", title), [(f"{one['value']:+9.5g}", one["name"]) for one in weights])
