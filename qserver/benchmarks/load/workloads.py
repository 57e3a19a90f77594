"""The workloads of a bench: each makes whole requests, ready to send.

A request is two constant texts and a few numbers. Making one takes a microsecond or two; a JSON
encoder would take more than the rest of the client.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from qserver.benchmarks.load.wire import Address, Connection

ACCOUNTS: Final = 10_000
SCAN_ROWS: Final = 10_000
BULK_ROWS: Final = 10_000
LIVE_QUERIES: Final = 1000
"""Each on a connection of its own: what an organization may have."""
FIRST_ONCE: Final = 1_000_000_000
"""Rows that are inserted once have higher numbers than others."""
READERS_OF_CHANGES: Final = 100
_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_LINES: Final = "application/x-ndjson"
_NOTE_LENGTH: Final = 75
_TRANSACTION: Final = re.compile(rb'"(txn_[0-9a-z_]+)"')

assert SCAN_ROWS <= ACCOUNTS


@dataclass(frozen=True, slots=True)
class Target:
    """The server and database of a bench; `name` prefixes the names of its tables."""

    address: Address
    key: str
    database: str | None
    name: str

    @property
    def accounts(self) -> str:
        return tables_of(self.name)[0]

    @property
    def entries(self) -> str:
        return tables_of(self.name)[1]


def tables_of(name: str) -> tuple[str, str]:
    """The tables of a bench with this name: accounts, and the target of inserts."""
    return f"{name}_accounts", f"{name}_entries"


@dataclass(frozen=True, slots=True)
class Workload:
    """`requests` yields the requests of one client, without end; each reads or writes `rows`. The
    next one may depend on the last answer, which its connection has.

    Beside them each of `streams`, from a version on, is followed on a connection of its own.
    `plain` names the workload to compare with: the same without what this one adds. It does with
    one request what this one does with `steps`.
    """

    name: str
    requests: Callable[[random.Random, Connection], Iterator[bytes]]
    succeeded: Callable[[Connection], bool]
    rows: int = 1
    streams: Callable[[int], Sequence[bytes]] | None = None
    plain: str | None = None
    steps: int = 1


def workload_of(name: str, target: Target) -> Workload:
    # All clients share it, so each number is inserted once.
    fresh = itertools.count(1)
    accounts = target.accounts
    match name:
        case "point":
            template = _query(target, f"SELECT id, owner, balance FROM {accounts} WHERE id = ?")
            return Workload(name, lambda chance, _: _points(template, chance), _answered)
        case "insert":
            template = _query(target, f"INSERT INTO {target.entries} VALUES (?, 'entry')")
            return Workload(name, lambda chance, _: (template.filled(n) for n in fresh), _answered)
        case "transfer":
            template = _transfer(target)
            return Workload(name, lambda chance, _: _transfers(template, chance), _answered, 2)
        case "pair":
            template = _pair(target)
            return Workload(name, lambda chance, _: _points_twice(template, chance), _answered)
        case "open":
            return Workload(name, partial(_opens, target), _answered, plain="pair", steps=4)
        case "scan":
            whole = _query(target, _scan(accounts), "").filled()
            return Workload(name, lambda chance, _: itertools.repeat(whole), _answered, SCAN_ROWS)
        case "stream":
            whole = _query(target, _scan(accounts), "", _EVENTS).filled()
            return Workload(name, lambda chance, _: itertools.repeat(whole), _streamed, SCAN_ROWS)
        case "once":
            template = _once(target)
            made = (template.filled(n, FIRST_ONCE + n) for n in fresh)
            return Workload(name, lambda chance, _: made, _answered, plain="insert")
        case "update" | "live" | "feed":
            template = _query(target, _update(accounts), "%d,%d")
            streams = {"live": _live_queries, "feed": _readers_of_changes}.get(name)
            return Workload(
                name,
                lambda chance, _: _updates(template, chance),
                _answered,
                streams=None if streams is None else partial(streams, target),
                plain=None if name == "update" else "update",
            )
        case "bulk":
            template = _bulk(target)
            return Workload(name, lambda chance, _: _bulks(template, fresh), _answered, BULK_ROWS)
    raise AssertionError(f"the command line lets no workload {name!r} through")


@dataclass(frozen=True, slots=True)
class Template:
    """A request with placeholders for numbers; the head may have some before its length."""

    head: bytes
    body: bytes

    def filled(self, *numbers: int) -> bytes:
        of_head = self.head.count(b"%d") - 1
        body = self.body % numbers[of_head:]
        return self.head % (*numbers[:of_head], len(body)) + body


def _template(target: Target, path: str, body: str, accept: str) -> Template:
    database = f',"database":"{target.database}"' if target.database else ""
    return Template(_head(target, path, _JSON, accept), f"{{{body}{database}}}".encode("ascii"))


def _head(target: Target, path: str, content_type: str, accept: str, method: str = "POST") -> bytes:
    """The head of a request, with a placeholder for the length of its body."""
    address = target.address
    head = (
        f"{method} {address.prefix}{path} HTTP/1.1\r\nHost: {address.authority}\r\n"
        f"Authorization: Bearer {target.key}\r\nContent-Type: {content_type}\r\n"
        f"Accept: {accept}\r\nContent-Length: "
    )
    # A percent sign in a key or a path is not a placeholder.
    return head.replace("%", "%%").encode("ascii") + b"%d\r\n\r\n"


def _once(target: Target) -> Template:
    """An insert with a key of its own; the names of two benches differ."""
    plain = _query(target, f"INSERT INTO {target.entries} VALUES (?, 'entry')")
    named = f"Idempotency-Key: {target.name} %d\r\nContent-Length: ".encode("ascii")
    return Template(plain.head.replace(b"Content-Length: ", named), plain.body)


def _update(accounts: str) -> str:
    return f"UPDATE {accounts} SET balance = balance + ? WHERE id = ?"


def _updates(template: Template, chance: random.Random) -> Iterator[bytes]:
    while True:
        yield template.filled(1 + int(chance.random() * 10), int(chance.random() * ACCOUNTS))


def _live_queries(target: Target, version: int) -> Sequence[bytes]:
    """One for each of some accounts."""
    sql = f"SELECT balance FROM {target.accounts} WHERE id = ?"
    body = f'"sql":"{sql}","params":[%d],"live":true'
    template = _template(target, "/v1/query", body, _EVENTS)
    return [template.filled(number) for number in range(LIVE_QUERIES)]


def _readers_of_changes(target: Target, version: int) -> Sequence[bytes]:
    database = f"&database={target.database}" if target.database else ""
    path = f"/v1/changes?since={version}{database}"
    return [_head(target, path, _JSON, _EVENTS, "GET") % 0] * READERS_OF_CHANGES


def _query(target: Target, sql: str, params: str = "%d", accept: str = _JSON) -> Template:
    return _template(target, "/v1/query", f'"sql":"{sql}","params":[{params}]', accept)


def _transfer(target: Target) -> Template:
    update = f"UPDATE {target.accounts} SET balance = balance %s ? WHERE id = ?"
    statements = ",".join(f'{{"sql":"{update % sign}","params":[%d,%d]}}' for sign in ("-", "+"))
    return _template(target, "/v1/transaction", f'"statements":[{statements}]', _JSON)


def _pair(target: Target) -> Template:
    """A transaction that reads an account and changes it."""
    read, write = _read_and_write(target)
    statements = f'{{"sql":"{read}","params":[%d]}},{{"sql":"{write}","params":[%d]}}'
    return _template(target, "/v1/transaction", f'"statements":[{statements}]', _JSON)


def _read_and_write(target: Target) -> tuple[str, str]:
    accounts = target.accounts
    return (
        f"SELECT balance FROM {accounts} WHERE id = ?",
        f"UPDATE {accounts} SET balance = balance + 1 WHERE id = ?",
    )


def _points_twice(template: Template, chance: random.Random) -> Iterator[bytes]:
    while True:
        account = int(chance.random() * ACCOUNTS)
        yield template.filled(account, account)


def _opens(target: Target, chance: random.Random, connection: Connection) -> Iterator[bytes]:
    """The same in a transaction that is opened, used twice and committed."""
    opening = _template(target, "/v1/transaction/open", "", _JSON)
    opening = Template(opening.head, opening.body.replace(b"{,", b"{"))
    uses = [_query(target, sql) for sql in _read_and_write(target)]
    while True:
        yield opening.filled()
        opened = _TRANSACTION.search(connection.head)
        if opened is None:
            continue  # it is counted as an error
        account = int(chance.random() * ACCOUNTS)
        for use in uses:
            head = use.head.replace(b"Content-Length: ", b"X-Transaction: %b\r\nContent-Length: ")
            yield Template(head.replace(b"%b", opened[1]), use.body).filled(account)
        path = f"/v1/transaction/{opened[1].decode()}/commit"
        yield _head(target, path, _JSON, _JSON) % 0


def _bulk(target: Target) -> Template:
    """Rows whose ids are below 0: above are those of the workload of inserts."""
    database = f"?database={target.database}" if target.database else ""
    head = _head(target, f"/v1/tables/{target.entries}/rows{database}", _LINES, _JSON)
    row = b'{"id":-%d,"note":"%b"}\n' % (0, b"x" * _NOTE_LENGTH)
    return Template(head, row.replace(b"-0", b"-%d"))


def _bulks(template: Template, fresh: Iterator[int]) -> Iterator[bytes]:
    for number in fresh:
        ids = range(number * BULK_ROWS, (number - 1) * BULK_ROWS, -1)
        body = b"".join(map(template.body.__mod__, ids))
        yield template.head % len(body) + body


def _scan(accounts: str) -> str:
    return f"SELECT id, owner, balance FROM {accounts} LIMIT {SCAN_ROWS}"


def _points(template: Template, chance: random.Random) -> Iterator[bytes]:
    while True:
        yield template.filled(int(chance.random() * ACCOUNTS))


def _transfers(template: Template, chance: random.Random) -> Iterator[bytes]:
    while True:
        giver, taker = (int(chance.random() * ACCOUNTS) for _ in range(2))
        amount = 1 + int(chance.random() * 10)
        yield template.filled(amount, giver, amount, taker)


def _answered(connection: Connection) -> bool:
    head = connection.head
    return connection.status in (200, 201) and (
        b'"success":true' in head or b'"success": true' in head
    )


def _streamed(connection: Connection) -> bool:
    return connection.status == 200 and b"event: done" in connection.tail
