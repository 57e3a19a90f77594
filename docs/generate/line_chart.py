"""Line charts as SVG with logarithmic axes, from the files `growth_….json` of `docs/performance/`.

A file holds a title, a note and panels; a panel has a unit, the name of its sizes, and lines:

    {"name": "point read", "points": [[1000, 61.2], [10000, 63.9]]}

On both axes a factor of ten is always a whole step, so a flat line does not grow, a line along the
dashed one grows in proportion, and a steeper one is worth a look. A line is named where it ends,
with its first and last value. Panels with one line share a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import ceil, floor, log10
from typing import Any, NamedTuple

from docs.generate.bar_chart import WIDTH, text_at

TOP = 30
LEFT, RIGHT, NAMES = 84, 66, 300
"""Beside the plot: the ticks; the last value; or, where there are several lines, their names."""
HEIGHT_OF_MANY, HEIGHT_OF_ONE = 250, 130
ABOVE, BELOW = 40, 44
LABEL_HEIGHT = 14
COLORS = ("#2f6f9f", "#c0392b", "#3c8d40", "#8e5ea2", "#b7791f")
GREY = "#555555"
PROPORTION_DRAWN_MIN = 10
"""The dashed line is drawn where something grows by more than this factor."""

Points = list[tuple[float, float]]


def chart(data: dict[str, Any]) -> str:
    """The SVG of the content of one data file."""
    parts: list[str] = []
    y = TOP
    for row in _rows(data["panels"]):
        width = WIDTH // len(row)
        plots = [Plot(panel, number * width, y, width) for number, panel in enumerate(row)]
        for plot in plots:
            parts += plot.drawn()
        y += max(plot.outer_height for plot in plots)
    parts += [
        text_at(12, y + 12 + 18 * number, note, color=GREY)
        for number, note in enumerate(data["note"])
    ]
    height = y + 18 * len(data["note"]) + 8
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"'
        f' height="{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        text_at(12, 22, data["title"], size=15),
    ]
    return "\n".join([*head, *parts, "</svg>"]) + "\n"


def _rows(panels: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Panels with several lines have a row of their own; the others share one."""
    yield from ([panel] for panel in panels if len(panel["lines"]) > 1)
    single = [panel for panel in panels if len(panel["lines"]) == 1]
    if single:
        yield single


class Scale(NamedTuple):
    """Maps values to pixels: whole powers of ten from `low` to `high` over a length."""

    low: int
    high: int
    start: float
    length: float

    @classmethod
    def over(cls, values: list[float], start: float, length: float) -> Scale:
        low, high = floor(log10(min(values)) + 1e-9), ceil(log10(max(values)) - 1e-9)
        return cls(low, max(high, low + 1), start, length)

    def at(self, value: float) -> float:
        return self.start + (log10(value) - self.low) / (self.high - self.low) * self.length

    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]


class Plot:
    """One panel at its place."""

    def __init__(self, panel: dict[str, Any], x: float, y: float, outer_width: float) -> None:
        self.panel = panel
        self.lines: list[tuple[str, Points]] = [
            (line["name"], [(x, y) for x, y in line["points"]]) for line in panel["lines"]
        ]
        is_alone = len(self.lines) == 1
        height = HEIGHT_OF_ONE if is_alone else HEIGHT_OF_MANY
        self.outer_height = ABOVE + height + BELOW
        self.left, self.right = x + LEFT, x + outer_width - (RIGHT if is_alone else NAMES)
        self.top, self.bottom = y + ABOVE, y + ABOVE + height
        points = [point for _, points in self.lines for point in points]
        self.x = Scale.over([x for x, _ in points], self.left, self.right - self.left)
        self.y = Scale.over([y for _, y in points], self.bottom, self.top - self.bottom)

    def drawn(self) -> Iterator[str]:
        yield text_at(self.left, self.top - 22, self.panel["title"], size=13)
        yield text_at(self.left, self.top - 7, self.panel["unit"], color=GREY)
        yield from self._axes()
        yield from self._proportion()
        names = _apart([self.y.at(points[-1][1]) for _, points in self.lines])
        for (name, points), color, at in zip(self.lines, COLORS, names, strict=False):
            yield from self._line(name, points, color, at)

    def _axes(self) -> Iterator[str]:
        for value in self.x.ticks():
            at = self.x.at(value)
            yield _stroke(at, self.top, at, self.bottom, "#e4e4e4")
            yield text_at(at, self.bottom + 15, _number(value), color=GREY, anchor="middle")
        for value in self.y.ticks():
            at = self.y.at(value)
            yield _stroke(self.left, at, self.right, at, "#e4e4e4")
            yield text_at(self.left - 6, at + 4, _number(value), color=GREY, anchor="end")
        middle = (self.left + self.right) / 2
        yield text_at(middle, self.bottom + 31, self.panel["x"], color=GREY, anchor="middle")

    def _proportion(self) -> Iterator[str]:
        """The dashed line, from the lowest beginning of a line that grows a lot."""
        growing = [
            points
            for _, points in self.lines
            if points[-1][1] > PROPORTION_DRAWN_MIN * points[0][1]
        ]
        if growing:
            x, y = min(points[0] for points in growing)
            end = min(10.0**self.x.high, x * 10.0**self.y.high / y)
            yield _stroke(
                self.x.at(x), self.y.at(y), self.x.at(end), self.y.at(y * end / x), GREY, dash="3 4"
            )

    def _line(self, name: str, points: Points, color: str, name_at: float) -> Iterator[str]:
        places = [(self.x.at(x), self.y.at(y)) for x, y in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        yield f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>'
        for x, y in places:
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>'
        (x, y), first, last = places[-1], _number(points[0][1]), _number(points[-1][1])
        if len(self.lines) == 1:
            yield text_at(places[0][0] + 2, places[0][1] - 7, first, color=color)
            yield text_at(x + 8, name_at + 4, last, color=color)
        else:
            yield _stroke(x + 4, y, self.right + 18, name_at, color, width=0.6)
            yield text_at(self.right + 22, name_at + 4, f"{name}: {first} to {last}", color=color)


def _apart(places: list[float]) -> list[float]:
    """Move labels that would cover each other apart, in their order."""
    order = sorted(range(len(places)), key=lambda number: places[number])
    moved = list(places)
    for before, after in pairwise(order):
        moved[after] = max(moved[after], moved[before] + LABEL_HEIGHT)
    return moved


def _number(value: float) -> str:
    if value >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}"


def _stroke(
    x1: float, y1: float, x2: float, y2: float, color: str, width: float = 1, dash: str = ""
) -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}"'
        f' stroke-width="{width:g}"{dashed}/>'
    )
