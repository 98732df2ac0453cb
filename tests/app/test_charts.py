"""Charts stay inside their frame and are XML, whatever numbers and names they are given."""

from __future__ import annotations

import itertools
import math
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import pytest

from bmrm.app.charts import WIDTH, Axis, Chart, Line, shortened
from bmrm.app.plots import convergence_svg
from bmrm.problem import Iteration

Box = tuple[float, float, float, float]
NS = "{http://www.w3.org/2000/svg}"


def boxes(chart: Chart) -> Iterator[tuple[str, Box]]:
    """Texts with the room that they take, about: 6.3 units for a letter, twice that for one of full width."""
    root = ET.fromstring(str(chart.svg()).replace("<svg", f'<svg xmlns="{NS[1:-1]}"', 1))
    turned = {text: group for group in root.iter(f"{NS}g") if group.get("transform") for text in group}
    for text in root.iter(f"{NS}text"):
        words = text.text or ""
        wide = sum(12.6 if 0x2E80 < ord(c) < 0xFF00 else 6.3 for c in words)
        x = float(text.attrib["x"]) - wide * {"start": 0.0, "middle": 0.5, "end": 1.0}[text.attrib["text-anchor"]]
        y = float(text.attrib["y"])
        if text in turned:
            a, b = map(float, turned[text].attrib["transform"].split(")")[0].removeprefix("translate(").split())
            yield words, (a - 10.0, b - x - wide, a + 3.0, b - x)
        else:
            yield words, (x, y - 10.0, x + wide, y + 3.0)


def overlap(a: Box, b: Box) -> bool:
    return all(min(a[k + 2], b[k + 2]) - max(a[k], b[k]) > 1.0 for k in (0, 1))


def inside(box: Box, chart: Chart) -> bool:
    return min(box[:2]) >= -1.0 and box[2] <= WIDTH + 1.0 and box[3] <= chart.whole + 1.0


VALUES = {
    "one point": [1.0],
    "the same": [5.0, 5.0, 5.0],
    "the same, huge": [1e300] * 3,
    "the same, tiny": [1e-300] * 3,
    "denormal": [5e-324, 1e-323],
    "whole range": [-1.7e308, 1.0, 1.7e308],
    "many decades": [1e-300, 1.0, 1e300],
    "one rounding": [1.0, 1.0 + 2.0**-52, 1.0 + 2.0**-51],
    "many equal digits": [123456789.0, 123456789.001, 123456789.002],
    "negative, many equal digits": [-1e9, -1e9 + 1e-5, -1e9 + 2e-5],
    "gaps": [1.0, math.nan, 3.0, math.inf, 2.0],
}


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("name", VALUES)
def test_numbers_at_the_axes_are_inside_and_apart(name: str, log: bool) -> None:
    values = VALUES[name]
    chart = Chart("chart", [Line("a", range(len(values)), values)], Axis("x"), Axis("objective", log=log))
    found = list(boxes(chart))
    assert found
    assert not [words for words, box in found if not inside(box, chart)]
    assert not [(a, b) for (a, p), (b, q) in itertools.combinations(found, 2) if overlap(p, q)]


def test_close_numbers_are_told_from_the_first() -> None:
    chart = Chart("chart", [Line("a", range(2), VALUES["many equal digits"])], Axis("x"), Axis("objective"))
    words = [text for text, _ in boxes(chart)]
    assert {"objective - 123456789", "0.0005"} <= set(words)


@pytest.mark.parametrize("letter", ["n", "W", "模", "\0<&\"'"])
def test_long_names_are_inside(letter: str) -> None:
    lines = [Line(letter * 90 + str(k), (0, 1), (k, 2), k) for k in range(12)]
    chart = Chart(letter * 90, lines, Axis(letter * 90), Axis(letter * 90), level=(1.5, letter * 90))
    assert not [words for words, box in boxes(chart) if not inside(box, chart)]


@pytest.mark.parametrize("bad", ["\0", "\x1b", "\x0b", "\ud800", "\uffff"])
def test_characters_that_xml_forbids_are_marked(bad: str) -> None:
    lines = [Line(f"{k}{bad}", (0, 1), (k, 2), k) for k in range(2)]
    chart = Chart(f"a{bad}", lines, Axis(f"x{bad}"), Axis(f"y{bad}"))
    assert {"0�", "1�", "x�", "y�"} <= {text for text, _ in boxes(chart)}


def test_the_title_of_a_run_may_have_any_character() -> None:
    root = ET.fromstring(convergence_svg([Iteration(1, 0.5, 0.4, 1.0, 0.1)], title="a\0b\ud800<script>"))
    assert root.get("aria-label") == "a\ufffdb\ufffd<script>"


def test_shortened_keeps_both_ends() -> None:
    assert shortened("a" * 50) == "a" * 50
    assert shortened("b" + "a" * 98 + "c") == "b" + "a" * 22 + "..." + "a" * 22 + "c"
    assert shortened("模" * 25) == "模" * 25
    assert shortened("模" * 26).count("模") < 24
