"""The families of a simulated node: small models of databases, each a stream that is fenced.

A register is the set of values in a stream. Who opens it reads all and appends a claim; what it
appends later is refused if another's claim is in the way, as `replication.family` has it. It is
shown while it is open and the lease of the life in which it was opened holds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Final, NoReturn, Protocol

import trio

from qserver.errors import DatabaseMoved, DatabaseUnavailable, LogFailed
from qserver.replication.port import LogNodes, Message, Refused, Stream, Unanswered
from simulations.families import SmallFamilies
from simulations.world import SimulatedWorld

AGAIN_SECONDS: Final = 0.05
APPEND_SECONDS: Final = 6.0
CLOSE_SECONDS: Final = 1.0
"""How long users of a register have to end."""
FOLLOW_SECONDS: Final = (0.05, 0.5)
CLAIM: Final = b"claim "


class Watching(Protocol):
    """Who looks at what is shown."""

    def shown(self, register: Register) -> None:
        """Look at a register that is being shown."""


class Register:
    """One family, open at one node."""

    def __init__(self, root: str, stream: Stream, claim: str, watching: Watching) -> None:
        self.root = root
        self.values: list[int] = []
        """Those that are durable, as far as this node knows."""
        self.guard: Callable[[], bool] = lambda: False
        self.users = 0
        self.is_closed = False
        self.changed = trio.Event()
        self._stream = stream
        self.name_claim(claim)
        self._watching = watching
        self._last = 0
        self._lock = trio.Lock()

    def may_show(self) -> bool:
        return not self.is_closed and self.guard()

    def take(self) -> list[int] | None:
        """Return what may be shown at this moment."""
        return self.show() if self.may_show() else None

    def show(self) -> list[int]:
        self._watching.shown(self)
        return list(self.values)

    async def claim(self) -> None:
        """Read everything, and be the only one who may append."""
        until = trio.current_time() + APPEND_SECONDS
        while not await self._append(self._claim, until):
            await self._read_on()

    async def append(self, value: int) -> int:
        """Return how many values there are, with this one, when it is durable."""
        async with self._lock:
            if self.is_closed:  # the stream fences writes, and no lease
                raise DatabaseUnavailable("it is closed")
            if not await self._append(str(value).encode(), trio.current_time() + APPEND_SECONDS):
                self.end()
                raise DatabaseMoved("another node writes it")
            return len(self.values)

    async def _append(self, data: bytes, until: float) -> bool:
        """Append behind the last; False if another message is there."""
        while True:
            try:
                await self._stream.append(data, self._last)
            except Refused as refused:
                if refused.last > self._last:
                    found = await self._find()
                    if found is not None and found.data != data:
                        return False
                    if found is not None:
                        break
            except Unanswered:
                pass
            else:
                break
            if trio.current_time() > until:
                self.end()  # nobody knows; whoever opens it next finds out
                raise LogFailed("no answer")
            await trio.sleep(AGAIN_SECONDS)
        self._add(Message(self._last + 1, data))
        return True

    async def _find(self) -> Message | None:
        try:
            found = await self._stream.read(self._last + 1, 1)
        except Unanswered:
            return None
        return found[0] if found else None

    def name_claim(self, claim: str) -> None:
        self._claim = CLAIM + claim.encode()

    async def read_some(self, is_followed: Callable[[], bool]) -> None:
        """Read what is new, if the nodes of the log answer, and it is not opened meanwhile."""
        with suppress(Unanswered):
            found = await self._stream.read(self._last + 1, 100)
            for each in found if is_followed() else ():
                self._add(each)

    async def _read_on(self) -> None:
        while True:
            try:
                found = await self._stream.read(self._last + 1, 100)
            except Unanswered:
                await trio.sleep(AGAIN_SECONDS)
                continue
            for each in found:
                self._add(each)
            if not found:
                return

    def _add(self, message: Message) -> None:
        self._last = message.sequence
        if not message.data.startswith(CLAIM):
            self.values.append(int(message.data))
            self._tell()

    def end(self) -> None:
        self.is_closed = True
        self._tell()

    def _tell(self) -> None:
        self.changed.set()
        self.changed = trio.Event()


def check_right(may_claim: Callable[[], bool]) -> None:
    """Raise if the lease has ended before the claim was there, as `Family` does."""
    if not may_claim():
        raise DatabaseMoved("the claim has come late")


class Registers(SmallFamilies[Register]):
    """The families of a node."""

    def __init__(
        self,
        world: SimulatedWorld,
        nodes: LogNodes,
        nursery: trio.Nursery,
        name: str,
        watching: Watching,
    ) -> None:
        super().__init__()
        self._world = world
        self._nodes = nodes
        self._nursery = nursery
        self._name = name
        self._watching = watching
        self._claims = 0
        self._followed: dict[str, Register] = {}
        """What this node has read of families that others own."""
        self.may_open: Callable[[str], Awaitable[Callable[[], bool]]]
        self.guard_now: Callable[[], Callable[[], bool]]

    # --- for a handover ---

    def _begin_to_close(self, name: str, register: Register) -> None:
        self._nursery.start_soon(self._close, name, register)

    async def _close(self, name: str, register: Register) -> None:
        if register.users:
            self._world.reach("a family was given up while requests used it")
        with trio.move_on_after(CLOSE_SECONDS):
            while True:
                await trio.sleep(AGAIN_SECONDS)
                if not register.users or register.is_closed:
                    break
        await trio.sleep(self._world.delays.uniform(0.0, 0.2))
        register.end()
        self._closed(name)

    # --- for requests ---

    async def use(self, root: str) -> Register:
        """Return a register, opened if necessary; its user is counted."""
        while True:
            register = self.open.get(root)
            if register is not None and register.is_closed:
                del self.open[root]
            elif register is not None:
                register.users += 1
                return register
            if root not in self._opening and root not in self._closing:
                await self._open(root)
            else:
                await trio.sleep(AGAIN_SECONDS)

    async def _open(self, root: str) -> None:
        with self._while_opening(root) as scope:
            may_claim = await self.may_open(root)
            register = await self._register(root)
            await register.claim()
            check_right(may_claim)
            register.guard = self.guard_now()
            self.open[root] = register
        if scope.cancelled_caught:
            raise DatabaseMoved("it is given up")

    async def _register(self, root: str) -> Register:
        """Return what was followed of a family until now, or one that knows nothing of it."""
        self._claims += 1
        claim = f"{self._name} {self._claims}"
        followed = self._followed.pop(root, None)
        if followed is None:
            return Register(root, await self._stream(root), claim, self._watching)
        self._world.reach("a family was opened with what was followed")
        followed.name_claim(claim)
        return followed

    async def follow(self, families: Iterable[str], follows: Callable[[str], bool]) -> NoReturn:
        """Read on in the streams of families that this node follows, for ever."""
        while True:
            await trio.sleep(self._world.delays.uniform(*FOLLOW_SECONDS))
            for root in families:
                if not follows(root) or root in self.families():
                    continue  # what was followed is there for who opens it
                if root not in self._followed:
                    stream = await self._stream(root)
                    self._followed[root] = Register(root, stream, "", self._watching)
                register = self._followed[root]
                await register.read_some(partial(self._is_followed, root, register))

    def _is_followed(self, root: str, register: Register) -> bool:
        return self._followed.get(root) is register

    async def _stream(self, root: str) -> Stream:
        while True:
            try:
                return await self._nodes.open_stream(root)
            except Unanswered:
                await trio.sleep(AGAIN_SECONDS)

    def all(self) -> list[Register]:
        """All that may be shown, also while they are closed."""
        return [*self.open.values(), *self._closing.values()]
