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

An answer that the kernel takes at once skips SENDING; a request that arrives whole skips HEAD. One
whose short body is on its way goes from HANDLING to BODY and back. If the client leaves, any state
goes to CLOSED. A request of another process goes from HANDLING to
LEAVING: nothing of an answer can have been sent. So does one that asks for another protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class Phase(Enum):
    """The values complete the sentence "a connection whose client …"."""

    OPENING = "is being greeted"
    IDLE = "rests"
    """The connection has not looked at a byte of the next request's first line."""
    HEAD = "sends a head"
    HANDLING = "is served"
    """The endpoint has the request, or the connection's task has its answer to await or send."""
    BODY = "sends a body"
    """The endpoint does not have the request yet: its body is short, and waited for a moment, as if
    it came with the head. What lasts longer is read by who handles the request."""
    PENDING = "waits for its answer"
    """The endpoint calls `respond` later."""
    SENDING = "is sent its answer"
    SKIPPING = "sends a body that nobody reads"
    LEAVING = "goes to another process, or protocol"
    LINGERING = "is seen out"
    """The client has its answer; the connection drops what the client still sends."""
    CLOSED = "has left"

    followers: tuple[Phase, ...]


_ANSWERED: Final = (Phase.IDLE, Phase.SKIPPING, Phase.LINGERING, Phase.CLOSED)

TRANSITIONS: Final[Mapping[Phase, tuple[Phase, ...]]] = {
    Phase.OPENING: (Phase.IDLE, Phase.CLOSED),
    Phase.IDLE: (Phase.HANDLING, Phase.HEAD, Phase.SENDING, Phase.LINGERING, Phase.CLOSED),
    Phase.HEAD: (Phase.HANDLING, Phase.SENDING, Phase.LINGERING, Phase.CLOSED),
    Phase.HANDLING: (Phase.PENDING, Phase.BODY, Phase.SENDING, Phase.LEAVING, *_ANSWERED),
    Phase.BODY: (Phase.HANDLING, Phase.CLOSED),
    Phase.PENDING: (Phase.HANDLING, Phase.CLOSED),
    Phase.SENDING: _ANSWERED,
    Phase.SKIPPING: (Phase.IDLE, Phase.LINGERING, Phase.CLOSED),
    Phase.LEAVING: (Phase.CLOSED,),
    Phase.LINGERING: (Phase.CLOSED,),
    Phase.CLOSED: (),
}

for _state, _followers in TRANSITIONS.items():
    _state.followers = _followers  # an attribute needs no hash: each request makes two transitions
