"""Which process owns which database, and calls to the owners of others.

    family ─► rendezvous hash ─► process      a pure function: no table, nothing on disk, and the
                                              number of processes may change at each start
    here?  ─► go on
    there? ─► OwnedElsewhere: the connection moves to the owner, with the request
              or a call, where one request concerns databases of several owners

A family is a database with its branches: they share pages, so one process has all of them. A new
database is made by the process that its name stands for, and gets an id of which that process is
the owner. Names that end with numbers are spread evenly.

`control` is owned by process 0; the others follow it (see `plane`).

Nodes on several machines are processes, too, with another function (`nodes.owners`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NoReturn

import trio

from qserver.cluster import Handler, Links, RemoteLocks, StreamHandler
from qserver.control.nodes.placement import chosen, number_of, ranked
from qserver.control.tokens import Mint
from qserver.errors import DatabaseUnavailable, OutcomeUnknown, QserverError
from qserver.limits import CALL_SECONDS_MAX

LEADER: Final = 0
"""The process of a machine that owns `control`."""


VISITS: Final = 4
STAYS: Final = 1 << 30
"""So many requests are forwarded before their connection moves: it is in the right place, or soon
will be."""
"""Writes in a row to a database that is read here, before their connection moves to its owner."""

LOOK_SECONDS: Final = 2.0
"""How long a look at all processes waits for one of them."""


class OwnedElsewhere(Exception):
    """The request belongs to another process. Nothing has been changed or answered."""

    def __init__(self, process: int, followed: str | None = None, name: str = "") -> None:
        """`followed`: the id of its database, if this process may follow that."""
        super().__init__(f"process {process} owns it")
        self.process = process
        self.followed = followed
        self.name = name
        self.visits = 0 if followed is None else VISITS
        """Requests in a row that are forwarded before their connection moves; 0: as usual."""


class Owners:
    """The processes of this machine; by default this one is the only one."""

    def __init__(self, process: int = LEADER, count: int = 1, replicas: int = 0) -> None:
        self.process = process
        self.count = count
        self._replicas = replicas
        """Of a database that does not say how many it has."""
        self.links: Links
        """To the other processes, if there are any."""
        self.methods: dict[str, Handler] = _Known()
        """What other processes may call here."""
        self.streams: dict[str, StreamHandler] = _Known()
        """What other processes may follow here."""
        self.locks = RemoteLocks()
        """The locks of this process, for all."""

    @property
    def leader(self) -> int:
        """The process that owns `control`."""
        return LEADER

    @property
    def is_leader(self) -> bool:
        return self.process == self.leader

    @property
    def is_alone(self) -> bool:
        """Whether there is never another process."""
        return self.count == 1

    @property
    def version(self) -> int:
        """Changes with who owns what."""
        return 0

    @property
    def shares_files(self) -> bool:
        """Whether all processes see the files of all databases."""
        return True

    @property
    def everyone(self) -> Sequence[int]:
        """All processes that answer clients."""
        return range(self.count)

    @property
    def owning(self) -> Sequence[int]:
        """Those of them that may own something."""
        return self.everyone

    @property
    def others(self) -> Sequence[int]:
        return [each for each in self.everyone if each != self.process]

    def owner_of(self, family: str) -> int:
        return chosen(family, self.everyone)

    def is_here(self, family: str) -> bool:
        return self.owner_of(family) == self.process

    def follows(self, family: str, replicas: int | None) -> bool:
        """Return whether this process may follow a database that has so many replicas."""
        wanted = self._replicas if replicas is None else replicas
        if not wanted or self.count == 1:
            return False
        return self.process in ranked(family, self.everyone)[-1 - wanted : -1]

    def check_here(self, family: str) -> None:
        """Raise OwnedElsewhere if another process owns the family."""
        self.check_process(self.owner_of(family))

    def check_process(self, process: int) -> None:
        if process != self.process:
            raise self.elsewhere(process)

    def elsewhere(
        self, process: int, followed: str | None = None, name: str = ""
    ) -> OwnedElsewhere:
        """Return what is raised for a request that belongs to another process."""
        return OwnedElsewhere(process, followed, name)

    def check_leader(self) -> None:
        """Raise OwnedElsewhere if another process owns `control`."""
        self.check_process(self.leader)

    def process_for(self, organization_id: str, name: str) -> int:
        """Return which process makes a new database of that name."""
        owning = self.owning
        return owning[(number_of(organization_id) + sum(name.encode())) % len(owning)]

    def new_id(self, mint: Mint, now: float, process: int) -> str:
        """Return an id for a new database that is its own family, and is owned by a process."""
        if process not in self.owning:
            raise DatabaseUnavailable(f"{self!r} makes no databases now", hint="Try again.")
        while self.owner_of(made := mint.id("db", now)) != process:
            pass
        return made

    # --- calls ---

    def answer(self, method: str, handler: Handler) -> None:
        """Let a handler answer the calls of a method, from here and from other processes."""
        self.methods[method] = handler

    async def ask(
        self, process: int, method: str, *arguments: Any, seconds: float = CALL_SECONDS_MAX
    ) -> Any:
        """Call a method of one process, which may be this one. Each can be called again."""
        if process == self.process:
            return await self.methods[method](*arguments)
        deadline = trio.current_time() + seconds
        try:
            return await self.links.call(process, method, arguments, deadline=deadline)
        except OutcomeUnknown as lost:
            raise DatabaseUnavailable(lost.message, hint="Try again.") from lost

    async def ask_owner(self, family: str, method: str, *arguments: Any) -> Any:
        return await self.ask(self.owner_of(family), method, *arguments)

    async def try_all(self, method: str, *arguments: Any) -> dict[int, Any | QserverError]:
        """Call a method of all processes at once; one that does not answer soon is an error."""
        everyone = self.everyone
        answers: dict[int, Any | QserverError] = dict.fromkeys(everyone)

        async def try_one(process: int) -> None:
            try:
                found = await self.ask(process, method, *arguments, seconds=LOOK_SECONDS)
            except QserverError as error:
                found = error
            answers[process] = found

        async with trio.open_nursery() as nursery:
            for each in everyone:
                nursery.start_soon(try_one, each)
        return answers

    def __repr__(self) -> str:
        return f"process {self.process} of {self.count}"


class _Known(dict[str, Any]):
    """Methods by name; one that is not known yet is no mistake of the caller's."""

    def __missing__(self, name: str) -> NoReturn:
        raise DatabaseUnavailable(f"{name}: the process is starting", hint="Try again.")
