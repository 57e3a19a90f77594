"""The rows of what happens in a server: connections, advisory locks, counts.

Connections are those of clients of PostgreSQL. A request over HTTP is no connection: it sees
itself, with the number that pg_backend_pid() has there, and others do not see it. What nobody
counts here is 0, as in a PostgreSQL that has just begun.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from qserver.engine.advisory_locks import Key, Lock
from qserver.query.catalog.roles import NAME
from qserver.query.catalog.world import DATABASE, OWNER, World
from qserver.query.server_facts import Connected, SessionActivity

Rows = Iterator[dict[str, Any]]

_REQUEST: Final = SessionActivity("active", "", None, "", "", False, "", None)
HIDDEN: Final = "<insufficient privilege>"
"""PostgreSQL's words instead of a statement that the reader may not see."""
_MASK: Final = 0xFFFFFFFF


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _connections(world: World) -> Iterator[tuple[int, float | None, SessionActivity]]:
    """Yield the numbers of connections, when they began, and what they do."""
    own = 0 if world.session is None else world.session.number
    connected = world.server.connected()
    if own not in connected:
        yield own, None, _REQUEST
    for number, each in sorted(connected.items()):
        yield number, each.began, each.session.activity()


def activity(world: World) -> Rows:
    """The rows of pg_stat_activity; of what others do, that they are there."""
    own = 0 if world.session is None else world.session.number
    for number, began, doing in _connections(world):
        is_there = {
            "datid": DATABASE,
            "datname": world.server.database,
            "pid": number,
            "usesysid": OWNER,
            "usename": NAME,
            "backend_type": "client backend",
        }
        if number != own and not world.allowed.may_see(doing.key_id, doing.session_id):
            yield {**is_there, "query": HIDDEN}
            continue
        waits = doing.state != "active"
        changed = _moment(doing.query_began)
        yield {
            **is_there,
            "application_name": doing.application_name,
            "client_addr": doing.client or None,
            "backend_start": _moment(began),
            "xact_start": changed,
            "query_start": changed,
            "state_change": changed,
            "wait_event_type": "Client" if waits else None,
            "wait_event": "ClientRead" if waits else None,
            "state": doing.state,
            "query": doing.query,
        }


def encryption(world: World) -> Rows:
    """The rows of pg_stat_ssl."""
    for number, _, doing in _connections(world):
        yield {"pid": number, "ssl": doing.is_tls}


def kerberos(world: World) -> Rows:
    """The rows of pg_stat_gssapi."""
    for number, _, _ in _connections(world):
        yield {"pid": number, "gss_authenticated": False, "encrypted": False}


# --- locks ---------------------------------------------------------------------------------------


def locks(world: World) -> Rows:
    """The advisory locks: rows and tables are not locked here."""
    if world.server.locks is None:
        return
    for number, lock, granted in world.server.locks.listed():
        yield {
            "locktype": "advisory",
            "database": DATABASE,
            **_parts_of(lock.key),
            "virtualtransaction": f"{number}/0",
            "pid": number,
            "mode": _mode(lock),
            "granted": granted,
            "fastpath": False,
        }


def _parts_of(key: Key) -> dict[str, int]:
    """Return a key as PostgreSQL shows it: two halves of a bigint, or two integers."""
    if isinstance(key, int):
        return {"classid": key >> 32 & _MASK, "objid": key & _MASK, "objsubid": 1}
    first, second = key
    return {"classid": first & _MASK, "objid": second & _MASK, "objsubid": 2}


def _mode(lock: Lock) -> str:
    return "ShareLock" if lock.shared else "ExclusiveLock"


# --- counts --------------------------------------------------------------------------------------

_COUNTS: Final = (
    *("xact_rollback", "blks_read", "blks_hit", "tup_returned", "tup_fetched", "tup_inserted"),
    *("tup_updated", "tup_deleted", "conflicts", "temp_files", "temp_bytes", "deadlocks"),
    *("sessions_abandoned", "sessions_fatal", "sessions_killed"),
)
_TIMES: Final = (
    *("blk_read_time", "blk_write_time", "session_time", "active_time"),
    "idle_in_transaction_time",
)


def database_counts(world: World) -> Rows:
    connected: dict[int, Connected] = dict(world.server.connected())
    yield {
        "datid": DATABASE,
        "datname": world.server.database,
        "numbackends": len(connected),
        "xact_commit": world.snapshot.version,
        "sessions": len(connected),
        **dict.fromkeys(_COUNTS, 0),
        **dict.fromkeys(_TIMES, 0.0),
    }


def conflict_counts(world: World) -> Rows:
    words = ("tablespace", "lock", "snapshot", "bufferpin", "deadlock")
    counts = dict.fromkeys((f"confl_{word}" for word in words), 0)
    yield {"datid": DATABASE, "datname": world.server.database, **counts}


def zeros(*names: str) -> Any:
    """Return the source of one row of counts.

    A name that ends in _time is a length of time, one that ends in _bytes a numeric.
    """
    zeros_of: dict[str, Any] = {"time": 0.0, "bytes": Decimal(0)}

    def rows(world: World) -> Rows:
        counts = {name: zeros_of.get(name.rpartition("_")[2], 0) for name in names}
        yield counts | {"stats_reset": _moment(world.server.started)}

    return rows
