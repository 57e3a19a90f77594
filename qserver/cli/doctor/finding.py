"""What a check has found."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

State: TypeAlias = Literal["ok", "warning", "problem"]


class Finding(msgspec.Struct, frozen=True):
    check: str
    state: State
    text: str
    """What is so."""
    change: str | None = None
    """What to change; None if all is well."""


def ok(check: str, text: str) -> Finding:
    return Finding(check, "ok", text)


def warning(check: str, text: str, change: str) -> Finding:
    return Finding(check, "warning", text, change)


def problem(check: str, text: str, change: str) -> Finding:
    return Finding(check, "problem", text, change)
