"""Every generated file of the docs, with the text that it should have."""

from __future__ import annotations

import json
from pathlib import Path

from docs.generate import bar_chart, limits_page, line_chart

DOCS = Path(__file__).parent.parent


def generated() -> dict[Path, str]:
    charts = {
        data.with_suffix(".svg"): chart(data)
        for data in sorted((DOCS / "performance").glob("*.json"))
    }
    return {DOCS / "limits.md": limits_page.page(), **charts}


def chart(path: Path) -> str:
    data = json.loads(path.read_text(encoding="utf-8"))
    return line_chart.chart(data) if "panels" in data else bar_chart.chart(data)
