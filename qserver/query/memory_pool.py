"""The memory that all statements, and answers that nobody has read yet, may hold together.

Each statement has a bound of its own; many at once are bounded here. What is taken is a count that
whoever took it gives back, not memory itself, so the pool is exact only as far as they count.
"""

from __future__ import annotations

from qserver.errors import OutOfMemory
from qserver.limits import MEMORY_BYTES_MAX


class MemoryPool:
    """Bytes that may be held at once by all who share the pool."""

    __slots__ = ("held", "most")

    def __init__(self, most: int = MEMORY_BYTES_MAX) -> None:
        self.most = most
        self.held = 0

    def take(self, count: int) -> None:
        """Hold so many bytes more, or refuse."""
        if self.held + count > self.most:
            raise OutOfMemory(
                "the service needs more memory than it may have",
                detail=f"All statements together hold {self.held} bytes; the limit is {self.most}.",
                hint="Try again later, or have the rows streamed.",
            )
        self.held += count

    def take_anyway(self, count: int) -> None:
        """Hold so many bytes more for what has happened already, and cannot be refused."""
        self.held += count

    def give_back(self, count: int) -> None:
        self.held -= count
        assert self.held >= 0, "more was given back than taken"

    def __repr__(self) -> str:
        return f"{self.held} of {self.most} bytes are held"
