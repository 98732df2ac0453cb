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
MOST_ACROSS = 12
"""Columns of a shaded table that fit on a page."""


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
    head: Sequence[Content],
    rows: Iterable[Sequence[Content]],
    *,
    numbers: Iterable[int] = (),
    caption: str = "",
    most: int = 7,
) -> Markup:
    """A table; one of many columns becomes several, so that it fits on a page.

    Parameters
    ----------
    head, rows : the cells; the first cell of a row is its heading.
    numbers : the columns that are set to the right.
    caption : above the table.
    most : columns beside the first; those after them follow in a table below, which has the first one again.
    """
    lines = [list(row) for row in rows]
    right = set(numbers)

    def cell(name: str, column: int, content: Content, **attributes: str) -> Markup:
        return tag(name, content, class_="number" if column in right else None, **attributes)

    def part(columns: Sequence[int]) -> Markup:
        top = tag("tr", [cell("th", k, head[k], scope="col") for k in columns])
        body = [
            tag("tr", cell("th", 0, row[0], scope="row"), [cell("td", k, row[k]) for k in columns[1:]]) for row in lines
        ]
        words = tag("caption", caption) if caption else None
        return tag("table", words, tag("thead", top) if any(head) else None, tag("tbody", body))

    starts = range(1, len(head), most) if len(head) > 1 else [1]
    return tag("div", [part([0, *range(k, min(k + most, len(head)))]) for k in starts], class_="scroll")


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
    """A table with title and words above, whose cells are shaded by their share of the row's sum of sizes.

    One of many columns becomes several, one below the other.
    """
    totals = [sum(map(abs, row)) or 1.0 for row in matrix]

    def part(columns: Sequence[int]) -> Markup:
        rows = []
        for k, (name, row) in enumerate(zip(down, matrix)):
            cells = [
                tag(
                    "td",
                    f"{row[j]:.6g}",
                    class_="right" if k == j else None,
                    style=f"background:rgb(var(--heat)/{0.55 * abs(row[j]) / totals[k]:.3f})",
                )
                for j in columns
            ]
            rows.append(tag("tr", tag("th", name, scope="row"), cells))
        head = tag("tr", tag("th", corner), [tag("th", across[j], scope="col") for j in columns])
        return tag("table", tag("thead", head), tag("tbody", rows), class_="matrix")

    parts = [part(range(k, min(k + MOST_ACROSS, len(across)))) for k in range(0, len(across), MOST_ACROSS)]
    return tag("div", tag("h3", title), tag("p", words, class_="faint"), tag("div", parts, class_="scroll"))
