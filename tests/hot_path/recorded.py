"""The recorded counts, and how far new ones may be from them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

RECORD: Final = Path(__file__).parent / "counts.json"
TOLERANCE: Final = 0.03
SLACK: Final = 0.5
"""Counts near zero may differ by this, whatever that is in per cent."""
PYTHON: Final = f"{sys.version_info.major}.{sys.version_info.minor}"

Counts = Mapping[str, Mapping[str, float]]


def recorded() -> dict[str, Any]:
    record: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return record


def record(requests: Counts, commit: Mapping[str, float] | None) -> None:
    """Write the record. Without a count of system calls the recorded one stays."""
    if commit is None:
        commit = recorded()["commit"]["system calls"]
    content = {"python": PYTHON, "requests": requests, "commit": {"system calls": commit}}
    RECORD.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def differences(before: Counts, now: Counts) -> list[str]:
    """What differs by more than is allowed, as sentences."""
    return [
        _difference(f"{request}, {count}", before.get(request, {}).get(count, 0.0), value)
        for request, counts in now.items()
        for count, value in _with_missing(before.get(request, {}), counts).items()
        if _is_far(before.get(request, {}).get(count, 0.0), value)
    ]


def _with_missing(before: Mapping[str, float], now: Mapping[str, float]) -> dict[str, float]:
    return {**dict.fromkeys(before, 0.0), **now}


def _is_far(before: float, now: float) -> bool:
    return abs(now - before) > max(TOLERANCE * before, SLACK)


def _difference(what: str, before: float, now: float) -> str:
    share = f" ({now / before - 1:+.0%})" if before else ""
    return f"{what}: {now:,g}, recorded {before:,g}{share}"


ADVICE: Final = f"""
A request takes more or less than what is recorded in {RECORD.name}. If it takes more, find out why:
this is the hot path, and nothing but a reason should make it longer. If the change is worth it, or
the request has become cheaper, run `make counts`, and commit the new record with the reason."""
