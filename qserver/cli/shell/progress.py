"""A progress line on a terminal, redrawn in place, removed at the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TextIO

_PAUSE_SECONDS: Final = 0.1
_BAR_WIDTH: Final = 24
_CLEAR: Final = "\r\x1b[K"


class Progress:
    """Draws at most ten times a second, and only on a terminal."""

    def __init__(
        self,
        stream: TextIO,
        total_bytes: int | None,
        now: Callable[[], float] = time.monotonic,
        counted: str = "statements",
    ) -> None:
        self._stream = stream
        self._total = total_bytes
        self._counted = counted
        self._now = now
        self._is_shown = False
        self._next = now() + _PAUSE_SECONDS if stream.isatty() else float("inf")

    def update(self, done_bytes: int, count: int, share: float | None = None) -> None:
        """`share` is the part that is done, if the bytes do not tell."""
        if self._now() < self._next:
            return
        self._next = self._now() + _PAUSE_SECONDS
        self._stream.write(_CLEAR + bar(done_bytes, self._total, count, self._counted, share))
        self._stream.flush()
        self._is_shown = True

    def clear(self) -> None:
        """Remove the line before other output; the next update draws it again."""
        if self._is_shown:
            self._stream.write(_CLEAR)
            self._stream.flush()
            self._is_shown = False


def bar(
    done_bytes: int,
    total_bytes: int | None,
    count: int,
    counted_things: str = "statements",
    share: float | None = None,
) -> str:
    """`[#####-------] 42 %  1,234 statements`; without a total, no bar."""
    counted = f"{done_bytes / 1e6:,.1f} MB  {count:,} {counted_things}"
    if share is None and total_bytes:
        share = done_bytes / total_bytes
    if share is None:
        return counted
    part = min(share, 1.0)
    full = int(part * _BAR_WIDTH)
    return f"[{'#' * full}{'-' * (_BAR_WIDTH - full)}] {part:4.0%}  {counted}"
