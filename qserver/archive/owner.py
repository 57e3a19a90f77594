"""Says in the target who writes to it, so that two never write at the same time.

    at the start      nobody, or who has ended, or ourselves before ──► we are the owner
                      another folder's process, a moment ago        ──► refused
    before a segment  still us? otherwise another has taken over, and this process ends

A data folder has an id, which is in its status file, so a process that was killed is followed at
once by the next one. That of another folder, such as one that was restored, waits until what the
owner said has expired. It is the only object that is written again.
"""

from __future__ import annotations

from typing import Final

import msgspec

from qserver.archive.objects import OWNER, ObjectMissing, Objects
from qserver.errors import DataInUse

SAID_SECONDS: Final = 30.0
"""How often the owner says that it is there."""


class Owner(msgspec.Struct, frozen=True):
    process: str
    folder: str
    """The id of its data folder."""
    made_by: str
    """The release, machine and folder, for people."""
    expires: float


class Ownership:
    """Every call blocks."""

    def __init__(
        self,
        objects: Objects,
        process: str,
        folder: str,
        made_by: str,
        every_seconds: float,
    ) -> None:
        self._objects = objects
        self._process = process
        self._folder = folder
        self._made_by = made_by
        self._lasts_seconds = 3 * max(SAID_SECONDS, every_seconds)
        self._said = 0.0

    def was_ours(self, now: float) -> bool:
        """Return whether the last owner had our folder; raise DataInUse if another one is there."""
        owner = owner_of(self._objects)
        if owner is None:
            return False
        left = owner.expires - now
        if owner.folder != self._folder and left > 0:
            raise DataInUse(
                f"another process backs up to {self._objects.place}: {owner.made_by}",
                hint="Name another place: each data folder has its own. If that process has ended"
                f" for good, try again in {left:.0f} s.",
            )
        return owner.folder == self._folder

    def take(self, now: float) -> None:
        """Become the owner, or say again that we are."""
        self._said = now
        self._write(self._said + self._lasts_seconds)

    def check(self, now: float) -> None:
        """Raise DataInUse if another process is the owner now."""
        owner = owner_of(self._objects)
        if owner is not None and owner.process != self._process:
            raise DataInUse(
                f"another process has taken over {self._objects.place}: {owner.made_by}",
                hint="Stop one of the two: each data folder needs a place of its own.",
            )
        if owner is None or now >= self._said + SAID_SECONDS:
            self.take(now)

    def leave(self) -> None:
        """Let anybody follow at once."""
        self._write(0.0)

    def _write(self, expires: float) -> None:
        owner = Owner(self._process, self._folder, self._made_by, expires)
        self._objects.save(OWNER, msgspec.json.encode(owner) + b"\n")

    def __repr__(self) -> str:
        return f"the ownership of {self._objects!r} by {self._process}"


def owner_of(objects: Objects) -> Owner | None:
    """Return who has written last; None if nobody has said so, as of earlier releases."""
    try:
        return _decode(objects.load(OWNER))
    except (ObjectMissing, msgspec.MsgspecError):
        return None


_decode = msgspec.json.Decoder(Owner).decode
