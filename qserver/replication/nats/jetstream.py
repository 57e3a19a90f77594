"""Calls of JetStream: streams, messages, and what their answers mean.

    reply                                     means
    503 without content, or an error 503/429  nobody leads the stream now: Unanswered
    error 10164                               another append is under way: Unanswered
    error 10005                               too few nodes are there for a new stream: Unanswered
    error 10071                               another message is the last: Refused
    error 404                                 Missing
    error 10002 or 10023                      they are full: LogFailed, with a hint
    any other error                           LogFailed

A refusal has `"seq": 0` beside its error: the error is looked at first.

`read` asks any node that has the stream; it knows only what is committed. Everything else is
answered by the stream's leader, or by that of all nodes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, TypeVar

import msgspec

from qserver.errors import LogFailed
from qserver.replication.nats.connection import MESSAGE_BYTES_MAX, Connection
from qserver.replication.nats.protocol import Delivery
from qserver.replication.port import Message, Refused, Unanswered

ANSWER_SECONDS_MAX: Final = 2.0
"""Then a call is Unanswered; its caller makes it again."""

LONG_SECONDS_MAX: Final = 10.0
"""The same where what is read may be long, or where nodes elect a leader."""

ANY_NODE_SECONDS_MAX: Final = 1.0
"""How long a read waits for whichever node was asked; what has come by then counts."""
ANY_NODE_ATTEMPTS: Final = 2
LEADER_MESSAGES_MAX: Final = 16

TRANSFER_BYTES_PER_SECOND: Final = 1024 * 1024
"""How slow a line may be: long messages have more time."""

READ_BYTES_MAX: Final = MESSAGE_BYTES_MAX
"""A reply of one read ends when it has so much."""

READ_MESSAGES_MAX: Final = 1024
HEADER_BYTES_MAX: Final = 1024
"""What is left for headers in a message."""

REFUSED: Final = 10071
UNDER_WAY: Final = 10164
NO_PEERS: Final = 10005
NO_ROOM: Final = (10002, 10023)
FULL_HINT: Final = "They are full: see --data-bytes-max of `qserver log-config`."
_LAST: Final = re.compile(r"wrong last sequence: (\d+)")


class Missing(Exception):
    """There is no such stream or message."""


class Failure(msgspec.Struct, frozen=True):
    code: int = 0
    err_code: int = 0
    description: str = ""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    error: Failure | None = None


class Acknowledgement(Answer, frozen=True, kw_only=True):
    seq: int = 0


class StreamSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for, and compared with what there is."""

    name: str
    subjects: list[str]
    num_replicas: int
    max_msgs_per_subject: int = -1
    storage: str = "file"
    retention: str = "limits"
    discard: str = "new"
    max_msgs: int = -1
    max_bytes: int = -1
    max_age: int = 0
    max_msg_size: int = -1
    allow_direct: bool = True


class StreamState(msgspec.Struct, frozen=True):
    first_seq: int = 0
    last_seq: int = 0
    subjects: dict[str, int] | None = None


class Cluster(msgspec.Struct, frozen=True):
    leader: str = ""


class StreamAnswer(Answer, frozen=True, kw_only=True):
    config: StreamSettings | None = None
    state: StreamState = StreamState()
    cluster: Cluster = Cluster()
    total: int = 0
    """Subjects, if they were asked for; an answer may have a part of them."""


class Stored(msgspec.Struct, frozen=True):
    seq: int
    data: bytes = b""


class StoredAnswer(Answer, frozen=True, kw_only=True):
    message: Stored | None = None


class NamesAnswer(Answer, frozen=True, kw_only=True):
    streams: list[str] | None = None
    total: int = 0


class AccountLimits(msgspec.Struct, frozen=True):
    max_storage: int = -1


class AccountAnswer(Answer, frozen=True, kw_only=True):
    storage: int = 0
    limits: AccountLimits = AccountLimits()


AnswerT = TypeVar("AnswerT", bound=Answer)


class JetStream:
    def __init__(self, connection: Connection, refuse: Callable[[], None]) -> None:
        self._connection = connection
        self._refuse = refuse
        """Called before each call: raises if the nodes may not be used."""

    async def publish(self, subject: str, data: bytes, headers: Mapping[str, str]) -> int:
        """Append a message, and return its sequence."""
        assert len(data) <= MESSAGE_BYTES_MAX - HEADER_BYTES_MAX
        self._refuse()
        seconds = ANSWER_SECONDS_MAX + len(data) / TRANSFER_BYTES_PER_SECOND
        (reply,) = await self._connection.ask(subject, data, seconds, headers)
        return _decoded(reply, Acknowledgement).seq

    async def make(self, settings: StreamSettings) -> None:
        """Make a stream; one that is there becomes what the settings say."""
        try:
            found = (await self.info(settings.name)).config
        except Missing:
            found = await self._put("CREATE", settings)
        if found != settings:
            await self._put("UPDATE", settings)

    async def _put(self, verb: str, settings: StreamSettings) -> StreamSettings | None:
        name = f"STREAM.{verb}"
        answer = await self._call(name, settings, StreamAnswer, settings.name, LONG_SECONDS_MAX)
        return answer.config

    async def info(self, stream: str) -> StreamAnswer:
        return await self._call("STREAM.INFO", None, StreamAnswer, stream)

    async def subjects(self, stream: str, pattern: str) -> list[str]:
        """Return the subjects of a stream that fit a pattern, which has a message each."""
        found: list[str] = []
        while True:
            asked = {"subjects_filter": pattern, "offset": len(found)}
            answer = await self._call("STREAM.INFO", asked, StreamAnswer, stream)
            part = answer.state.subjects or {}
            found += part
            if not part or len(found) >= answer.total:
                return found

    async def names(self) -> list[str]:
        found: list[str] = []
        while True:
            answer = await self._call("STREAM.NAMES", {"offset": len(found)}, NamesAnswer, "")
            found += answer.streams or []
            if not answer.streams or len(found) >= answer.total:
                return found

    async def storage(self) -> tuple[int, int]:
        """Return how many bytes there are and may be, in all copies; -1 if there is no bound."""
        answer = await self._call("INFO", None, AccountAnswer, "")
        return answer.storage, answer.limits.max_storage

    async def remove(self, stream: str) -> None:
        await self._call("STREAM.DELETE", None, Answer, stream)

    async def purge(self, stream: str, **which: int | str) -> None:
        """Drop messages: all before the sequence `seq`, or those whose subject fits `filter`."""
        await self._call("STREAM.PURGE", which, Answer, stream)

    async def newest(self, stream: str, subject: str, seconds: float) -> Stored:
        asked = {"last_by_subj": subject}
        answer = await self._call("STREAM.MSG.GET", asked, StoredAnswer, stream, seconds)
        if answer.message is None:
            raise LogFailed(f"log nodes answered without a message of {stream}")
        return answer.message

    async def read(self, stream: str, first: int, most: int) -> list[Message]:
        """Return messages as one node has them, from `first` on and without a gap.

        Any node may be asked. One that stands still gets questions for as long as the others take
        it for alive: then the leader is asked.
        """
        self._refuse()
        for _ in range(ANY_NODE_ATTEMPTS):
            with suppress(Unanswered):
                return await self._read_from_any(stream, first, most)
        return await self._read_from_leader(stream, first, min(most, LEADER_MESSAGES_MAX))

    async def _read_from_leader(self, stream: str, first: int, most: int) -> list[Message]:
        """The same, one message after the other."""
        messages: list[Message] = []
        while len(messages) < most:
            asked = {"seq": first + len(messages)}
            try:
                answer = await self._call(
                    "STREAM.MSG.GET", asked, StoredAnswer, stream, LONG_SECONDS_MAX
                )
            except Missing:
                break
            if answer.message is None or answer.message.seq != asked["seq"]:
                break
            messages.append(Message(answer.message.seq, answer.message.data))
        return messages

    async def _read_from_any(self, stream: str, first: int, most: int) -> list[Message]:
        asked = {
            "seq": first,
            "batch": min(most, READ_MESSAGES_MAX),
            "max_bytes": READ_BYTES_MAX,
        }
        replies = await self._connection.ask(
            f"$JS.API.DIRECT.GET.{stream}",
            msgspec.json.encode(asked),
            ANY_NODE_SECONDS_MAX,
            is_last=lambda reply: reply.status != 0,
        )
        messages: list[Message] = []
        for reply in replies:
            if reply.status:
                _check_end(reply)
                break
            sequence = reply.headers.get("Nats-Sequence", "")
            if sequence != str(first + len(messages)):
                break
            messages.append(Message(int(sequence), reply.payload))
        return messages

    async def _call(
        self,
        name: str,
        asked: object,
        kind: type[AnswerT],
        stream: str,
        seconds: float = ANSWER_SECONDS_MAX,
    ) -> AnswerT:
        self._refuse()
        subject = f"$JS.API.{name}.{stream}" if stream else f"$JS.API.{name}"
        data = b"" if asked is None else msgspec.json.encode(asked)
        (reply,) = await self._connection.ask(subject, data, seconds)
        return _decoded(reply, kind)


def _check_end(reply: Delivery) -> None:
    """Status 204 is the end of a read, 404 that there is nothing."""
    if reply.status == 503:
        raise Unanswered("no log node has the stream now")
    if reply.status not in (204, 404):
        raise LogFailed(f"log nodes cannot read: {reply.status} {reply.description}")


def _decoded(reply: Delivery, kind: type[AnswerT]) -> AnswerT:
    if reply.status == 503:
        raise Unanswered("no log node leads the stream now")
    try:
        answer = msgspec.json.decode(reply.payload, type=kind)
    except msgspec.MsgspecError as error:
        raise LogFailed(f"log nodes answered what cannot be read: {error}") from None
    if answer.error is not None:
        _raise(answer.error)
    return answer


def _raise(failure: Failure) -> None:
    if failure.err_code == REFUSED and (found := _LAST.search(failure.description)):
        raise Refused(int(found[1]))
    text = f"log nodes answered: {failure.description} ({failure.err_code})"
    if failure.err_code in NO_ROOM:
        raise LogFailed(text, hint=FULL_HINT)
    may_pass = failure.code in (429, 503)
    if may_pass or failure.err_code in (UNDER_WAY, NO_PEERS):
        raise Unanswered(failure.description)
    if failure.code == 404:
        raise Missing(failure.description)
    raise LogFailed(text)
