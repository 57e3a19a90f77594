"""A family's stream, as the process that owns the family uses it.

    opening ─► claimed ─► owned ──── an outcome is unknown ───► in doubt
                            ▲  what can be read is in the files  │
                            └────────── claimed anew ◄───────────┘
    owned, in doubt ─► taken: another process has claimed it; for good

A claim is a message behind all that was read. If it is appended, everything before it was read, and
no append of an earlier owner succeeds any more, because each names the message that it follows.

One message is on its way at a time. What the members append meanwhile is the next one: a group
commit over all databases of the family. The files get it after the nodes have acknowledged it,
never before. So all that a file has is in the stream.

Who has no answer repeats the same bytes: they cannot be appended twice. A refusal proves nothing,
since it may speak of an own attempt, whose answer was lost or which may come to nothing yet. Only
what can be read decides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from enum import Enum
from typing import Any, Final, TypeVar

import msgspec
import trio

from qserver.durability.port import Log, StoredRecord
from qserver.errors import DataCorrupted, LogFailed, LogTaken, QserverError
from qserver.replication.copies import CatchUp, Copies
from qserver.replication.messages import (
    Body,
    Branch,
    Claim,
    Group,
    Part,
    Records,
    Removed,
    checksum_of,
    encode,
    encode_body,
)
from qserver.replication.patience import PAUSE_SECONDS, PAUSE_SECONDS_MAX, patiently
from qserver.replication.port import Refused, Stream, Unanswered
from qserver.replication.position import Position, save_position
from qserver.replication.reader import Reader

APPEND_SECONDS: Final = 20.0
"""How long an append is repeated; then its outcome is unknown."""
LEADER_SECONDS: Final = 1.0
"""How long nodes are asked who leads a stream that takes no messages."""
MESSAGE_BYTES: Final = 1 << 20
"""A longer message is sent in parts of this length."""
POSITION_BYTES: Final = 4 << 20
"""After so many bytes of messages the position is written: a start has no more to read again."""

Result = TypeVar("Result")


class State(Enum):
    OPENING = "opening"
    OWNED = "owned"
    DOUBT = "in doubt"
    TAKEN = "taken"


class Wanted(msgspec.Struct, eq=False):
    """Something that a member wants appended, and waits for."""

    body: Group | Branch | Removed | None
    """None: nothing, it only wants to know that the stream is ours and the files have all of it."""
    file: Log | None
    """That of the group's database."""
    done: trio.Event
    error: QserverError | None = None

    async def wait(self) -> None:
        await self.done.wait()
        if self.error is not None:
            raise self.error

    def end(self, error: QserverError | None = None) -> None:
        self.error = error
        self.done.set()


class Family:
    def __init__(
        self,
        root: str,
        stream: Stream,
        copies: Copies,
        position: Position,
        new_claim: Callable[[], str],
        start_soon: Callable[[Callable[[], Awaitable[None]]], None],
        *,
        append_seconds: float = APPEND_SECONDS,
    ) -> None:
        """`position`: how far the files are; `new_claim` returns a name that nobody ever had.

        `start_soon` starts a task that outlives the caller's.
        """
        self.root = root
        self.members: dict[str, Log] = {}
        """The files of the databases that are open."""
        self.state = State.OPENING
        self._stream = stream
        self._copies = copies
        self._new_claim = new_claim
        self._start_soon = start_soon
        self._append_seconds = append_seconds
        self._done = position
        """The last message whose records all files have; its versions are older."""
        self.versions = dict(position.versions)
        """The last version of each database, as of that message."""
        self._sequence = position.sequence
        self._checksum = position.checksum
        """The last message of all: the next one follows it."""
        self._claim = ""
        self._claims: set[str] = set()
        """All that this process has sent; one without an answer may have come late."""
        self.missing: set[str] = set()
        """Databases that are in the stream, and have no file."""
        self._wanted: deque[Wanted] = deque()
        self._is_working = False
        self._unsaved = 0
        """Bytes of messages since the position was written."""
        self.logged = position.logged
        """About how many bytes of messages there are since the last base."""
        self.saved: Callable[[], None] = lambda: None
        """Called when the position was written because of many new messages."""
        self.appended: Callable[[int], None] = lambda sequence: None
        """Called with the sequence of a message that the stream and the files have."""
        self._taken: LogTaken | None = None
        self.is_overtaken = False
        """Whether messages that it has not read are gone: a base has them."""
        self.may_claim: Callable[[], bool] = lambda: True
        """Whether this process may still have the family; once it may not, it never may again."""

    @property
    def is_taken(self) -> bool:
        return self.state is State.TAKEN

    # --- what members ask for ---

    def append(self, database: str, file: Log, records: Sequence[StoredRecord]) -> Awaitable[None]:
        """Append records of a member, which begins at once; its file has them when this ends."""
        return self._want(Group(database, list(records)), file).wait()

    async def publish(self, body: Branch | Removed) -> None:
        """Append a message about a database. Its file must be made or removed afterwards."""
        await self._want(body, None).wait()

    async def settle(self) -> None:
        """Return when the stream is ours, and the files have everything that is in it."""
        await self._want(None, None).wait()

    async def doubt(self) -> None:
        """Claim the stream again, since it may be another's; raise LogTaken if it is."""
        if self.state is State.OWNED:
            self.state = State.DOUBT
        await self.settle()

    def _want(self, body: Group | Branch | Removed | None, file: Log | None) -> Wanted:
        wanted = Wanted(body, file, trio.Event())
        self._wanted.append(wanted)
        if not self._is_working:
            self._is_working = True
            self._start_soon(self._work)
        return wanted

    # --- the task ---

    async def _work(self) -> None:
        try:
            while self._wanted:
                batch = self._next_batch()
                try:
                    await self._serve(batch)
                except LogTaken as taken:
                    self.state, self._taken = State.TAKEN, taken
                    self._refuse(batch)
                except QserverError as error:
                    if self.state is State.OWNED:
                        self.state = State.DOUBT
                    for each in batch:
                        each.end(_again(error))
                else:
                    for each in batch:
                        each.end()
        finally:
            self._is_working = False
            for each in self._wanted:  # the service ends
                each.end(LogFailed("the log was closed", hint="Send the request again."))

    def _next_batch(self) -> list[Wanted]:
        """Take what fits in one message, in order."""
        batch = [self._wanted.popleft()]
        size = _size_of(batch[0])
        while (
            self._wanted
            and _is_records(batch[0])
            and _is_records(self._wanted[0])
            and size < MESSAGE_BYTES
        ):
            size += _size_of(self._wanted[0])
            batch.append(self._wanted.popleft())
        return batch

    def _refuse(self, batch: list[Wanted]) -> None:
        """Tell everybody that the stream is another's: nothing of theirs is in it."""
        assert self._taken is not None
        for each in [*batch, *self._wanted]:
            taken = self._taken.again()
            taken.version = each.body.records[0][0] if isinstance(each.body, Group) else 0
            each.end(taken)
        self._wanted.clear()

    async def _serve(self, batch: list[Wanted]) -> None:
        if self._taken is not None:
            raise self._taken.again()
        if self.state is not State.OWNED:
            await self._take_over()
        groups = [each.body for each in batch if isinstance(each.body, Group)]
        body = batch[0].body
        if isinstance(body, Branch | Removed):
            await self._append(encode(self._checksum, self._claim, body))
        elif groups:
            await self._append_records(Records(groups))
            for each in batch:
                if isinstance(each.body, Group) and each.file is not None:
                    await self._write(each.body, each.file)
        self._note_done([each.body for each in batch])
        if self._unsaved >= POSITION_BYTES:
            await self.save_position()
            self.saved()

    async def _write(self, group: Group, file: Log) -> None:
        """Write what the stream has into a file, which may have been closed meanwhile."""
        if self.members.get(group.database) is file:
            await file.append(group.records)
        elif await self._copies.files.has_file(group.database):
            async with self._copies.hold(group.database) as again:
                await again.append(group.records)

    def _note_done(self, bodies: Sequence[Body | Group | None]) -> None:
        """Count what was appended as part of all files."""
        for body in bodies:
            match body:
                case Group(database, records):
                    self.versions[database] = records[-1][0]
                case Branch(database, _, version):
                    self.versions[database] = version
                case Removed(database):
                    self.versions.pop(database, None)
        self._done = Position(self._sequence, self._checksum, self._claim)
        self.appended(self._sequence)

    # --- taking it over ---

    async def _take_over(self) -> None:
        """Read all that there is, and claim the stream; the files have all of it then."""
        while True:
            await self._catch_up()
            self._check_right()
            claim = self._new_claim()
            self._claims.add(claim)
            try:
                await self._append(encode(self._checksum, claim, Claim()))
            except LogTaken:
                continue  # another message was first; it may be an own one that was late
            self._check_right()  # or the claim has come late, and fenced out who has the right
            self._claim = claim
            self._note_done(())
            self.state = State.OWNED
            return

    def _check_right(self) -> None:
        if not self.may_claim():
            raise LogTaken(
                f"this node may not have the stream {self._stream.name} any more",
                detail="Its lease has ended.",
                hint="Send the request again: another node serves it.",
            )

    async def _catch_up(self) -> None:
        """Bring the files up to the end of what can be read.

        Raises LogTaken where another process has claimed the stream after this one: databases still
        run on the files.
        """
        reader = Reader(self._stream, self._done)
        if self._claim and (await self._read(self._stream.bounds)).first > reader.sequence + 1:
            raise LogTaken(f"another process has made a base of the stream {self._stream.name}")
        await self._read(reader.check_last)
        catch_up = CatchUp(self._copies, self.versions, self.members, self.missing)
        while (wholes := await self._read(reader.read_on)) is not None:
            ours = [each for each in wholes if not self._claim or each.entry.claim in self._claims]
            await catch_up.apply(ours)
            if ours:
                last = ours[-1]
                self._done = Position(last.sequence, last.checksum, last.entry.claim)
            if len(ours) < len(wholes):
                raise LogTaken(
                    f"another process has claimed the stream {self._stream.name}",
                    detail=wholes[-1].entry.claim,
                )
        self.logged += reader.size
        if self.missing:
            bounds = await self._read(self._stream.bounds)
            if reader.sequence < bounds.last:  # what follows may remove them
                raise LogFailed(f"a node of the log lags behind in the stream {self._stream.name}")
            raise DataCorrupted(
                f"the files of {', '.join(sorted(self.missing))} are missing",
                hint=f"Remove the files of {self.root} and of its branches: they are loaded again.",
            )
        self._sequence, self._checksum = reader.sequence, reader.checksum

    # --- appending ---

    async def _append_records(self, body: Records) -> None:
        data = encode(self._checksum, self._claim, body)
        if len(data) <= MESSAGE_BYTES:
            await self._append(data)
            return
        whole = encode_body(body)
        for start in range(0, len(whole), MESSAGE_BYTES):
            end = start + MESSAGE_BYTES
            part = Part(whole[start:end], end >= len(whole))
            await self._append(encode(self._checksum, self._claim, part))

    async def _append(self, data: bytes) -> None:
        """Append a message behind the last; return when it is durable.

        Raises LogTaken if another message is in its place, LogFailed if nobody knows, DataCorrupted
        if the log has lost what it had acknowledged.
        """
        expected, lost = self._sequence, None
        deadline, pause = trio.current_time() + self._append_seconds, PAUSE_SECONDS
        while True:
            try:
                sequence = await self._stream.append(data, expected)
                if sequence != expected + 1:
                    raise _has_lost(self._stream, expected, sequence - 1)
                break
            except Unanswered:
                lost = None
            except Refused as refused:
                lost = refused.last if refused.last < expected else None
                if refused.last > expected:
                    found = await self._find(expected + 1)
                    if found == data:
                        break
                    if found is None:
                        await self._check_unpurged(expected + 1)
                    else:
                        raise LogTaken(
                            f"another process writes the stream {self._stream.name}"
                        ) from None
            if trio.current_time() + pause > deadline:
                if lost is not None:
                    raise _has_lost(self._stream, expected, lost)
                leader = await self._leader()
                raise LogFailed(
                    f"the nodes of the log did not acknowledge within {self._append_seconds:g} s",
                    detail=f"stream {self._stream.name}, message {expected + 1}"
                    + (f", led by {leader} when nodes last told" if leader else ""),
                    hint="Look at the log's nodes."
                    + (f" If all of them run, restart {leader}." if leader else "")
                    + " Whether it was written shows when they answer.",
                )
            await trio.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)
        self._sequence, self._checksum = expected + 1, checksum_of(data)
        self._unsaved += len(data)
        self.logged += len(data)

    async def _leader(self) -> str:
        """Return which node leads the stream: now, or when nodes last told; empty if none did."""
        with trio.move_on_after(LEADER_SECONDS), suppress(Unanswered, LogFailed):
            await self._stream.bounds()
        return self._stream.leader

    async def _check_unpurged(self, sequence: int) -> None:
        """Raise if a message is gone: another process has it in a base, and ours may be in that."""
        with suppress(Unanswered):
            if (await self._stream.bounds()).first > sequence:
                self.is_overtaken = True
                raise LogFailed(
                    f"another process has made a base of the stream {self._stream.name}",
                    hint="Whether it was written shows when the database is opened again.",
                )

    async def _find(self, sequence: int) -> bytes | None:
        """Return a message if the node that is asked has it."""
        try:
            messages = await self._stream.read(sequence, 1)
        except Unanswered:
            return None
        return messages[0].data if messages and messages[0].sequence == sequence else None

    async def _read(self, call: Callable[[], Awaitable[Result]]) -> Result:
        return await patiently(call, self._append_seconds, f"stream {self._stream.name}")

    # --- the position ---

    @property
    def stream(self) -> Stream:
        return self._stream

    @property
    def position(self) -> Position:
        versions = dict(self.versions)
        return msgspec.structs.replace(self._done, versions=versions, logged=self.logged)

    async def save_position(self) -> Position:
        """Write down how far the files are, after all of them are synced; return it."""
        position = self.position
        for file in list(self.members.values()):
            await file.sync_pages()
        async with self._copies.hold(self.root, may_make=True) as root:
            await save_position(root, position)
        self._unsaved = 0
        return position

    def __repr__(self) -> str:
        return f"the family {self.root}, {self.state.value}, up to message {self._sequence}"


def _is_records(wanted: Wanted) -> bool:
    return not isinstance(wanted.body, Branch | Removed)


def _size_of(wanted: Wanted) -> int:
    return (
        sum(len(data) for _, data in wanted.body.records) if isinstance(wanted.body, Group) else 0
    )


def _has_lost(stream: Stream, expected: int, last: int) -> DataCorrupted:
    return DataCorrupted(
        f"the stream {stream.name} ends with message {last}, and {expected} was acknowledged",
        hint="The log lost what it had acknowledged. The files have it: qserver cluster rescue.",
    )


def _again(error: QserverError) -> QserverError:
    """A copy for the next waiter: a raised error belongs to one task."""
    fields: dict[str, Any] = {"detail": error.detail, "hint": error.hint}
    return type(error)(error.message, **fields)
