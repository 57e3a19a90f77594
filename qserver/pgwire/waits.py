"""What a session yields where it cannot go on: it is one generator from first byte to last.

INPUT     it needs more bytes; what it has written can be sent
OUTPUT    it has written much: all of it has to be sent before it goes on
TLS       what it has written is sent, and what follows is TLS
Leave     another process owns its database, and the connection goes there
Cancel    its client wants a statement of another session cancelled
a Step    it waits for the engine, see `engine.work`
"""

from __future__ import annotations

from collections.abc import Generator
from enum import Enum
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from qserver.engine.work import Step
from qserver.errors import QserverError


class Wait(Enum):
    INPUT = "input"
    OUTPUT = "output"
    TLS = "tls"


INPUT: Final = Wait.INPUT
OUTPUT: Final = Wait.OUTPUT


class Leave(msgspec.Struct, frozen=True):
    """Where the connection goes, and what is told there."""

    process: int
    data: bytes


class Cancel(msgspec.Struct, frozen=True):
    """Another session whose statement is to be cancelled."""

    number: int
    secret: int


T = TypeVar("T")
Waits: TypeAlias = Generator[Step | Wait | Leave | Cancel, Any, T]


class Fatal(Exception):  # control flow: it ends the session
    """An error after which the session cannot go on."""

    def __init__(self, error: QserverError) -> None:
        super().__init__(error.message)
        self.error = error
