"""Whether an actor can be entered: do its work where a message for it was made.

             take                   submit, in a batch
    BUSY ◄────────────────── IDLE ─────────────────────► GATHERING
      ▲    a message waits    ▲                              │
      │                       │ done                         │ the batch ends
      └───────────────────────┴──────────── ENTERED ◄────────┘
          there is a rest: it is the task's next message

An actor's task is not woken for what can be done at once. While it is idle, and no message waits in
its mailbox, whoever has a message for it may enter: in a batch of requests all of them together, at
its end. What is submitted meanwhile goes through the mailbox, and so comes after.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class Readiness(Enum):
    """The values complete the sentence "an actor that …"."""

    BUSY = "is at work, or has not begun"
    IDLE = "waits for a message"
    GATHERING = "will be entered at the end of the batch"
    ENTERED = "is at work in another's task"


BUSY: Final = Readiness.BUSY
IDLE: Final = Readiness.IDLE
GATHERING: Final = Readiness.GATHERING
ENTERED: Final = Readiness.ENTERED
