"""Formulas as `bmrm losses` prints them, typeset: of `max_k (f_k - f_y) over rows` the words stay words."""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterator

from pages.formulas import inline

GREEK = ("beta", "delta", "epsilon", "pi", "rho", "tau")
OPERATORS = ("cosh", "exp", "log", "max", "min")
SIGNS = {"<=": r"\le ", ">=": r"\ge ", "!=": r"\ne ", "+-": r"\pm ", "|": r"\vert "}
TOKEN = re.compile(
    "(?P<fraction>[0-9]+/[0-9]+)"
    "|(?P<base>[A-Za-z]+)(?P<prime>\N{PRIME}?)(?:_(?P<sub>[A-Za-z]+)(?P<more>\N{PRIME}|-1|))?"
    r"|(?P<sign><=|>=|!=|\+-|\|)|(?P<transposed>(?<=\))')|(?P<other>.)"
)


def typeset_plain(plain: str) -> str:
    """The formula as HTML: words as they are, what stands between them as MathML, so that lines break at the words.

    A letter is a variable, a word before a parenthesis or with an index a function, and any other word is text. A prime
    behind a parenthesis transposes.
    """
    parts = []
    for words, pieces in itertools.groupby(_pieces(_with_primes(plain)), key=lambda piece: piece[0]):
        text = "".join(piece for _, piece in pieces)
        blanks = re.fullmatch(r"(\s*)(.*?)(\s*)", text)
        assert blanks is not None
        if words or not re.search(r"\w", text):
            parts.append(html.escape(text))
        else:
            parts.append(f"{blanks[1]}{inline(blanks[2])}{blanks[3]}")
    return "".join(parts)


def _with_primes(plain: str) -> str:
    """The sign itself for an apostrophe: as an exponent browsers draw it too small and too high."""
    return re.sub(r"(?<!\))'", "\N{PRIME}", plain)


def _pieces(plain: str) -> Iterator[tuple[bool, str]]:
    """Whether it is a word, and the word or its TeX; a comma outside parentheses ends a formula as a word does."""
    depth = 0
    for found in TOKEN.finditer(plain):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(found[0], 0)
        if found["base"]:
            called = plain[found.end() :].startswith("(")
            word, text = _word(found["base"], found["prime"], found["sub"], found["more"] or "", called)
            yield word, text if word else _spaced(text, plain[: found.start()], plain[found.end() :])
        elif found["fraction"]:
            yield False, r"\frac{{{}}}{{{}}}".format(*found["fraction"].split("/"))
        elif found["transposed"]:
            yield False, r"^\top "
        elif found[0] == "-" and re.search(r"(^|[(,] ?)$", plain[: found.start()]):
            yield False, "{-}"  # of one number, without blanks around it
        elif found["sign"]:
            yield False, SIGNS[found["sign"]]
        else:
            yield found[0] in ",;" and depth == 0, found[0]


def _word(base: str, prime: str, sub: str | None, more: str, called: bool) -> tuple[bool, str]:
    index = "" if sub is None else f"_{{{_index(sub)}{more}}}"
    if base in GREEK:
        return False, rf"{{\{base}}}{prime}{index}"
    if len(base) == 1 and base != "a":
        return False, f"{{{base}{prime}}}{index}" if prime else f"{base}{index}"
    if base == "sum" and sub:
        return False, rf"\sum{index} "
    option = sub is not None and len(sub) > 2 and sub not in GREEK  # such as max_fpr
    if base in OPERATORS and not option and (called or sub or base in ("exp", "log")):
        return False, rf"\mathrm{{{base}}}{index}"
    if called or sub or base == "margin":
        return False, rf"\mathrm{{{base}}}{prime}{index}"
    return True, base


def _spaced(text: str, before: str, after: str) -> str:
    """The name of a function with a thin space to a variable beside it."""
    if not text.startswith(r"\mathrm"):
        return text
    left = r"\," if re.search(r"[\w)] $", before) else ""
    return left + text + (r"\," if re.match(r" [\w(]", after) else "")


def _index(sub: str) -> str:
    if sub in GREEK:
        return rf"\{sub}"
    return sub if len(sub) <= 2 else rf"\mathrm{{{sub}}}"
