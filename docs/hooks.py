"""Tables and figures of the site that come from the package itself."""

import io

from mkdocs.structure.files import File

FIGURES = "figures"
"""The folder of the site that the drawings of losses are in."""


def on_files(files, config, **_):
    """The drawings become files of the site."""
    for name, image in _drawings().items():
        files.append(File.generated(config, f"{FIGURES}/{name}.svg", content=image))
    return files


def on_page_markdown(markdown, **_):
    """Replace markers such as `<!-- table: schema -->`."""
    for name, table in TABLES.items():
        marker = f"<!-- table: {name} -->"
        if marker in markdown:
            markdown = markdown.replace(marker, table())
    gallery = "\n".join(f"![{name}]({FIGURES}/{name}.svg){{ width=32% }}" for name in _one_score_losses())
    return markdown.replace("<!-- figures: losses -->", gallery)


def _one_score_losses():
    """Name and default instance of every loss with one score per row that is a sum over rows."""
    from bmrm.losses import LOSSES
    from bmrm.losses.base import OneScoreLoss

    return {entry.name: entry.cls() for entry in LOSSES.all() if issubclass(entry.cls, OneScoreLoss)}


def _drawings():
    """A picture of loss and slope for each of them, as SVG."""
    import matplotlib.pyplot as plt
    import numpy as np

    pictures = {}
    for name, loss in _one_score_losses().items():
        f = np.linspace(-3.0, 3.0, 601)
        y = np.full_like(f, loss.shown_target)
        value, slope = loss.value(f, y), loss.slope(f, y)
        jump = np.abs(np.diff(slope)) > 0.4
        figure, axes = plt.subplots(figsize=(3.2, 2.4))
        axes.axhline(0.0, color="0.8", linewidth=0.8)
        axes.plot(f, value, color="C0")
        broken = np.where(np.append(jump, False), np.nan, slope)
        axes.plot(f, broken, color="C1", linestyle="--")
        kinks = np.flatnonzero(jump & ~np.append(False, jump[:-1])) + 1
        axes.plot(f[kinks], value[kinks], "o", color="C0", markersize=4)
        axes.set_ylim(max(-4.0, np.nanmin(broken) - 0.3), min(value.min() + 6.0, value.max() + 0.3))
        title = name if loss.task in ("binary", "novelty") else f"{name}, y = {loss.shown_target:g}"
        axes.set_title(title, fontsize=9)
        axes.tick_params(labelsize=7)
        file = io.BytesIO()
        figure.savefig(file, format="svg", bbox_inches="tight")
        plt.close(figure)
        pictures[name] = file.getvalue()
    return pictures


def _schema():
    from bmrm.app.config.schema import markdown

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


def _measures():
    from bmrm.metrics import MEASURES, TASKS

    lines = []
    for task in TASKS:
        lines += [f"## {task}", "", "| measure | what it is | weights | source |", "|---|---|---|---|"]
        for one in sorted(MEASURES.values(), key=lambda one: one.spelling):
            if task in one.tasks:
                cells = one.formula, one.weighted, one.source
                lines.append(f"| `{one.spelling}` | " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _rules():
    from bmrm.solvers._core.auto.rules import NUMBERS, RULES, WORDS

    lines = ["| problem | solvers |", "|---|---|"]
    lines += [f"| {rule} | {', '.join(f'`{name}`' for name in rule.solvers)} |" for rule in RULES]
    words = "; ".join(f"*{word}*: {meaning}" for word, meaning in WORDS.items())
    return "\n".join([*lines, "", f"Words: {words}.", "", f"Numbers: {', '.join(NUMBERS.values())}."])


def _commands():
    from bmrm.cli._core.reference import markdown

    return markdown()


TABLES = {"schema": _schema, "losses": _losses, "solvers": _solvers, "measures": _measures, "rules": _rules}
TABLES["commands"] = _commands
