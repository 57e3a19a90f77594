"""What hostile clients send: each attack is a request, or several, that mean no good.

Statements that were found to be dear stand in `tests.query.bombs`, where each is run in process.
Here they come over HTTP, beside requests that attack the service itself: monsters of syntax,
parameters without end, answers that nobody reads, bodies that never end.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec

from tests.query.bombs import EXPRESSIONS, PARAMETERS, STATEMENTS, TABLES

TIMEOUT_MS: Final = 3000
encode: Final = msgspec.json.Encoder(decimal_format="number").encode
UNREAD: Final = 20
"""Connections of one attack that ask for a large answer and read nothing of it."""


@dataclass(frozen=True)
class Attack:
    name: str
    send: Callable[[Attacker], str]
    """Sends it and gives the outcome in a few words."""
    changes: bool = False
    """Does it change the tables that other attacks need?"""


class Attacker:
    """A client with sockets of its own."""

    def __init__(self, address: tuple[str, int], key: str, database: str) -> None:
        self._address = address
        self._key = key
        self._database = database

    def query(self, sql: str, params: Any = None, **fields: Any) -> str:
        body = {"sql": sql, "timeout_ms": TIMEOUT_MS, "database": self._database, **fields}
        if params is not None:
            body["params"] = params
        return self.post("/v1/query", encode(body))

    def transaction(self, *statements: str) -> str:
        body = {"statements": statements, "timeout_ms": TIMEOUT_MS, "database": self._database}
        return self.post("/v1/transaction", encode(body))

    def post(self, path: str, body: bytes, media_type: str = "application/json") -> str:
        """Send a request and read all of its answer; its error code, or "ok"."""
        with self.connect() as connected:
            connected.sendall(self.head(path, len(body), media_type) + body)
            answer = b""
            while chunk := connected.recv(1 << 20):
                answer += chunk[: max(0, 4096 - len(answer))]
        status, _, rest = answer.partition(b"\r\n")
        if b'"success":true' in rest[:3000]:
            return "ok"
        code = rest.partition(b'"code":"')[2][:5].decode()
        return code or status.decode("latin-1") or "closed"

    def bulk(self, table: str, media_type: str, body: bytes) -> str:
        """Send rows in bulk."""
        path = f"/v1/tables/{table}/rows?database={self._database}"
        return self.post(path, body, media_type)

    def connect(self) -> socket.socket:
        return socket.create_connection(self._address, timeout=120)

    def head(
        self,
        path: str,
        length: int,
        media_type: str = "application/json",
        method: str = "POST",
    ) -> bytes:
        """The head of a request; {} in the path is the database."""
        lines = (
            f"{method} {path.format(self._database)} HTTP/1.1",
            f"Host: {self._address[0]}:{self._address[1]}",
            f"Authorization: Bearer {self._key}",
            f"Content-Type: {media_type}",
            f"Content-Length: {length}",
            "Connection: close",
            "\r\n",
        )
        return "\r\n".join(lines).encode()


# --- monsters of syntax --------------------------------------------------------------------------


def monsters() -> Iterator[Attack]:
    """Statements that are dear to read and to plan, not to run."""
    many = range(20_000)
    sums = [f"id + {n}" for n in many]
    texts = {
        "columns": f"select {', '.join(f'{n} as c{n}' for n in range(10_000))}",
        "the same column": f"select {', '.join(['1 as a'] * 10_000)}",
        "ors": f"select 1 where {' or '.join(f'{n} = 1' for n in many)}",
        "ands": f"select 1 from few where {' and '.join(f'id <> {n}' for n in many)}",
        "whens": f"select case {' '.join(f'when id = {n} then {n}' for n in many)} end from few",
        "coalesce": f"select coalesce({', '.join(['null'] * 20_000)}, 1)",
        "sums": f"select {' + '.join(['1'] * 20_000)}",
        "concatenations": f"select {' || '.join(['a'] * 10_000)} from few",
        "in list": f"select 1 from few where id in ({', '.join(map(str, range(100_000)))})",
        "in list of expressions": f"select 1 from few where id in ({', '.join(sums)})",
        "parentheses": "select " + "(" * 5000 + "1" + ")" * 5000,
        "nots": "select " + "not " * 20_000 + "true",
        "functions": "select " + "abs(" * 2000 + "1" + ")" * 2000,
        "casts": "select 1" + "::int" * 10_000,
        "subqueries": "select * from (" * 300 + "select 1 a" + ") q" * 300,
        "joins": "select 1 from " + ", ".join(f"few t{n}" for n in range(300)) + " where "
        + " and ".join(f"t{n}.id = t{n + 1}.id" for n in range(299)),
        "unions": " union all ".join(["select 1"] * 5000),
        "common tables": "with " + ", ".join(f"c{n} as (select {n} a)" for n in range(2000))
        + " select * from c1999",
        "doubling common tables": "with c0 as (select 1 a), "
        + ", ".join(f"c{n + 1} as (select x.a from c{n} x, c{n} y)" for n in range(40))
        + " select count(*) from c40",
        "windows": "select " + ", ".join(f"rank() over (order by id + {n})" for n in range(1000))
        + " from few",
        "cube": f"select 1 from few group by cube ({', '.join(sums[:12])})",
        "large cube": f"select 1 from few group by cube ({', '.join(sums[:60])})",
        "order": f"select 1 from few order by {', '.join(sums[:2000])}",
        "values": f"select * from (values {', '.join(f'({n} + 1, abs({n}))' for n in many)}) v",
        "open quote": "select '" + "''" * 1_000_000,
        "open comment": "select 1 /*" + "/*" * 500_000,
        "dollar quotes": "select " + "$a$b$" * 300_000,
        "names": "select " + ".".join(["a"] * 50_000),
        "commas": "select " + "," * 500_000,
        "operators": "select 1 " + "+-" * 300_000 + "1",
        "numbers": "select " + "9" * 3_000_000,
        "bits": f"select x'{'F' * 1_000_000}'",
        "array": "select array[" + ",".join(["1"] * 100_000) + "]",
        "nested arrays": "select " + "array[" * 2000 + "1" + "]" * 2000,
        "aggregates": f"select {', '.join(f'sum(b + {n})' for n in range(500))} from many",
        "conditions": f"select 1 from many where {' and '.join(['b <> b + 1'] * 5000)}",
        "calls": f"select 1 from many where a not in ({', '.join(['a || id'] * 3000)})",
        "items": f"select array[{', '.join(['b + 1'] * 2000)}] from many",
        "explain": f"explain select 1 where {' or '.join(f'{n} = 1' for n in range(5000))}",
    }  # fmt: skip
    for name, sql in texts.items():
        yield _of_statement(f"monster: {name}", sql)
    checks = ", ".join(f"check (id + {n} > 0)" for n in range(5000))
    yield _of_statement("monster: checks", f"create table copy (id int, {checks})", changes=True)


# --- the service ---------------------------------------------------------------------------------


def _parameters(attacker: Attacker) -> str:
    count = 32_766
    places = ", ".join(f"${n}" for n in range(1, count + 1))
    return attacker.query(f"select 1 from few where id in ({places})", list(range(count)))


def _times(attacker: Attacker) -> str:
    count = 32_766
    places = ", ".join(f"${n}" for n in range(1, count + 1))
    times = ["2024-02-29 12:34:56.789+02"] * count
    return attacker.query(f"select 1 where now() in ({places})", times)


def _raw(params: Callable[[], bytes], path: str = "/v1/query") -> Callable[[Attacker], str]:
    """A body that is built by hand: there are numbers that Python would not write."""

    def send(attacker: Attacker) -> str:
        sql = b'"sql":"select length($1::jsonb::text)","params":[%b]' % params()
        timeout = b'"timeout_ms":%d' % TIMEOUT_MS
        body = b"{%b,%b}" % (sql, timeout)
        if path != "/v1/query":
            body = b'{"statements":[{%b}],%b}' % (sql, timeout)
        return attacker.post(path, body)

    return send


def _any_of_parameters(attacker: Attacker) -> str:
    return attacker.query("select count(*) from many where id = any($1)", [list(range(50_000))])


def _nested_parameters(attacker: Attacker) -> str:
    body = b'{"sql":"select ?","params":[' + b"[" * 100_000 + b"]" * 100_000 + b"]}"
    return attacker.post("/v1/query", body)


def _definitions(attacker: Attacker) -> str:
    names = [f"made_{n}" for n in range(1000)]
    made = attacker.transaction(*(f"create table {name} (id int primary key)" for name in names))
    dropped = attacker.query(f"drop table if exists {', '.join(names)}")
    return f"{made}, {dropped}"


def _identities(attacker: Attacker) -> str:
    columns = ", ".join(f"c{n} int generated always as identity" for n in range(1500))
    made = attacker.query(f"create table copy (id int primary key, {columns})")
    return f"{made}, {attacker.query('drop table if exists copy')}"


def _labels(attacker: Attacker) -> str:
    labels = ", ".join(f"'label {n}'" for n in range(5000))
    made = attacker.query(f"create type many_labels as enum ({labels})")
    return f"{made}, {attacker.query('drop type if exists many_labels')}"


def _unread(rows: int, hint: str = "") -> Callable[[Attacker], str]:
    """Callers who ask for many long rows, and leave when the first have come."""
    sql = f"{hint} select i, repeat('x', 1000) as x from generate_series(1, {rows}) as s(i)"
    body = json.dumps({"sql": sql, "timeout_ms": TIMEOUT_MS}).encode()

    def send(attacker: Attacker) -> str:
        held = [attacker.connect() for _ in range(UNREAD)]
        try:
            for connected in held:
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connected.sendall(attacker.head("/v1/query", len(body)) + body)
            for connected in held:
                connected.recv(1000)  # it has begun
        finally:
            for connected in held:
                connected.close()
        return "left"

    return send


def _half_requests(attacker: Attacker) -> str:
    held = [attacker.connect() for _ in range(100)]
    for connected in held:
        connected.sendall(attacker.head("/v1/query", 8_000_000) + b'{"sql":"')
    for connected in held:
        connected.close()
    return "left"


def _dry_run(sql: str) -> Callable[[Attacker], str]:
    return lambda attacker: attacker.query(sql, dry_run=True)


def _diff(attacker: Attacker) -> str:
    """What two versions differ in, of which one changed all rows."""
    attacker.query("update many set a = repeat(a, 30)")
    with attacker.connect() as connected:
        connected.sendall(
            attacker.head("/v1/databases/{}/diff?from=5&limit=10000", 0, method="GET")
        )
        answer = b""
        while chunk := connected.recv(1 << 20):
            answer = answer or chunk
    return answer[9:12].decode("latin-1")


def _bulk(media_type: str, body: Callable[[], bytes]) -> Callable[[Attacker], str]:
    return lambda attacker: attacker.bulk("few", media_type, body())


def _large_body(attacker: Attacker) -> str:
    rows = ", ".join(f"({n}, 'x')" for n in range(400_000))
    sql = f"insert into few (id, a) values {rows}"
    return attacker.query(sql[:4_000_000].rpartition(",")[0])


def _members(count: int) -> Iterator[bytes]:
    return (b'"k%d":1,' % n for n in range(count))


_LINES: Final = "application/x-ndjson"

SERVICE: Final = (
    Attack("parameters", _parameters),
    Attack("parameters that are times", _times),
    Attack("parameter: numbers with a point", _raw(lambda: b"[%b1]" % (b"1.5," * 1_900_000))),
    Attack("parameter: lists", _raw(lambda: b"[%b1]" % (b"[]," * 2_600_000))),
    Attack("parameter: objects", _raw(lambda: b"[%b1]" % (b'{"a":1},' * 900_000))),
    Attack("parameter: exponents", _raw(lambda: b"[%b1]" % (b"1e130000," * 800_000))),
    Attack("parameter: escapes", _raw(lambda: b'"%b"' % (rb"\u00e9" * 1_300_000))),
    Attack("parameter: digits", _raw(lambda: b"[%b1]" % ((b"9" * 4000 + b",") * 1900))),
    Attack(
        "parameter: a transaction", _raw(lambda: b"[%b1]" % (b"1," * 3_500_000), "/v1/transaction")
    ),
    Attack("statements without end", lambda attacker: attacker.transaction(*[""] * 2_000_000)),
    Attack("any of parameters", _any_of_parameters),
    Attack("nested parameters", _nested_parameters),
    Attack("a thousand definitions", _definitions),
    Attack("a table of many identities", _identities),
    Attack("a type of many labels", _labels),
    Attack("answers that nobody reads", _unread(100_000)),
    Attack("streams that nobody reads", _unread(10_000_000, "/*+ STREAM */")),
    Attack("half requests", _half_requests),
    Attack("a large body", _large_body, changes=True),
    Attack("dry run: update", _dry_run("update many set a = repeat(a, 50)")),
    Attack("dry run: delete", _dry_run("delete from many")),
    Attack("diff of versions", _diff, changes=True),
    Attack(
        "csv: names",
        _bulk("text/csv", lambda: b",".join(b"c%d" % n for n in range(900_000)) + b"\n1\n"),
    ),
    Attack("csv: commas", _bulk("text/csv", lambda: b"id,a\n" + b"," * 7_000_000)),
    Attack("csv: empty texts", _bulk("text/csv", lambda: b"id,a\n" + b'"",' * 2_500_000)),
    Attack("csv: quotes", _bulk("text/csv", lambda: b'id,a\nx,"' + b'""' * 3_500_000 + b'"\n')),
    Attack("csv: lines", _bulk("text/csv", lambda: b'id,a\nx,"' + b"x\n" * 3_500_000 + b'"\n')),
    Attack("lines: numbers", _bulk(_LINES, lambda: b'{"id":[%b1]}\n' % (b"1," * 3_500_000))),
    Attack("lines: points", _bulk(_LINES, lambda: b'{"id":[%b1]}\n' % (b"1.5," * 1_900_000))),
    Attack("lines: objects", _bulk(_LINES, lambda: b'{"id":[%b1]}\n' % (b'{"a":1},' * 900_000))),
    Attack("lines: names", _bulk(_LINES, lambda: b'{%b"a":1}\n' % b"".join(_members(500_000)))),
    Attack("lines: empty objects", _bulk(_LINES, lambda: b"{}\n" * 2_500_000)),
    Attack("lines: digits", _bulk(_LINES, lambda: b'{"id":%b}\n' % (b"9" * 7_000_000))),
    Attack("lines: escapes", _bulk(_LINES, lambda: b'{"id":"%b"}\n' % (rb"\u00e9" * 1_200_000))),
    Attack(
        "array: numbers", _bulk("application/json", lambda: b'[{"id":[%b1]}]' % (b"1," * 3_500_000))
    ),
    Attack(
        "array: names",
        _bulk("application/json", lambda: b'[{%b"a":1}]' % b"".join(_members(500_000))),
    ),
)


def bombs() -> Iterator[Attack]:
    """The statements of `tests.query.bombs`; those that change tables are put right afterwards."""
    statements = {name: f"select {each} from few" for name, each in EXPRESSIONS.items()}
    for name, sql in {**statements, **STATEMENTS}.items():
        reads = sql.lower().startswith(("select", "with"))
        yield _of_statement(f"bomb: {name}", sql, changes=not reads)


def parameters() -> Iterator[Attack]:
    """What is dear for what comes with it."""
    for name, (sql, given) in PARAMETERS.items():
        yield Attack(f"parameter: {name}", partial(_query, sql, given))


def _query(sql: str, given: Callable[[], list[Any]], attacker: Attacker) -> str:
    return attacker.query(sql, given())


def _of_statement(name: str, sql: str, *, changes: bool = False) -> Attack:
    return Attack(name, lambda attacker: attacker.query(sql), changes)


ATTACKS: Final = (*SERVICE, *monsters(), *bombs(), *parameters())

SETUP: Final = (
    "drop table if exists few, many, long, copy",
    *TABLES,
)
"""Makes the tables that attacks use anew, in the attackers' own database."""
