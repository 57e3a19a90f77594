"""What processes say to each other: all messages, each a kind of frame.

    caller                                  callee
           ◄──────────────────── Hello             accepted: now there is somebody who answers
    Call ──────────────────────►                   a task for each
           ◄─────────── Answer, Failure
    Lock ──────────────────────►                   waits its turn
           ◄─────────────────── Answer
    Follow ────────────────────►                   a stream of values both ways
    Item, Credit  ◄────────────► Item, Credit
           ◄────────────── End, Failure
    Cancel ────────────────────►                   ends what has this id: call, stream or lock
    Move + descriptor ─────────►                   a client's connection, one way
    Beat  ◄────────────────────► Beat              each end is there (only between machines)

Each pair of processes has a connection for each direction of calls, so a message has one meaning.
The caller makes the ids.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from qserver.cluster.frames import DamagedFrame
from qserver.cluster.plain_values import packed, unpacked


class Message(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The ids of calls, locks and streams are of one sequence."""


class Hello(Message, frozen=True):
    process: int


class Call(Message, frozen=True):
    id: int
    method: str
    arguments: list[Any]
    ticket: int | None
    """The id of the lock that the caller must hold for it."""


class Lock(Message, frozen=True):
    id: int
    name: str


class Follow(Message, frozen=True):
    id: int
    name: str
    arguments: list[Any]


class Cancel(Message, frozen=True):
    id: int


class Move(Message, frozen=True):
    meta: Any
    data: bytes


class Answer(Message, frozen=True):
    id: int
    value: Any


class Failure(Message, frozen=True):
    id: int
    classes: list[str]
    attributes: dict[str, Any]


class Item(Message, frozen=True):
    id: int
    value: Any


class Credit(Message, frozen=True):
    id: int


class End(Message, frozen=True):
    id: int


class Beat(Message, frozen=True):
    """Says nothing but that its sender is there."""


_KINDS: Final[tuple[type[Message], ...]] = (
    *(Hello, Call, Lock, Follow, Cancel, Move),
    *(Answer, Failure, Item, Credit, End, Beat),
)
_KIND_OF: Final = {message: kind for kind, message in enumerate(_KINDS)}
_DECODERS: Final = tuple(msgspec.msgpack.Decoder(each, ext_hook=unpacked) for each in _KINDS)


def encode(message: Message) -> tuple[int, bytes]:
    """Return a message's kind and payload."""
    return _KIND_OF[type(message)], msgspec.msgpack.encode(packed(message))


def decode(kind: int, payload: bytes) -> Message:
    if kind >= len(_KINDS):
        raise DamagedFrame(f"frames of kind {kind} are unknown")
    try:
        return _DECODERS[kind].decode(payload)
    except (msgspec.MsgspecError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise DamagedFrame(f"{_KINDS[kind].__name__} does not read: {error}") from None
