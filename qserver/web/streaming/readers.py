"""Readers of endless streams: counts them, wakes them, and ends them.

A reader may wait for hours for a change of its database. Meanwhile it must notice at once that its
key was revoked or that the service stops, and send a keep-alive now and then. So it can be woken:
by `run`, which checks every second whether a record of the control plane has changed and which
readers have been silent for long, and by `end`. One task for all costs less than a deadline per
wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from math import ceil, inf
from typing import Final

import trio

from qserver.errors import DatabaseUnavailable, TooManyOpen
from qserver.limits import KEEP_ALIVE_SECONDS

POLL_SECONDS: Final = 1.0
"""Between two looks at the control plane."""

TURN_READERS: Final = 8
"""Readers that have their turns together: they share what is made for them, and others wait for a
millisecond or two."""


class Reader:
    """One reader's place. `rouse` makes its task call `check`, also in its next wait."""

    def __init__(self, readers: Readers, organization_id: str) -> None:
        self._readers: Readers | None = readers
        self.organization_id = organization_id
        self.wake: Callable[[], None] = lambda: None
        """Ends the wait of its task, if it waits."""
        self.is_ended = False
        self._is_roused = False
        self.sent_at = trio.current_time()

    @property
    def is_silent(self) -> bool:
        """Whether it has sent nothing for so long that proxies may take it for dead."""
        return trio.current_time() >= self.sent_at + KEEP_ALIVE_SECONDS

    @property
    def beside(self) -> int:
        """The number of readers, with this one."""
        return 1 if self._readers is None else len(self._readers)

    def next_turn(self, pause: float, most: float, apart: float) -> float:
        """Return when it may send again: after a pause, and some time after the one before it.

        So of those that a commit has woken together only `TURN_READERS` send together from then on.
        `most` bounds the pause, whoever takes a turn and leaves.
        """
        now = trio.current_time()
        if self._readers is None:
            return now + pause
        return self._readers.next_turn(now + pause, now + most, apart)

    def rouse(self) -> None:
        """End its wait, or the next one if it does not wait now."""
        self._is_roused = True
        self.wake()

    async def wait(self, for_what: Callable[[], Awaitable[None]]) -> None:
        """Wait for something, or until roused."""
        if not self._is_roused:
            await for_what()
        self._is_roused = False

    def check(self) -> None:
        """Raise if the service stops."""
        if self.is_ended:
            raise stopping()

    def close(self) -> None:
        """Free the place; a second call does nothing."""
        readers, self._readers = self._readers, None
        if readers is not None:
            readers.remove(self)


def stopping() -> DatabaseUnavailable:
    """Return the error for a reader when the service stops."""
    return DatabaseUnavailable("the service is stopping", hint="Connect again in a moment.")


class Readers:
    def __init__(self, what: str, control_version: Callable[[], int | None]) -> None:
        self._what = what
        self._control_version = control_version
        self._all: set[Reader] = set()
        self._of_organization: Counter[str] = Counter()
        self._last_turn = -inf
        self._has_ended = False

    def __len__(self) -> int:
        return len(self._all)

    def count(self, organization_id: str) -> int:
        return self._of_organization.get(organization_id, 0)

    def open(self, organization_id: str, most: int) -> Reader:
        if self._has_ended:
            raise stopping()
        if self.count(organization_id) >= most:
            raise TooManyOpen(
                f"the organization has {most} {self._what} open already",
                hint="End one of them first.",
            )
        reader = Reader(self, organization_id)
        self._all.add(reader)
        self._of_organization[organization_id] += 1
        return reader

    def remove(self, reader: Reader) -> None:
        self._all.discard(reader)
        self._of_organization[reader.organization_id] -= 1
        if not self._of_organization[reader.organization_id]:
            del self._of_organization[reader.organization_id]

    def next_turn(self, earliest: float, latest: float, apart: float) -> float:
        self._last_turn = min(max(earliest, self._last_turn + apart), latest)
        turn = TURN_READERS * apart
        return ceil(self._last_turn / turn) * turn

    def end(self) -> None:
        """End all readers, and let none begin: the service stops."""
        self._has_ended = True
        for reader in self._all:
            reader.is_ended = True
            reader.rouse()

    async def run(self) -> None:
        """Wake readers after each change of the control plane, and silent ones; until cancelled."""
        seen = self._control_version()
        while True:
            await trio.sleep(POLL_SECONDS)
            before, seen = seen, self._control_version()
            for reader in self._all:
                if seen != before or reader.is_silent:
                    reader.rouse()

    def __repr__(self) -> str:
        return f"{len(self._all)} {self._what} of {len(self._of_organization)} organizations"
