"""Bounds the memory that all statements, and answers not yet sent, hold together.

Each statement has its own bound; the pool bounds their sum. The pool counts what its users report;
it allocates nothing. The page cache makes room for it, so that both together stay within the memory
of the service. Another pool bounds requests that are arriving.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from qserver.errors import OutOfMemory
from qserver.limits import MEMORY_BYTES_MAX


class MemoryPool:
    __slots__ = ("_hint", "_who", "held", "make_room", "most")

    def __init__(
        self,
        most: int = MEMORY_BYTES_MAX,
        who: str = "statements",
        hint: str = "Try again later, or have the rows streamed.",
    ) -> None:
        self.most = most
        self._who, self._hint = who, hint
        self.held = 0
        self.make_room: Callable[[], None] | None = None

    def take(self, count: int) -> None:
        if self.held + count > self.most:
            raise OutOfMemory(
                "the service needs more memory than it may have",
                detail=f"All {self._who} together hold {self.held} bytes, {self.most} at most.",
                hint=self._hint,
            )
        self.held += count
        if self.make_room is not None:
            self.make_room()

    def take_anyway(self, count: int) -> None:
        """Count bytes that are in use already and cannot be refused."""
        self.held += count

    def give_back(self, count: int) -> None:
        self.held -= count
        assert self.held >= 0, "more was given back than taken"

    @contextmanager
    def holding(self, count: int, *, anyway: bool = False) -> Iterator[None]:
        """Hold `count` bytes for the time of a block."""
        if anyway:
            self.take_anyway(count)
        else:
            self.take(count)
        try:
            yield
        finally:
            self.give_back(count)

    @contextmanager
    def growing(self) -> Iterator[Callable[[int], None]]:
        """Hold what the block takes through the given function."""
        held = 0

        def hold(count: int) -> None:
            nonlocal held
            self.take(count)
            held += count

        try:
            yield hold
        finally:
            self.give_back(held)

    def __repr__(self) -> str:
        return f"{self.held} of {self.most} bytes are held"
