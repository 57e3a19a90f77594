"""A progress bar for programs that measure."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final, TextIO, TypeVar

Result = TypeVar("Result")


class Progress:
    """A progress bar on a terminal, nothing elsewhere."""

    WIDTH: Final = 30

    def __init__(self, total: int, stream: TextIO) -> None:
        self._total = total
        self._stream = stream
        self._shown = stream.isatty()
        self._done = 0

    async def step(self, label: str, measured: Awaitable[Result]) -> Result:
        """Show the label while `measured` runs."""
        filled = self.WIDTH * self._done // self._total
        bar = "█" * filled + "░" * (self.WIDTH - filled)
        self._show(f"{bar} {self._done}/{self._total}  {label}")
        result = await measured
        self._done += 1
        self._show("")
        return result

    def _show(self, text: str) -> None:
        if self._shown:
            self._stream.write(f"\r\x1b[K{text}")
            self._stream.flush()
