"""What is asked of the place that has the objects of a backup: a folder, or a bucket of S3.

An object is written once, as a whole, and never changed, but for the one that says who writes. So
writing it again with the same bytes does no harm, and whoever has no answer repeats the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from qserver.errors import DataCorrupted, LogFailed

MARK: Final = "qserver-backup"
"""The object that says of a place that it has a continuous backup, and in which format."""
MARK_TEXT: Final = b"A continuous backup of qserver, format 1. See: qserver backup --list\n"


OWNER: Final = "qserver-owner"
"""The object that says who writes to the place, see `owner`."""


class TargetAway(LogFailed):
    """The place's or the network's fault. Whether it was written is unknown; the same call may
    succeed later."""

    name = "log_failed"


class ObjectMissing(DataCorrupted):
    """The place's fault, or somebody has removed it: an object is not there."""

    name = "data_corrupted"


class Key(NamedTuple):
    """An object that is there."""

    name: str
    size: int


class Objects(Protocol):
    """Every call blocks, for a bounded time. Names have slashes, and no other odd characters.

    Each raises TargetAway if the place cannot be reached, is full, or refuses.
    """

    @property
    def place(self) -> str:
        """Where that is, for people: no secret is in it."""

    def save(self, name: str, data: bytes) -> None:
        """Write an object, durably and as a whole."""

    def load(self, name: str) -> bytes:
        """Return an object; raise ObjectMissing if it is not there."""

    def keys(self) -> list[Key]:
        """Return all objects that are there, in the order of their names."""

    def remove(self, names: Sequence[str]) -> None:
        """Remove objects; a missing one is no error."""


def is_ours(objects: Objects) -> bool:
    """Return whether a place has a continuous backup; raise DataCorrupted for a newer format."""
    try:
        mark = objects.load(MARK)
    except ObjectMissing:
        return False
    if mark != MARK_TEXT:
        raise DataCorrupted(
            f"{objects.place} has a backup in another format",
            hint="A newer release of qserver has made it: use that one.",
        )
    return True
