"""What programs that measure print: tables, and on a terminal how far they are."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import Final, TextIO, TypeVar

T = TypeVar("T")


class StatusLine:
    """One line on a terminal, redrawn again and again; nothing elsewhere."""

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

    async def step(self, label: str, measured: Awaitable[T]) -> T:
        """Show the label while `measured` runs."""
        filled = self.WIDTH * self._done // self._total
        bar = "█" * filled + "░" * (self.WIDTH - filled)
        self.say(f"{bar} {self._done}/{self._total}  {label}")
        result = await measured
        self._done += 1
        self.say("")
        return result


def line(name: str, cells: Iterable[str | float], first: int = 26, width: int = 12) -> str:
    """A line of a table: a name to the left, columns to the right."""
    texts = (each if isinstance(each, str) else f"{each:.2f}" for each in cells)
    return f"{name:{first}}{''.join(f'{each:>{width}}' for each in texts)}".rstrip()
