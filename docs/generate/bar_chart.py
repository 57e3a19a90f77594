"""Bar charts as SVG, from the small JSON files of `docs/performance/`.

A file holds a title, the unit, a note (machine, program, what is best) and one row for each bar:

    {"name": "point read", "low": 1.0, "high": 1.8, "aim": 1.5, "text": "1.0 to 1.8 µs"}

A bar runs from zero to `high`; the part above `low` is paler, so a wide range looks wide. `aim` is
a red tick. Rows with `reference`, which ours are compared with, are grey. The SVG has no script,
font or date, so the same data gives the same bytes.

No plotting library: the project depends on none, and bars need a hundred lines.
"""

from __future__ import annotations

from html import escape
from typing import Any

WIDTH = 820
LABEL_WIDTH = 340
TEXT_WIDTH = 190
BAR_HEIGHT = 16
ROW_HEIGHT = 24
TOP = 52
COLORS = {"ours": "#2f6f9f", "reference": "#8c8c8c", "aim": "#c0392b"}


def chart(data: dict[str, Any]) -> str:
    """The SVG of the content of one data file."""
    rows = data["rows"]
    notes = data["note"]
    greatest = max(max(row["high"], row.get("aim", 0)) for row in rows)
    height = TOP + ROW_HEIGHT * len(rows) + 18 * len(notes) + 14
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"'
        f' height="{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        text_at(12, 22, data["title"], size=15),
        text_at(12, 40, data["unit"], color="#555555"),
    ]
    for number, row in enumerate(rows):
        parts += _bar(row, TOP + number * ROW_HEIGHT, greatest)
    below = TOP + ROW_HEIGHT * len(rows) + 16
    parts += [
        text_at(12, below + 18 * number, note, color="#555555") for number, note in enumerate(notes)
    ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _bar(row: dict[str, Any], top: int, greatest: float) -> list[str]:
    color = COLORS["reference" if row.get("reference") else "ours"]
    low, high = row.get("low", row["high"]), row["high"]
    parts = [
        text_at(LABEL_WIDTH - 8, top + 13, row["name"].replace("`", ""), anchor="end"),
        _rectangle(top, 0, _scaled(low, greatest), color),
    ]
    if high > low:
        width = _scaled(high, greatest) - _scaled(low, greatest)
        parts.append(_rectangle(top, _scaled(low, greatest), width, color, opacity=0.4))
    if "aim" in row:
        at = LABEL_WIDTH + _scaled(row["aim"], greatest)
        parts.append(
            f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{top - 2}" y2="{top + BAR_HEIGHT + 2}"'
            f' stroke="{COLORS["aim"]}" stroke-width="2"/>'
        )
    end = max(high, row.get("aim", 0))
    parts.append(text_at(LABEL_WIDTH + _scaled(end, greatest) + 8, top + 13, row["text"]))
    return parts


def _scaled(value: float, greatest: float) -> float:
    return value / greatest * (WIDTH - LABEL_WIDTH - TEXT_WIDTH)


def _rectangle(top: int, start: float, width: float, color: str, opacity: float = 1.0) -> str:
    return (
        f'<rect x="{LABEL_WIDTH + start:.1f}" y="{top}" width="{width:.1f}" height="{BAR_HEIGHT}"'
        f' fill="{color}" fill-opacity="{opacity}"/>'
    )


def text_at(
    x: float, y: float, text: str, size: int = 12, color: str = "black", anchor: str = "start"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:g}" font-size="{size}" fill="{color}" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
    )
