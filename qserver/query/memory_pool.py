"""Bounds the memory that all statements, and answers not yet sent, hold together.

Each statement has its own bound; the pool bounds their sum. The pool counts what its users report;
it allocates nothing. The page cache makes room for it, so that both together stay within the memory
of the service. Another pool bounds requests that are arriving.

Each organization has a part of a pool (`PoolPart`). It may hold as much as it leaves free:

    one that takes all it can   ████████████████░░░░░░░░░░░░░░░░   a half, and a half is free
    another comes               ████████████████▓▓▓▓▓▓▓▓░░░░░░░░   a half of what was left
    as the first one's end      ██████████▓▓▓▓▓▓▓▓▓▓▓░░░░░░░░░░░   a third each, a third is free

So whoever comes next finds room, n that take all they can get 1 / (n + 1) each in the end, and
nobody has to be told how many others there are. This is how network switches share a buffer
(Choudhury and Hahne, dynamic queue length thresholds). An organization that is alone on its server
may hold all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from qserver.errors import OutOfMemory
from qserver.limits import MEMORY_BYTES_MAX


class MemoryPool:
    __slots__ = ("_hint", "_who", "has_one_user", "held", "make_room", "most")

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
        self.has_one_user = False
        """Whether one part may be the whole."""

    def part(self) -> PoolPart:
        """Return the part of an organization."""
        return PoolPart(self, self._who, self._hint)

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


class PoolPart(MemoryPool):
    """What one organization holds of a pool."""

    __slots__ = ("_whole", "refused")

    def __init__(self, whole: MemoryPool, who: str, hint: str) -> None:
        super().__init__(whole.most, who, hint)
        self._whole = whole
        self.refused = 0
        """How often it wanted more than its share."""

    def take(self, count: int) -> None:
        whole = self._whole
        held = self.held + count
        free = whole.most - whole.held - count
        if held > self.most or (held > free >= 0 and not whole.has_one_user):
            self.refused += 1
            raise OutOfMemory(
                "the organization needs more memory than its share",
                detail=f"Its {self._who} hold {self.held} bytes. They may hold {self.most}, and no"
                " more than they leave free for other organizations.",
                hint=self._hint,
            )
        whole.take(count)
        self.held = held

    def take_anyway(self, count: int) -> None:
        self.held += count
        self._whole.take_anyway(count)

    def give_back(self, count: int) -> None:
        super().give_back(count)
        self._whole.give_back(count)
