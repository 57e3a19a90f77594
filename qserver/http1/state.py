"""The states of a connection and their transitions.

                 ┌───────────────────────────────────────────────────────────┐
                 ▼                                                           │
    OPENING ─► IDLE ─► HEAD ─► HANDLING ◄─► PENDING      answer sent,        │
                 │       │         │            │        request read        │
                 │       │         └─────┬──────┘                            │
                 │       │ refused       ▼                                   │
                 │       └─────────►  SENDING ─► SKIPPING ───────────────────┤
                 │                       └──────────┴────────────────────────┘
                 │ nothing came in time             │ the connection ends with the answer
                 ▼                                  ▼
              CLOSED ◄───────────────────────── LINGERING

An answer that the kernel takes at once skips SENDING; a request that arrives whole skips HEAD. If
the client leaves, any state goes to CLOSED.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class State(Enum):
    """The values complete the sentence "a connection whose client …"."""

    OPENING = "is being greeted"
    IDLE = "rests"
    """The connection has not looked at a byte of the next request's first line."""
    HEAD = "sends a head"
    HANDLING = "is served"
    """The endpoint has the request, or the connection's task has its answer to await or send."""
    PENDING = "waits for its answer"
    """The endpoint calls `respond` later."""
    SENDING = "is sent its answer"
    SKIPPING = "sends a body that nobody reads"
    LINGERING = "is seen out"
    """The client has its answer; the connection drops what the client still sends."""
    CLOSED = "has left"

    followers: tuple[State, ...]


_ANSWERED: Final = (State.IDLE, State.SKIPPING, State.LINGERING, State.CLOSED)

TRANSITIONS: Final[Mapping[State, tuple[State, ...]]] = {
    State.OPENING: (State.IDLE, State.CLOSED),
    State.IDLE: (State.HANDLING, State.HEAD, State.SENDING, State.LINGERING, State.CLOSED),
    State.HEAD: (State.HANDLING, State.SENDING, State.LINGERING, State.CLOSED),
    State.HANDLING: (State.PENDING, State.SENDING, *_ANSWERED),
    State.PENDING: (State.HANDLING, State.CLOSED),
    State.SENDING: _ANSWERED,
    State.SKIPPING: (State.IDLE, State.LINGERING, State.CLOSED),
    State.LINGERING: (State.CLOSED,),
    State.CLOSED: (),
}

for _state, _followers in TRANSITIONS.items():
    _state.followers = _followers  # an attribute needs no hash: each request makes two transitions
