"""One kind of picture, as SVG: lines and points over linear or logarithmic axes, for pages, files and notebooks.

Text and frame have the colour of the text around the picture. Lines have classes (`s0` to `s5`) whose `color` a style
sheet may set; without one the attributes hold.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from markupsafe import Markup

WIDTH, HEIGHT = 440.0, 280.0
LEFT, RIGHT, TOP, BOTTOM = 78.0, 12.0, 10.0, 44.0
COLOURS = ("#0072b2", "#c4500a", "#00805e", "#9a3e8c", "#7a6200", "#4a4f57")
"""Colours of the lines, which differ in lightness too. Further lines repeat them with another dash."""
FONT = 'font-size="12" font-family="system-ui, Segoe UI, Roboto, Helvetica Neue, Arial, DejaVu Sans, sans-serif"'
KEY, LETTER, ROW = 32.0, 6.5, 16.0
"""Sizes in the legend, in pixels: width of a piece of a line, width of a letter, height of a row."""
LETTERS = 50
"""Most letters of a name in the legend."""
LARGEST = 1e300
"""Largest number that is drawn: twice its distance from another is finite."""
TICK = 8
"""Most letters of a number at an axis; if one is longer, all are written as differences from the first."""
MARKED = 60
"""Most points of a line that have marks with their numbers as tooltips."""
LEAST = 1e-280
"""Smallest number on a logarithmic axis."""
DRAWN = 300
"""Most points of a line that are drawn."""


@dataclass(frozen=True)
class Line:
    """One line of a chart.

    Attributes
    ----------
    name : for the legend; empty for none.
    x, y : as many numbers; points that are not finite, over `LARGEST`, or below `LEAST` on a logarithmic
        axis, are left out.
    series : the colour, from 0.
    dashed, marked : how it is drawn.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    series: int = 0
    dashed: bool = False
    marked: bool = True

    def path(self, d: str) -> Markup:
        """A path in the style of the line."""
        dash = "6 3" if self.dashed else "2 3" if self.series // len(COLOURS) % 2 else "none"
        return Markup(
            '<path class="line" d="{}" fill="none" stroke="currentColor" stroke-width="2" stroke-linejoin="round" '
            'stroke-dasharray="{}"/>'
        ).format(d, dash)

    def group(self, content: Markup) -> Markup:
        """What has the colour of the line."""
        k = self.series % len(COLOURS)
        return Markup('<g class="s{}" color="{}">{}</g>').format(k, COLOURS[k], content)


@dataclass(frozen=True)
class Axis:
    """What an axis shows, and where it begins and ends; None for where the points do. `whole` numbers are counts."""

    label: str
    low: float | None = None
    high: float | None = None
    log: bool = False
    whole: bool = False

    def drawable(self, value: float) -> bool:
        """Whether the number has a place on the axis."""
        return abs(value) <= LARGEST and not (self.log and value < LEAST)


@dataclass(frozen=True)
class Scale:
    """From numbers to places in the picture."""

    axis: Axis
    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        low, high, value = (math.log10(v) if self.axis.log else v for v in (self.low, self.high, value))
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    @cached_property
    def _values(self) -> list[float]:
        found = decades(self.low, self.high) if self.axis.log else steps(self.low, self.high)
        return [value for value in found if not self.axis.whole or value == round(value)]

    @cached_property
    def base(self) -> float:
        """What numbers at the axis are told from: 0 where they are short."""
        return self._values[0] if max(map(len, numbers(self._values)), default=0) > TICK else 0.0

    @property
    def label(self) -> str:
        """With the base."""
        beside = "" if not self.base else f" {'+' if self.base < 0.0 else '-'} {abs(self.base):.15g}"
        return shortened(self.axis.label, LETTERS // 2 if beside else 34) + beside

    def ticks(self) -> list[tuple[float, str]]:
        """Places and numbers."""
        # Round numbers have few digits, their differences too: more are rounding.
        texts = numbers([float(f"{v - self.base:.3g}") if self.base else v for v in self._values])
        return [(self(value), text) for value, text in zip(self._values, texts)]


@dataclass(frozen=True)
class Chart:
    """A picture with its legend.

    Attributes
    ----------
    title : above the figure, and its name for readers of screens.
    lines : in the order of the legend; those without a point are not in it.
    x, y : the axes.
    level : a height with its name, drawn as a thin line.
    height : without the legend.
    """

    title: str
    lines: Sequence[Line]
    x: Axis
    y: Axis
    level: tuple[float, str] | None = None
    height: float = HEIGHT

    def __html__(self) -> Markup:
        """The picture under its title."""
        return Markup("<figure><figcaption>{}</figcaption>{}</figure>").format(self.title, self.svg())

    def svg(self, y: float = 0.0) -> Markup:
        """The picture alone, so far down in another."""
        content = (
            Markup("").join(self._content()) if self.drawn else _text(WIDTH / 2, 20.0, "Nothing to draw.", "middle")
        )
        return Markup(
            '<svg y="{:g}" width="{:g}" height="{:g}" viewBox="0 0 {:g} {:g}" role="img" aria-label="{}" '
            'fill="currentColor" {}>{}</svg>'
        ).format(y, WIDTH, self.whole, WIDTH, self.whole, clean(self.title), Markup(FONT), content)

    @cached_property
    def whole(self) -> float:
        """The height with the legend."""
        return self.height + max((row for _, row, _ in self._keys), default=0.0)

    @cached_property
    def drawn(self) -> list[tuple[Line, list[tuple[float, float]]]]:
        """The lines that have a point, with their points, thinned evenly where they are many; first and last stay."""
        found = []
        for line in self.lines:
            points = [(float(a), float(b)) for a, b in zip(line.x, line.y) if self.x.drawable(a) and self.y.drawable(b)]
            if len(points) > DRAWN:
                points = [points[round(k * (len(points) - 1) / (DRAWN - 1))] for k in range(DRAWN)]
            found += [(line, points)] if points else []
        return found

    @property
    def _level(self) -> tuple[float, str] | None:
        return self.level if self.level is not None and self.y.drawable(self.level[0]) else None

    @cached_property
    def scales(self) -> tuple[Scale, Scale]:
        """From numbers to places, across and up; there must be a point to draw."""
        points = [point for _, points in self.drawn for point in points]
        heights = [b for _, b in points] + ([] if self._level is None else [self._level[0]])
        top = self.whole - self.height + TOP
        across = _scale(self.x, [a for a, _ in points], LEFT, WIDTH - RIGHT)
        return across, _scale(self.y, heights, self.whole - BOTTOM, top)

    @cached_property
    def _keys(self) -> list[tuple[float, float, Line]]:
        """The lines of the legend with their places in rows; none where there is one line."""
        named = [line for line, _ in self.drawn if line.name and len(self.drawn) > 1]
        x, y, found = LEFT, ROW, []
        for line in named:
            width = KEY + LETTER * _width(shortened(line.name)) + ROW
            if x > LEFT and x + width > WIDTH:
                x, y = LEFT, y + ROW
            found.append((x, y, line))
            x += width
        return found

    def _content(self) -> Iterator[Markup]:
        across, up = self.scales
        for x, y, line in self._keys:
            yield line.group(line.path(f"M{x:g} {y - 4:g}h26"))
            yield _text(x + KEY, y, shortened(line.name))
        yield from _frame(across, up)
        if self._level is not None:
            height, words = self._level
            yield Markup(
                '<path d="M{:g} {:.1f}H{:g}" stroke="currentColor" stroke-opacity="0.7" stroke-dasharray="3 3"/>'
            ).format(LEFT, up(height), WIDTH - RIGHT)
            yield _text(LEFT + 5, up(height) - 5, shortened(words), opacity=0.7)
        for line, places in self.drawn:
            yield line.group(_curve(line, places, across, up))


def _curve(line: Line, points: Sequence[tuple[float, float]], across: Scale, up: Scale) -> Markup:
    """The path, cut off at the frame, and marks with their numbers."""
    places = [(across(a), min(max(up(b), up.end - 2.0), up.start + 2.0)) for a, b in points]
    mark = Markup(
        '<circle cx="{:.1f}" cy="{:.1f}" r="2.6" fill="currentColor"><title>{}: {:.6g}, {:.10g}</title></circle>'
    )
    marks = [mark.format(*place, clean(line.name), *point) for place, point in zip(places, points)]
    path = line.path("M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in places))
    return path + Markup("").join(marks if line.marked and len(points) <= MARKED else [])


def _frame(across: Scale, up: Scale) -> Iterator[Markup]:
    """Lines, numbers and labels of both axes."""
    left, right, bottom, top = across.start, across.end, up.start, up.end
    grid = [f"M{x:.1f} {top:g}V{bottom:g}" for x, _ in across.ticks()]
    grid += [f"M{left:g} {y:.1f}H{right:g}" for y, _ in up.ticks()]
    yield Markup('<path d="{}" stroke="currentColor" stroke-opacity="0.12"/>').format("".join(grid))
    frame = f"M{left:g} {top:g}V{bottom:g}H{right:g}"
    yield Markup('<path d="{}" fill="none" stroke="currentColor" stroke-opacity="0.3"/>').format(frame)
    for x, text in across.ticks():
        yield _text(x, bottom + 16, text, "middle", 0.7)
    for y, text in up.ticks():
        yield _text(left - 6, y + 4, text, "end", 0.7)
    yield _text((left + right) / 2, bottom + BOTTOM - 6, across.label, "middle")
    turned = Markup('<g transform="translate(12 {:.1f}) rotate(-90)">{}</g>')
    yield turned.format((top + bottom) / 2, _text(0.0, 0.0, up.label, "middle"))


def _text(x: float, y: float, text: str, anchor: str = "start", opacity: float = 1.0) -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}" opacity="{:g}">{}</text>').format(
        x, y, anchor, opacity, clean(text)
    )


def clean(text: str) -> str:
    """The text with a mark for each character that XML does not allow, so that every reader takes the picture."""
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)


def _width(text: str) -> float:
    """In letters of usual width."""
    return sum(2.0 if unicodedata.east_asian_width(c) in "WF" else 1.4 if c.isupper() else 1.0 for c in text)


def shortened(name: str, most: int = LETTERS) -> str:
    """The name, without its middle where it is wider than so many letters."""
    if _width(name) <= most:
        return name
    half = next(k for k in range(most // 2 - 1, -1, -1) if _width(name[:k]) + _width(name[len(name) - k :]) <= most - 3)
    return f"{name[:half]}...{name[len(name) - half :]}"


def swatch(series: int) -> Markup:
    """A piece of a line of this colour, for tables."""
    line = Line("", [], [], series)
    piece = line.group(line.path("M1 5H25"))
    return Markup('<svg viewBox="0 0 26 10" width="26" height="10" aria-hidden="true">{}</svg>').format(piece)


def steps(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers from low to high, about `count` of them."""
    raw = (high - low) / count
    size = 10.0 ** math.floor(math.log10(raw))
    step = size * next(factor for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if raw <= factor * size * (1.0 + 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def decades(low: float, high: float, count: int = 6) -> list[float]:
    """Powers of ten from low to high, at most about `count`; round numbers between where there are fewer than two."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first < 1:
        return steps(low, high, 4)
    return [10.0**k for k in range(first, last + 1, max(1, math.ceil((last - first) / count)))]


def _scale(axis: Axis, values: Sequence[float], start: float, end: float) -> Scale:
    low = min(values) if axis.low is None else axis.low
    high = max(values) if axis.high is None else axis.high
    if axis.log:
        low, high = (low / 3.0, high * 3.0) if low >= high else (low, high)
        pad = 10.0 ** (0.04 * (math.log10(high) - math.log10(low)))
        return Scale(axis, max(low / pad, 1e-300), min(high * pad, 1e305), start, end)
    if high - low <= 8.0 * max(math.ulp(low), math.ulp(high)):
        half = 1.0 if axis.whole else max(abs(low) * 1e-3, LEAST) if low else 1.0
        low, high = low - half, high + half
    pad = 0.04 * (high - low)
    low, high = low - pad if axis.low is None else low, high + pad if axis.high is None else high
    return Scale(axis, low, high, start, end)


def numbers(values: Sequence[float]) -> list[str]:
    """Ticks with as many digits as tell them apart."""
    for digits in range(3, 16):
        texts = [f"{value:.{digits}g}" for value in values]
        if len(set(texts)) == len(values) and all(
            abs(float(text) - value) <= 1e-9 * max(map(abs, values)) for text, value in zip(texts, values)
        ):
            return texts
    return [f"{value:.6g}" for value in values]
