"""What sessions need of the service, and the numbers of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
import trio

from qserver.control.plane import ControlPlane
from qserver.control.rates import SlidingLogs
from qserver.errors import DatabaseUnavailable, QserverError, SessionEnded
from qserver.pgwire.limits import FAILURES_SECONDS
from qserver.pgwire.rows import RowWriters
from qserver.pgwire.texts import Texts


class Statistics(msgspec.Struct, frozen=True):
    """For metrics."""

    connections_open: int
    connections_accepted: int
    connections_refused: int
    connections_moved_out: int
    connections_moved_in: int
    authentications_failed: int
    cancels: int
    copied_rows: int
    bytes_in: int
    bytes_out: int


@dataclass(slots=True, eq=False)
class Host:
    """One for all sessions of a process."""

    plane: ControlPlane
    secrets: Callable[[int], bytes]
    known: Callable[[Exception], QserverError]
    """Counts an error, and returns what the client is told of it."""
    count: Callable[[QserverError | None, float], None]
    """Counts a statement and the seconds that it took."""
    is_starting: Callable[[], bool]
    end_point: bytes | None = None
    """The hash of the certificate, if there is one; see `end_point`."""
    has_tls: bool = False
    takes_plaintext: bool = False
    """Whether keys may be sent as they are over networks, without TLS."""
    is_draining: bool = False
    texts: Texts = field(default_factory=Texts)
    row_writers: RowWriters = field(default_factory=RowWriters)
    connections: Counter[str] = field(default_factory=Counter)
    """Of each organization."""
    failures: SlidingLogs = field(
        default_factory=lambda: SlidingLogs(trio.current_time, FAILURES_SECONDS)
    )
    """Failed authentications, by address."""
    counts: Counter[str] = field(default_factory=Counter)
    """By the names of `Statistics`; of bytes, here."""
    bytes_in: int = 0
    bytes_out: int = 0
    pepper: bytes = b""
    """Makes salts for keys that there are not."""

    def __post_init__(self) -> None:
        self.pepper = self.secrets(32)

    def check_ready(self) -> None:
        if self.is_draining:
            raise DatabaseUnavailable("the database system is shutting down")
        if self.is_starting():
            raise DatabaseUnavailable("the database system is starting up")

    def statistics(self) -> Statistics:
        numbers = self.counts | Counter(bytes_in=self.bytes_in, bytes_out=self.bytes_out)
        return Statistics(**{name: numbers[name] for name in Statistics.__struct_fields__})

    def stopping(self) -> SessionEnded:
        return SessionEnded(
            "terminating connection due to administrator command", hint="Connect again."
        )
