"""The data of one chart: panels with lines, saved as JSON for `docs/generate/line_chart.py`."""

from __future__ import annotations

import json
import os
import platform
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class Line:
    """Values over sizes, both above zero: the axes are logarithmic."""

    name: str
    points: list[tuple[float, float]] = field(default_factory=list)

    def add(self, size: float, value: float) -> None:
        self.points.append((size, float(f"{value:.4g}")))


class Lines(dict[str, Line]):
    """Lines by their names, in the order in which they begin."""

    def add(self, name: str, size: float, value: float) -> None:
        self.setdefault(name, Line(name)).add(size, value)


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    x: str
    unit: str
    lines: list[Line]


@dataclass(frozen=True, slots=True)
class Chart:
    name: str
    title: str
    panels: list[Panel]
    note: list[str] = field(default_factory=list)

    def save(self, folder: Path) -> Path:
        path = folder / f"growth_{self.name}.json"
        path.write_text(self.as_json() + "\n", encoding="utf-8")
        return path

    def as_json(self) -> str:
        panels = [asdict(panel) for panel in self.panels if panel.lines[0].points]
        content = {"title": self.title, "note": [*self.note, machine()], "panels": panels}
        return _PAIR.sub(r"[\1, \2]", json.dumps(content, indent=1, ensure_ascii=False))


_PAIR: Final = re.compile(r"\[\s+([^\s,]+),\s+([^\s,]+)\s+\]")
"""A point, which is to stand in one line."""


def machine() -> str:
    """Where the numbers come from; a load above the number of cores is other work."""
    return (
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()},"
        f" load {os.getloadavg()[0]:.1f}"
    )


def sizes_up_to(most: int, first: int = 1, per_decade: tuple[int, ...] = (1,)) -> list[int]:
    """Powers of ten, or steps between them, and the largest size."""
    sizes = {first, most}
    decade = 1
    while decade <= most:
        sizes |= {decade * step for step in per_decade if first <= decade * step <= most}
        decade *= 10
    return sorted(sizes)
