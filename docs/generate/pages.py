"""Every generated file of the docs, with the text that it should have."""

from __future__ import annotations

from pathlib import Path

from docs.generate import bar_chart, limits_page

DOCS = Path(__file__).parent.parent


def generated() -> dict[Path, str]:
    charts = {
        data.with_suffix(".svg"): bar_chart.chart(data)
        for data in sorted((DOCS / "performance").glob("*.json"))
    }
    return {DOCS / "limits.md": limits_page.page(), **charts}
