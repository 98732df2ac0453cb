"""Formulas in TeX become MathML, which browsers draw themselves: no script, no network."""

from __future__ import annotations

import re

from latex2mathml.converter import convert

from pages.text import outside_code

DISPLAYED = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
INLINE = re.compile(r"(?<![\\$\w])\$(?=\S)([^$\n]+?)(?<=\S)\$(?![$\w])")


def typeset(text: str) -> str:
    """The text with `$x$` and `$$x$$` as MathML, outside code."""
    return outside_code(_typeset, text)


def _typeset(text: str) -> str:
    text = DISPLAYED.sub(lambda found: f'<div class="formula">{_mathml(found[1], "block")}</div>', text)
    return INLINE.sub(lambda found: inline(found[1]), text)


def inline(formula: str) -> str:
    """In a span, since Markdown takes a line that begins with another element for HTML to its end."""
    return f'<span class="math">{_mathml(formula, "inline")}</span>'


def _mathml(formula: str, display: str) -> str:
    """In one line; stars and underscores in it would be emphasis to Markdown, and a bar the end of a cell."""
    made = convert(" ".join(formula.split()), display=display)
    unknown = re.search(r">\\(\w+)", made)
    if unknown:
        raise ValueError(
            f"formula {formula!r}: the command \\{unknown[1]} is not known; \\operatorname{{{unknown[1]}}} is"
        )
    return made.replace("*", "&#42;").replace("_", "&#95;").replace("|", "&#124;")
