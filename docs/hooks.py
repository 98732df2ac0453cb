"""Tables of the site that come from the package itself, and the list of decisions."""

from pathlib import Path


def on_config(config):
    """Every page of `decisions/` gets into the navigation."""
    folder = Path(config["docs_dir"]) / "decisions"
    pages = [f"decisions/{page.name}" for page in sorted(folder.glob("*.md"))]
    if pages:
        config["nav"].append({"Decisions": pages})
    return config


def on_page_markdown(markdown, **_):
    """Replace markers such as `<!-- table: schema -->`."""
    for name, table in TABLES.items():
        marker = f"<!-- table: {name} -->"
        if marker in markdown:
            markdown = markdown.replace(marker, table())
    return markdown


def _schema():
    from bmrm.schema import markdown

    return markdown()


def _losses():
    from bmrm.losses import LOSSES

    lines = ["| loss | task | formula | sum over | smooth | source |", "|---|---|---|---|---|---|"]
    for entry in LOSSES.all():
        cls = entry.cls
        over = {"rows": "rows", "groups": "groups", "no": "the whole sample"}[cls.decomposes]
        formula = cls.formula.replace("|", "\\|")
        lines.append(
            f"| `{entry.name}` | {cls.task} | {formula} | {over} | {'yes' if cls.smooth else 'no'} | {cls.source} |"
        )
    return "\n".join(lines)


def _solvers():
    from bmrm.solvers import SOLVERS

    facts = {"problem": "problem", "needs": "needs", "lower bound": "certificate", "an iteration costs": "cost"}
    facts |= {"source": "source"}
    lines = ["| " + " | ".join(["solver", *facts, "what it does"]) + " |", "|" + "---|" * (len(facts) + 2)]
    for entry in SOLVERS.all():
        cells = [f"`{entry.name}`", *(getattr(entry.cls, fact, "") for fact in facts.values()), entry.headline]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


TABLES = {"schema": _schema, "losses": _losses, "solvers": _solvers}
