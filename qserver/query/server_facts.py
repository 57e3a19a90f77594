"""What statements can ask of a database and its server beside what it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from qserver.engine.advisory_locks import AdvisoryLocks


class SessionActivity(NamedTuple):
    """What a connection does, as pg_stat_activity has it. Times are seconds since 1970."""

    state: str
    query: str
    """The statement that runs, or the last one."""
    query_began: float | None
    application_name: str
    client: str
    """The address."""
    is_tls: bool
    key_id: str
    """Whose it is."""
    session_id: str | None


class ConnectedSession(Protocol):
    """A connection of a client of PostgreSQL, as others see it."""

    def activity(self) -> SessionActivity: ...

    def cancel(self) -> None:
        """Cancel the statement that runs, if one does."""

    def terminate(self) -> None:
        """End the session, and its transaction, as soon as it can."""


class Connected(NamedTuple):
    session: ConnectedSession
    began: float


def _nobody() -> Mapping[int, Connected]:
    return {}


@dataclass(slots=True)
class ServerFacts:
    """They may change while plans are kept, so no plan holds any of them."""

    database: str = "main"
    """The name of the database, as of the last request for it."""
    started: float = 0.0
    """When the server began: seconds since 1970."""
    now: Callable[[], float] = field(default=lambda: 0.0)
    connected: Callable[[], Mapping[int, Connected]] = _nobody
    """The connections of this process to the database, by their numbers."""
    locks: AdvisoryLocks | None = None
    """None where the database can only be read."""


NO_FACTS: Final = ServerFacts()
