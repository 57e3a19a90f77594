"""The durable versions of databases that other processes follow, in shared memory.

    owner's slots       ┌────────┬─────────┐
    process 0 ──writes──► digest │ version │ ◄──read── every process that follows the database
              ...       └────────┴─────────┘

The owner writes a version when it is durable and before an answer of it leaves. A follower reads it
when a request begins, and answers from that version or a later one. So **no answer is older than
one that left before its request began**, and that costs one look at memory.

The memory is made before the processes are forked and outlasts each of them: while an owner is dead
its numbers stand, and its successor finds them by their digests. It writes what it has recovered
before it shows that.

Only the owner writes its slots. When all are used it takes one over: the version is written while
the slot is nobody's. So a follower that reads the version first, and then its own digest, has read
its own version; one that finds another digest knows nothing, and asks the owner.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from hashlib import blake2b
from typing import Final

from qserver.limits import VERSION_SLOTS

NEVER: Final = 1 << 62
"""A version that nobody has: the owner may not show the database any more."""


class SharedVersions:
    def __init__(self, processes: int, slots: int = VERSION_SLOTS) -> None:
        self._slots = slots
        self._memory = mmap.mmap(-1, processes * slots * 16)
        self._words = memoryview(self._memory).cast("Q")

    def of_owner(self, process: int) -> OwnVersions:
        first = process * self._slots
        return OwnVersions(self._words, range(first, first + self._slots))

    def read(self, slot: int, digest: int) -> int | None:
        """Return the version in a slot; None if that is of another database."""
        version = self._words[2 * slot + 1]  # first, see above
        return version if self._words[2 * slot] == digest else None

    def __repr__(self) -> str:
        return f"versions of {len(self._words) // 2} databases that processes share"


class OwnVersions:
    """The slots of one owner, for itself."""

    def __init__(self, words: memoryview[int], slots: range) -> None:
        self._words = words
        self._slots = slots
        found = ((words[2 * slot], slot) for slot in slots)
        self._taken = {digest: slot for digest, slot in found if digest}
        self._next = 0

    def find(self, name: str) -> Callable[[int], None] | None:
        """Return what writes the version of a database; None if nobody has followed it."""
        slot = self._taken.get(digest_of(name))
        return None if slot is None else self._writer(slot, digest_of(name))

    def enter(self, name: str) -> tuple[int, Callable[[int], None]]:
        """Return the slot of a database, and what writes its version: begin with that."""
        digest = digest_of(name)
        slot = self._taken.get(digest)
        if slot is None:
            slot = self._slots[self._next]
            self._next = (self._next + 1) % len(self._slots)
            self._taken.pop(self._words[2 * slot], None)
            self._words[2 * slot] = 0
            self._words[2 * slot + 1] = NEVER
            self._words[2 * slot] = digest
            self._taken[digest] = slot
        return slot, self._writer(slot, digest)

    def _writer(self, slot: int, digest: int) -> Callable[[int], None]:
        words, at = self._words, 2 * slot

        def write(version: int) -> None:
            if words[at] == digest:  # it has not been taken over
                words[at + 1] = version

        return write

    def __repr__(self) -> str:
        return f"versions of {len(self._taken)} databases that others follow"


def digest_of(name: str) -> int:
    """Return a number for a name, which is not 0."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big") or 1
