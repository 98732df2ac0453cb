"""The page of measurements: each section names the command that makes it, and each command has something to measure."""

from __future__ import annotations

import re

from benchmarks.__main__ import PAGE, names, section
from benchmarks.harness import Table

SECTION = re.compile(r"^<!-- (\w+) -->\n## .+\n\n(.*)$", re.MULTILINE)


def test_a_benchmark_measures() -> None:
    folder = PAGE.parents[1] / "benchmarks"
    assert [name for name in names() if "\ndef measure()" not in (folder / f"{name}.py").read_text()] == []


def test_a_section_names_its_command() -> None:
    found = SECTION.findall(PAGE.read_text(encoding="utf-8"))
    assert len(found) == PAGE.read_text(encoding="utf-8").count("\n## ")
    assert [line for name, line in found if line != f"By `python -m benchmarks {name}`."] == []
    assert {name for name, _ in found} <= set(names())


def test_a_new_section_is_as_those_of_the_page() -> None:
    text = section("passes", Table("Title", "A note.", ("a", "b"), ((1, 2),)))
    assert SECTION.findall(f"<!-- passes -->\n{text}") == [("passes", "By `python -m benchmarks passes`.")]
    assert text.endswith("A note.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
