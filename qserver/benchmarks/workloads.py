"""The workloads of a bench: each makes whole requests, ready to send.

What is done in process as well is in `qserver.workloads.operations`; here is how it is sent, and
what only a server has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, repeat
from random import Random
from typing import Final

from qserver.benchmarks.target import EVENTS, LINES, Target
from qserver.benchmarks.wire import Connection
from qserver.workloads.operations import (
    Operation,
    Operations,
    Tables,
    insert,
    point,
    transfer,
    update,
)

ACCOUNTS: Final = 10_000
SCAN_ROWS: Final = 10_000
BULK_ROWS: Final = 10_000
LIVE_QUERIES: Final = 1000
"""Each on a connection of its own: what an organization may have."""
READERS_OF_CHANGES: Final = 100
_NOTE: Final = b"x" * 75
_TRANSACTION: Final = re.compile(rb'"(txn_[0-9a-z_]+)"')

assert SCAN_ROWS <= ACCOUNTS

Requests = Callable[[Random, Connection], Iterator[bytes]]


@dataclass(frozen=True, slots=True)
class Workload:
    """`requests` yields the requests of one client, without end; each reads or writes `rows`. The
    next one may depend on the last answer, which its connection has.

    Beside them each of `streams`, from a version on, is followed on a connection of its own.
    `plain` names the workload to compare with: the same without what this one adds. It does with
    one request what this one does with `steps`. If the answer `is_stream`, its end tells success.
    """

    name: str
    requests: Requests
    rows: int = 1
    streams: Callable[[int], Sequence[bytes]] | None = None
    plain: str | None = None
    steps: int = 1
    is_stream: bool = False

    def succeeded(self, connection: Connection) -> bool:
        if self.is_stream:
            return connection.status == 200 and b"event: done" in connection.tail
        head = connection.head
        return connection.status in (200, 201) and (
            b'"success":true' in head or b'"success": true' in head
        )


def workload_of(name: str, target: Target, tables: Tables) -> Workload:
    def sent(operations: Operations) -> Requests:
        return lambda chance, _: map(target.operation, operations(tables, chance))

    match name:
        case "point":
            return Workload(name, sent(point))
        case "insert":
            return Workload(name, sent(insert))
        case "once":
            return Workload(name, partial(_once, target, tables), plain="insert")
        case "update":
            return Workload(name, sent(update))
        case "live":
            live = partial(_live_queries, target, tables)
            return Workload(name, sent(update), streams=live, plain="update")
        case "feed":
            feed = partial(_readers_of_changes, target)
            return Workload(name, sent(update), streams=feed, plain="update")
        case "transfer":
            return Workload(name, sent(transfer), 2)
        case "pair":
            return Workload(name, sent(_pair))
        case "open":
            return Workload(name, partial(_opens, target, tables), plain="pair", steps=4)
        case "scan":
            whole = target.query(_scan(tables))
            return Workload(name, lambda *_: repeat(whole), SCAN_ROWS)
        case "stream":
            streamed = target.query(_scan(tables), accept=EVENTS)
            return Workload(name, lambda *_: repeat(streamed), SCAN_ROWS, is_stream=True)
        case "bulk":
            bodies = _bulk(target, tables)
            return Workload(name, lambda *_: bodies, BULK_ROWS)
    raise AssertionError(f"the command line lets no workload {name!r} through")


def _scan(tables: Tables) -> str:
    return f"SELECT id, owner, balance FROM {tables.accounts} LIMIT {SCAN_ROWS}"


def _once(target: Target, tables: Tables, chance: Random, last: Connection) -> Iterator[bytes]:
    """Inserts with a key each; the names of two benches differ."""
    for operation in insert(tables, chance):
        ((_, params),) = operation.statements
        yield target.operation(operation, f"Idempotency-Key: {tables.name} {params[0]}\r\n")


def _live_queries(target: Target, tables: Tables, version: int) -> Sequence[bytes]:
    """One for each of some accounts."""
    sql = f"SELECT balance FROM {tables.accounts} WHERE id = ?"
    return [
        target.post("/v1/query", {"sql": sql, "params": [number], "live": True}, accept=EVENTS)
        for number in range(LIVE_QUERIES)
    ]


def _readers_of_changes(target: Target, version: int) -> Sequence[bytes]:
    database = f"&database={target.database}" if target.database else ""
    path = f"/v1/changes?since={version}{database}"
    return [target.request(path, method="GET", accept=EVENTS)] * READERS_OF_CHANGES


def _pair(tables: Tables, chance: Random) -> Iterator[Operation]:
    """Transactions that read an account and change it."""
    read = f"SELECT balance FROM {tables.accounts} WHERE id = ?"
    write = f"UPDATE {tables.accounts} SET balance = balance + 1 WHERE id = ?"
    while True:
        account = tables.any_account(chance)
        yield Operation(((read, [account]), (write, [account])))


def _opens(
    target: Target, tables: Tables, chance: Random, connection: Connection
) -> Iterator[bytes]:
    """The same in a transaction that is opened, used twice and committed."""
    for pair in _pair(tables, chance):
        yield target.post("/v1/transaction/open", {})
        opened = _TRANSACTION.search(connection.head)
        if opened is None:
            continue  # it is counted as an error
        name = opened[1].decode()
        for sql, params in pair.statements:
            yield target.query(sql, *params, header=f"X-Transaction: {name}\r\n")
        yield target.request(f"/v1/transaction/{name}/commit")


def _bulk(target: Target, tables: Tables) -> Iterator[bytes]:
    """Rows whose ids are below 0: above are those of single inserts."""
    database = f"?database={target.database}" if target.database else ""
    path = f"/v1/tables/{tables.entries}/rows{database}"
    for number in count(1):
        ids = range(number * BULK_ROWS, (number - 1) * BULK_ROWS, -1)
        body = b"".join(b'{"id":-%d,"note":"%b"}\n' % (each, _NOTE) for each in ids)
        yield target.request(path, body, content=LINES)
