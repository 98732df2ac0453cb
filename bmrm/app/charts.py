"""Charts as inline SVG; colours, dashes and marks are classes of the style sheet, so that they follow its mode."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bmrm.app.elements import Markup, tag

WIDTH, HEIGHT = 440.0, 280.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 12.0, 10.0, 44.0
SERIES = 6
"""Colours of the style sheet; further lines begin again with the first, in another dash."""
MARKED = 60
"""The most points of a line that get a mark with its numbers as a tooltip."""
LEAST = 1e-280
"""The least number of a logarithmic axis."""
DRAWN = 300
"""The most points of a line that are drawn."""


@dataclass(frozen=True)
class Line:
    """One line of a chart.

    Attributes
    ----------
    name : for the legend.
    x, y : as many numbers; points that are not finite, or below `LEAST` on a logarithmic axis, are left out.
    series : the colour, from 0.
    dashed, stepped, marked : how it is drawn.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    series: int = 0
    dashed: bool = False
    stepped: bool = False
    marked: bool = True


@dataclass(frozen=True)
class Axis:
    """What an axis shows, and where it begins and ends; None for where the points do. `whole` numbers are counts."""

    label: str
    low: float | None = None
    high: float | None = None
    log: bool = False
    whole: bool = False


@dataclass(frozen=True)
class _Scale:
    """From numbers to places in the picture."""

    low: float
    high: float
    log: bool
    start: float
    end: float
    whole: bool = False

    def __call__(self, value: float) -> float:
        low, high, value = (_log(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        found = decades(self.low, self.high) if self.log else steps(self.low, self.high)
        return [value for value in found if value == round(value)] if self.whole else found


def line_chart(
    lines: Sequence[Line], x: Axis, y: Axis, *, title: str, level: tuple[float, str] | None = None
) -> Markup:
    """A figure with its legend.

    Parameters
    ----------
    lines : in the order of the legend; those without a point are not in it.
    x, y : the axes.
    title : above the figure, and its name for readers of screens.
    level : a height with its name, drawn as a thin line.
    """
    drawn = _drawable(lines, x, y)
    if not drawn:
        return tag("figure", tag("figcaption", title), tag("p", "Nothing to draw.", class_="none"))
    legend = [tag("span", _key(line), line.name, class_="key") for line, _ in drawn if line.name and len(drawn) > 1]
    picture = svg(lines, x, y, level=level, role="img", aria_label=title)
    return tag("figure", tag("figcaption", title), tag("div", legend, class_="legend") if legend else None, picture)


def svg(
    lines: Sequence[Line],
    x: Axis,
    y: Axis,
    *,
    level: tuple[float, str] | None = None,
    **attributes: str | float | None,
) -> Markup:
    """The picture alone, `WIDTH` by `HEIGHT` unless its attributes scale it; there must be a point to draw."""
    drawn = _drawable(lines, x, y)
    if level is not None and y.log and level[0] < LEAST:
        level = None
    heights = [point[1] for _, points in drawn for point in points] + ([] if level is None else [level[0]])
    across = _scale(x, [point[0] for _, points in drawn for point in points], LEFT, WIDTH - RIGHT)
    up = _scale(y, heights, HEIGHT - BOTTOM, TOP)
    parts = [*_grid(across, up, x.label, y.label), *_level(level, up)]
    parts += [_drawn(line, points, across, up) for line, points in drawn]
    return tag("svg", *parts, viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}", **attributes)


def _drawable(lines: Sequence[Line], x: Axis, y: Axis) -> list[tuple[Line, list[tuple[float, float]]]]:
    """The lines that have a point, with their points."""
    return [(line, points) for line in lines if (points := _points(line, x, y))]


def bars(rows: Sequence[tuple[str, float, str]], *, signed: bool = False) -> Markup:
    """Names with bars and what is written beside them; signed ones begin in the middle."""
    most = max((abs(value) for _, value, _ in rows), default=0.0) or 1.0
    lines = []
    for name, value, text in rows:
        share = 100.0 * abs(value) / most
        start, share = ((50.0 if value >= 0 else 50.0 - share / 2), share / 2) if signed else (0.0, share)
        side = "below" if value < 0 else "above"
        bar = tag("span", class_=f"bar {side}", style=f"left:{start:.2f}%;width:{share:.2f}%")
        track = tag("span", bar, class_="track signed" if signed else "track")
        lines.append(tag("li", tag("span", name, class_="name", title=name), track, tag("span", text, class_="value")))
    return tag("ul", lines, class_="bars")


def style_of(series: int) -> str:
    """The classes of a line's colour."""
    return f"s{series % SERIES}" + (f" again{series // SERIES % 2}" if series >= SERIES else "")


def steps(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers from low to high, about `count` of them."""
    raw = (high - low) / count
    size = 10.0 ** math.floor(math.log10(raw))
    step = size * next(factor for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if raw <= factor * size * (1.0 + 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def decades(low: float, high: float, count: int = 6) -> list[float]:
    """Powers of ten from low to high, at most about `count`; round numbers between where there are fewer than two."""
    first, last = math.ceil(_log(low) - 1e-9), math.floor(_log(high) + 1e-9)
    if last - first < 1:
        return steps(low, high, 4)
    return [10.0**k for k in range(first, last + 1, max(1, math.ceil((last - first) / count)))]


def _log(value: float) -> float:
    return math.log10(value)


def _points(line: Line, x: Axis, y: Axis) -> list[tuple[float, float]]:
    """Those that can be drawn, thinned evenly where they are many; first and last stay."""
    least_x, least_y = (LEAST if axis.log else -math.inf for axis in (x, y))
    points = [
        (float(a), float(b))
        for a, b in zip(line.x, line.y)
        if math.isfinite(a) and math.isfinite(b) and a >= least_x and b >= least_y
    ]
    if len(points) <= DRAWN:
        return points
    return [points[round(k * (len(points) - 1) / (DRAWN - 1))] for k in range(DRAWN)]


def _scale(axis: Axis, values: Sequence[float], start: float, end: float) -> _Scale:
    low = min(values) if axis.low is None else axis.low
    high = max(values) if axis.high is None else axis.high
    if axis.log:
        low, high = (low / 3.0, high * 3.0) if low >= high else (low, high)
        pad = 10.0 ** (0.04 * (_log(high) - _log(low)))
        return _Scale(low / pad, high * pad, True, start, end)
    if low >= high:
        half = 1.0 if axis.whole else abs(low) * 1e-3 or 1.0
        low, high = low - half, high + half
    pad = 0.04 * (high - low)
    low, high = low - pad if axis.low is None else low, high + pad if axis.high is None else high
    return _Scale(low, high, False, start, end, axis.whole)


def _grid(across: _Scale, up: _Scale, x_label: str, y_label: str) -> list[Markup]:
    """Lines, numbers and labels of both axes."""
    bottom, right = up.start, across.end
    parts = []
    x_ticks, y_ticks = across.ticks(), up.ticks()
    for value, text in zip(x_ticks, numbers(x_ticks)):
        x = f"{across(value):.1f}"
        parts += [
            tag("line", x1=x, x2=x, y1=f"{up.end:g}", y2=f"{bottom:g}", class_="grid"),
            tag("text", text, x=x, y=f"{bottom + 16:g}", class_="tick middle"),
        ]
    for value, text in zip(y_ticks, numbers(y_ticks)):
        y = f"{up(value):.1f}"
        parts += [
            tag("line", x1=f"{across.start:g}", x2=f"{right:g}", y1=y, y2=y, class_="grid"),
            tag("text", text, x=f"{across.start - 6:g}", y=y, dy="4", class_="tick end"),
        ]
    middle = (across.start + right) / 2
    turned = f"translate(12 {(up.end + bottom) / 2:.1f}) rotate(-90)"
    parts += [
        tag("path", d=f"M{across.start:g} {up.end:g}V{bottom:g}H{right:g}", class_="axis"),
        tag("text", x_label, x=f"{middle:.1f}", y=f"{HEIGHT - 6:g}", class_="label middle"),
        tag("text", y_label, transform=turned, class_="label middle"),
    ]
    return parts


def numbers(values: Sequence[float]) -> list[str]:
    """Ticks with as many digits as tell them apart."""
    for digits in range(3, 16):
        texts = [f"{value:.{digits}g}" for value in values]
        if len(set(texts)) == len(values) and all(
            abs(float(text) - value) <= 1e-9 * max(map(abs, values)) for text, value in zip(texts, values)
        ):
            return texts
    return [f"{value:.6g}" for value in values]


def _level(level: tuple[float, str] | None, up: _Scale) -> list[Markup]:
    if level is None:
        return []
    at = up(level[0])
    return [
        tag("line", x1=f"{LEFT:g}", x2=f"{WIDTH - RIGHT:g}", y1=f"{at:.1f}", y2=f"{at:.1f}", class_="level"),
        tag("text", level[1], x=f"{LEFT + 5:g}", y=f"{at - 5:.1f}", class_="tick"),
    ]


def _drawn(line: Line, points: Sequence[tuple[float, float]], across: _Scale, up: _Scale) -> Markup:
    """The path, cut off at the frame, and marks with their numbers."""
    places = [(across(a), min(max(up(b), TOP - 2.0), HEIGHT - BOTTOM + 2.0)) for a, b in points]
    join = "H{0:.1f}V{1:.1f}" if line.stepped else "L{0:.1f} {1:.1f}"
    path = f"M{places[0][0]:.1f} {places[0][1]:.1f}" + "".join(join.format(*place) for place in places[1:])
    parts = [tag("path", d=path, class_="line dashed" if line.dashed else "line")]
    if line.marked and len(points) <= MARKED:
        parts += [
            tag("circle", tag("title", f"{line.name}: {a:.6g}, {b:.10g}"), cx=f"{p:.1f}", cy=f"{q:.1f}", r="2.6")
            for (a, b), (p, q) in zip(points, places)
        ]
    return tag("g", parts, class_=style_of(line.series))


def _key(line: Line) -> Markup:
    """A short piece of the line, for the legend."""
    path = tag("path", d="M1 5H25", class_="line dashed" if line.dashed else "line")
    return tag("svg", path, viewBox="0 0 26 10", aria_hidden="true", class_=style_of(line.series))
