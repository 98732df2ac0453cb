"""HTML as strings: text is escaped unless it is `Markup`, which only this file makes."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


class Markup(str):
    """Text that is HTML already."""


Content = str | float | int | None | Iterable["Content"]
"""What may stand in an element; None is nothing."""
_EMPTY = frozenset({"meta", "path", "line", "polygon", "polyline"})
"""Elements that have no content."""


def escaped(content: Content) -> str:
    """As it stands in a page."""
    if isinstance(content, Markup):
        return content
    if content is None:
        return ""
    if isinstance(content, (str, float, int)):
        return html.escape(str(content), quote=True)
    return "".join(map(escaped, content))


def tag(name: str, *content: Content, **attributes: str | float | None) -> Markup:
    """An element; `class_` is the attribute class, `stroke_width` is stroke-width, None leaves one out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value), quote=True)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{given}/>" if name in _EMPTY else f"<{name}{given}>{escaped(content)}</{name}>")


def table(
    head: Sequence[Content], rows: Iterable[Sequence[Content]], *, numbers: Iterable[int] = (), caption: str = ""
) -> Markup:
    """A table that scrolls sideways where it is too wide; `numbers` are the columns that are set to the right.

    The first cell of a row is its heading.
    """
    right = set(numbers)

    def cell(name: str, column: int, content: Content, **attributes: str) -> Markup:
        return tag(name, content, class_="number" if column in right else None, **attributes)

    top = tag("tr", [cell("th", k, content, scope="col") for k, content in enumerate(head)])
    body = [
        tag("tr", cell("th", 0, row[0], scope="row"), [cell("td", k, content) for k, content in enumerate(row) if k])
        for row in rows
    ]
    words = tag("caption", caption) if caption else None
    filled = tag("table", words, tag("thead", top) if any(head) else None, tag("tbody", body))
    return tag("div", filled, class_="scroll")


def pairs(rows: Iterable[tuple[Content, Content]]) -> Markup:
    """Names with what they are."""
    return tag("dl", [[tag("dt", name), tag("dd", value)] for name, value in rows])


def section(title: str, *content: Content) -> Markup | None:
    """A heading with what stands under it; None where there is nothing."""
    filled = [one for one in content if one]
    return tag("section", tag("h2", title), filled) if filled else None


def heated(
    down: Sequence[str], across: Sequence[str], matrix: Sequence[Sequence[float]], title: str, words: str, corner: str
) -> Markup:
    """A table with title and words above, whose cells are shaded by their share of the row's sum of sizes."""
    rows = []
    for k, (name, row) in enumerate(zip(down, matrix)):
        total = sum(map(abs, row)) or 1.0
        cells = [
            tag(
                "td",
                f"{value:.6g}",
                class_="right" if k == j else None,
                style=f"background:rgb(var(--heat)/{0.55 * abs(value) / total:.3f})",
            )
            for j, value in enumerate(row)
        ]
        rows.append(tag("tr", tag("th", name, scope="row"), cells))
    head = tag("tr", tag("th", corner), [tag("th", name, scope="col") for name in across])
    filled = tag("table", tag("thead", head), tag("tbody", rows), class_="matrix")
    return tag("div", tag("h3", title), tag("p", words, class_="faint"), tag("div", filled, class_="scroll"))
