"""The log's nodes as JetStream: which stream and subject has what.

                        stream     subject
    stream of the port  <name>     STREAMS.<name>   an append names the last sequence
    values              META       META.<key>       a message each; its sequence is the revision
    parts               BASES      BASES.<key>      a message each

All are on `copies` nodes, in files, without limits of their own. Names and keys are words of
letters, digits, `_` and `-`; a key may have several, with dots between them.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Sequence
from typing import Final

import trio

from qserver.errors import LogFailed
from qserver.replication.nats.connection import Connection, Dial, Server, dial, servers_of
from qserver.replication.nats.jetstream import (
    ANSWER_SECONDS_MAX,
    LONG_SECONDS_MAX,
    JetStream,
    Missing,
    StreamSettings,
    StreamState,
)
from qserver.replication.nats.room import Room
from qserver.replication.nats.synced import SyncedNodes
from qserver.replication.port import Bounds, Message, Stream, Unanswered, Value

START_SECONDS_MAX: Final = 60.0
"""How long log nodes may take until they answer, when we start: they may start just now, too."""

START_PAUSE_SECONDS: Final = 0.2
CHECK_SECONDS: Final = 10.0
"""How often nodes are asked whether they sync, and have room."""

META: Final = "META"
BASES: Final = "BASES"
OURS: Final = (META, BASES)
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")
_KEY: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


class NatsStream:
    def __init__(self, name: str, calls: JetStream, room: Room) -> None:
        assert _NAME.fullmatch(name) and name not in OURS, f"{name!r} is no name of a stream"
        self.name = name
        self.leader = ""
        self._subject = f"STREAMS.{name}"
        self._calls = calls
        self._room = room

    async def append(self, data: bytes, expected: int) -> int:
        self._room.refuse()
        headers = {"Nats-Expected-Last-Sequence": str(expected)}
        sequence = await self._calls.publish(self._subject, data, headers)
        if sequence != expected + 1:
            raise LogFailed(f"log nodes took {self.name}:{expected + 1} as {sequence}")
        return sequence

    async def read(self, first: int, most: int) -> Sequence[Message]:
        return await self._calls.read(self.name, first, most)

    async def bounds(self) -> Bounds:
        try:
            state = await self.look()
        except Missing:
            raise LogFailed(f"log nodes have no stream {self.name}") from None
        return Bounds(max(1, state.first_seq), state.last_seq)

    async def look(self) -> StreamState:
        """Ask for its state; raise Missing if there is none."""
        answer = await self._calls.info(self.name)
        self.leader = answer.cluster.leader
        return answer.state

    async def purge(self, until: int) -> None:
        last = (await self.bounds()).last
        if last > 1:
            await self._calls.purge(self.name, seq=min(until + 1, last))

    def settings(self, copies: int) -> StreamSettings:
        return StreamSettings(name=self.name, subjects=[self._subject], num_replicas=copies)

    def __repr__(self) -> str:
        return f"the stream {self.name} on log nodes"


class NatsNodes:
    """Streams, values and parts on log nodes. `run` keeps the connection and watches the nodes."""

    def __init__(
        self,
        servers: Sequence[Server],
        *,
        copies: int,
        token: str = "",
        tls: ssl.SSLContext | None = None,
        dial: Dial = dial,
    ) -> None:
        self._connection = Connection(servers, token, tls, dial)
        self._synced = SyncedNodes(self._connection, copies)
        self._calls = JetStream(self._connection, self._synced.refuse)
        self._room = Room(self._calls)
        self._copies = copies

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Start when the nodes have answered. Raise LogFailed if they may not be used."""
        failure: LogFailed | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._connection.run)
            try:
                await self._begin()
            except LogFailed as error:
                failure = error
                nursery.cancel_scope.cancel()
            else:
                nursery.start_soon(self._watch)
                task_status.started()
        if failure is not None:
            raise failure

    async def _begin(self) -> None:
        until = trio.current_time() + START_SECONDS_MAX
        while True:
            try:
                await self.check()
                for name in OURS:
                    await self._calls.make(
                        StreamSettings(
                            name=name,
                            subjects=[f"{name}.>"],
                            num_replicas=self._copies,
                            max_msgs_per_subject=1,
                        )
                    )
            except Unanswered as error:
                if trio.current_time() > until:
                    raise LogFailed(
                        f"log nodes do not answer: {error}",
                        hint="Are they running, and does QSERVER_LOG name them?",
                    ) from None
                await trio.sleep(START_PAUSE_SECONDS)
            else:
                return

    async def _watch(self) -> None:
        while True:
            await trio.sleep(CHECK_SECONDS)
            try:
                await self.check()
            except (Unanswered, LogFailed):
                pass  # calls fail as this one did; what is known of the nodes is as it was

    async def check(self) -> None:
        """Ask whether nodes sync, and have room."""
        await self._synced.check()
        await self._room.check()

    # --- streams ---------------------------------------------------------------------------------

    def _stream(self, name: str) -> NatsStream:
        return NatsStream(name, self._calls, self._room)

    async def open_stream(self, name: str) -> Stream:
        stream = self._stream(name)
        await self._calls.make(stream.settings(self._copies))
        return stream

    async def find_stream(self, name: str) -> Stream | None:
        stream = self._stream(name)
        try:
            await stream.look()
        except Missing:
            return None
        return stream

    async def remove_stream(self, name: str) -> None:
        try:
            await self._calls.remove(self._stream(name).name)
        except Missing:
            pass

    async def streams(self) -> Sequence[str]:
        return sorted(name for name in await self._calls.names() if name not in OURS)

    # --- values ----------------------------------------------------------------------------------

    async def value(self, key: str) -> Value | None:
        try:
            found = await self._calls.newest(META, _subject(META, key), ANSWER_SECONDS_MAX)
        except Missing:
            return None
        return Value(found.seq, found.data)

    async def values(self, prefix: str) -> dict[str, Value]:
        found = {key: await self.value(key) for key in await self._keys(META, prefix)}
        return {key: value for key, value in found.items() if value is not None}

    async def set_value(self, key: str, data: bytes, revision: int) -> int:
        headers = {"Nats-Expected-Last-Subject-Sequence": str(revision)}
        return await self._calls.publish(_subject(META, key), data, headers)

    async def remove_value(self, key: str) -> None:
        await self._calls.purge(META, filter=_subject(META, key))

    # --- parts of bases --------------------------------------------------------------------------

    async def save_part(self, key: str, data: bytes) -> None:
        await self._calls.publish(_subject(BASES, key), data, {})

    async def load_part(self, key: str) -> bytes | None:
        try:
            found = await self._calls.newest(BASES, _subject(BASES, key), LONG_SECONDS_MAX)
        except Missing:
            return None
        return found.data

    async def parts(self, prefix: str) -> Sequence[str]:
        return await self._keys(BASES, prefix)

    async def remove_parts(self, prefix: str) -> None:
        if not prefix or prefix.endswith("."):
            await self._calls.purge(BASES, filter=_pattern(BASES, prefix))
            return
        for key in await self._keys(BASES, prefix):
            await self._calls.purge(BASES, filter=_subject(BASES, key))

    async def _keys(self, stream: str, prefix: str) -> list[str]:
        found = await self._calls.subjects(stream, _pattern(stream, prefix))
        keys = (subject.removeprefix(f"{stream}.") for subject in found)
        return sorted(key for key in keys if key.startswith(prefix))

    def __repr__(self) -> str:
        where = self._connection.server
        return "log nodes that are not connected" if where is None else f"log nodes by {where}"


def nodes_of(url: str, token: str, copies: int) -> NatsNodes:
    """Return the nodes that a URL names, see `servers_of`."""
    tls = ssl.create_default_context() if url.startswith("tls://") else None
    return NatsNodes(servers_of(url), copies=copies, token=token, tls=tls)


def _subject(stream: str, key: str) -> str:
    assert _KEY.fullmatch(key), f"{key!r} is no key"
    return f"{stream}.{key}"


def _pattern(stream: str, prefix: str) -> str:
    """All subjects with the whole words of a prefix; the rest of it is compared afterwards."""
    words = prefix.rpartition(".")[0]
    return f"{stream}.{words}.>" if words else f"{stream}.>"
