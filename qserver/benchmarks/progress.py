"""Status lines for programs that measure: on a terminal, nothing elsewhere."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final, TextIO, TypeVar

Result = TypeVar("Result")


class StatusLine:
    """One line, redrawn again and again."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_shown = stream.isatty()

    def say(self, text: str) -> None:
        if self._is_shown:
            self._stream.write(f"\r\x1b[K{text}")
            self._stream.flush()


class Progress(StatusLine):
    """A progress bar, and what is being done."""

    WIDTH: Final = 30

    def __init__(self, total: int, stream: TextIO) -> None:
        super().__init__(stream)
        self._total = total
        self._done = 0

    async def step(self, label: str, measured: Awaitable[Result]) -> Result:
        """Show the label while `measured` runs."""
        filled = self.WIDTH * self._done // self._total
        bar = "█" * filled + "░" * (self.WIDTH - filled)
        self.say(f"{bar} {self._done}/{self._total}  {label}")
        result = await measured
        self._done += 1
        self.say("")
        return result
