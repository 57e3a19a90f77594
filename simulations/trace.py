"""The trace: everything that happened in a simulation run, in order.

The simulated world records what it does or sees as one flat list of events, with a running digest.
The digest defines "repeatable": two runs are the same run if and only if their digests are equal.

    record(0.0125, "client 3", "begin", "T7 begins")            -+
    record(0.0125, "client 3", "send", "T7 to gateway", 41)      +-> sha256, and (if kept) Events
    record(0.0140, "gateway", "receive", "T7 from client 3", 41) -+

Invariant: the digest depends on the recorded fields and their order, and on nothing else: not on
whether the events are kept, not on hash seeds, not on how often the digest was asked for.

A campaign over thousands of seeds needs only the digest, so keeping the events is optional; a
failing seed is run again with the events kept. The digest reads the `repr` of a tuple, the cheapest
encoding in Python that cannot confuse two events: strings are quoted and escaped, and the `repr` of
a float names exactly that float.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

# In the order in which a reader wants them explained: life, messages, transactions, storage, harm.
KINDS: Final = (
    "start",  # an actor's generation begins
    "stop",  # an actor's generation ends
    "send",
    "receive",
    "begin",  # a client begins a transaction
    "commit",
    "conflict",
    "fail",  # a clean error: nothing was applied
    "unknown",  # the client cannot know whether it was applied
    "publish",  # the next snapshot becomes visible
    "sync",
    "durable",
    "fault",  # an injected fault
    "kill",  # an actor is killed
    "crash",  # the whole process is gone
    "heal",  # faults cease
    "recover",
    "check",
    "anomaly",
)
_KNOWN_KINDS: Final = frozenset(KINDS)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that one actor did, or that was done to it, at one moment."""

    number: int
    time: float
    actor: str
    kind: str
    text: str
    message: int | None = None


class Trace:
    """The record of one run, append-only."""

    __slots__ = ("_count", "_hash", "_messages", "ended", "events", "keep_events")

    def __init__(self, *, keep_events: bool = True) -> None:
        self.keep_events = keep_events
        self.events: list[Event] = []
        self.ended = 0.0
        """The time of the last event."""
        self._hash = hashlib.sha256()
        self._count = 0
        self._messages = 0

    def __len__(self) -> int:
        """Return how many events were recorded, kept or not."""
        return self._count

    def __repr__(self) -> str:
        kept = "kept" if self.keep_events else "not kept"
        return f"<Trace: {self._count} events ({kept}), {self._messages} messages>"

    def record(
        self, time: float, actor: str, kind: str, text: str, message: int | None = None
    ) -> None:
        assert kind in _KNOWN_KINDS, f"{kind!r} is not a kind of event"
        # The digest hashes the order of events, so it needs no number.
        self._hash.update(repr((time, actor, kind, text, message)).encode())
        if self.keep_events:
            self.events.append(Event(self._count, time, actor, kind, text, message))
        self._count += 1
        self.ended = time
        if kind == "send":
            self._messages += 1

    def messages(self) -> int:
        return self._messages

    def digest(self) -> str:
        return self._hash.hexdigest()
