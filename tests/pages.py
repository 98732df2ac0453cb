"""Code blocks of the pages, for the tests that run them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SNIPPET = re.compile(r'^--8<-- "(.+)"$', re.MULTILINE)
FENCED = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]*) -->\n\n?)?"
    r'^```(?P<language>\w*)(?: title="(?P<title>[^"\n]*)")?\n(?P<text>.*?)^```',
    re.MULTILINE | re.DOTALL,
)
INDENTED = re.compile(r"(?<=\n\n)(?:^ {4}.*\n+)+", re.MULTILINE)
GIVEN = re.compile(r"^<!-- given: (.*) -->$", re.MULTILINE)
PICTURE = re.compile(r"^<!-- made by this page: (.*) -->\n!\[[^\]]*\]\(([^)]*)\)$", re.MULTILINE)
LISTS = re.compile(r"^(?:- |\d+\. ).*\n(?:\n?(?: {2,}.*|[-\d].*)\n)*", re.MULTILINE)
COMMANDS = ("console", "bash")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the file that its title names, its first line in the page, why it is not run."""

    page: str
    line: int
    language: str
    title: str | None
    text: str
    reason: str | None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def commands(self) -> Iterator[tuple[str, str]]:
        """Of a console: each command behind `$`, with the output that the page shows of it; a script as a whole."""
        if self.language == "bash":
            yield self.text, ""
            return
        for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            command, output = re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", part, re.DOTALL).groups()
            yield command.strip(), output


def blocks_of(page: str) -> list[Block]:
    """All fenced blocks of a page, its path counted from the root; files that it includes stand in their place."""
    source = (ROOT / page).read_text(encoding="utf-8")
    return [
        Block(
            page,
            source.count("\n", 0, found.start("language")) + 1,
            found["language"],
            found["title"],
            SNIPPET.sub(lambda name: (ROOT / name[1]).read_text(encoding="utf-8").rstrip("\n"), found["text"]),
            found["reason"],
        )
        for found in FENCED.finditer(source)
    ]


def blocks(page: str, language: str) -> list[str]:
    """The texts of the blocks of this language in a page."""
    return [block.text for block in blocks_of(page) if block.language == language]


def given(page: str) -> list[str]:
    """The files that the reader of a page is supposed to have."""
    return [name for found in GIVEN.finditer((ROOT / page).read_text(encoding="utf-8")) for name in found[1].split()]


def pictures(page: str) -> list[tuple[str, Path]]:
    """The files that a page makes as pictures of itself, each with the kept one that it shows."""
    path = ROOT / page
    return [(found[1], path.parent / found[2]) for found in PICTURE.finditer(path.read_text(encoding="utf-8"))]


def indented(page: str) -> list[str]:
    """Blocks by four blanks, which have no language; continued items of lists are none."""
    text = FENCED.sub("", (ROOT / page).read_text(encoding="utf-8"))
    return INDENTED.findall(LISTS.sub("", text))
