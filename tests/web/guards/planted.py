"""A database in which one key has planted secrets, and the keys of others who look for them.

The victim has connections of PostgreSQL (one in a transaction, one that sleeps in a statement) and
an open transaction over HTTP. It puts secrets wherever a client can put words: literals, comments,
parameters, settings, names of cursors, statements and keys.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import trio

from qserver.config import load
from qserver.web.service.postgres import bind_postgres, new_postgres
from tests.http1.serving import Answer, Client
from tests.pgwire.wire import SYNC, Message, Wire, bind, frame, parse, query, rows, startup, text
from tests.web.served import ADMIN, Served, message, serving

VALUE: Final = "s3cr3t"
"""In what no other may ever read."""
NAME: Final = "n4med"
"""In names, which the normal form of a statement may show to keys of its database."""
SLEEP: Final = f"select pg_sleep(3000), '{VALUE}'"
FIELDS: Final = {"app.token": VALUE, "application_name": VALUE, "search_path": f"public, {NAME}"}
OF_THE_WIRE: Final = (
    f"set app.token to {VALUE}",
    f"prepare {NAME}_p as select '{VALUE}'",
    f"listen {NAME}",
    "select pg_advisory_lock(77)",
    "begin",
    f"declare {NAME}_c cursor with hold for select '{VALUE}' /* a /* {VALUE} */ {VALUE} */",
    f"select '{VALUE}' -- {VALUE}",
)
OVER_HTTP: Final = (
    f"set app.token to {VALUE}",
    f"prepare {NAME}_h as select '{VALUE}'",
    f"declare {NAME}_d cursor for select '{VALUE}'",
    f"select '{VALUE}' /* {VALUE} */",
)
CALLERS: Final = ("reads", "writes", "narrowed", "sibling", "aside", "acme")
"""Keys and sessions that may run SQL: two of the same database; sessions of both the first and
the victim's own key; one that is limited to another database; one of another organization."""


@dataclass
class Planted:
    served: Served
    client: Client
    tokens: dict[str, str]
    key_id: str
    """The victim's."""
    port: int
    wires: list[Wire]
    held: str
    """Its open transaction."""

    async def ask(self, caller: str, method: str, path: str, body: Any = None) -> Answer:
        return await self.client.ask(message(method, path, body, self.tokens[caller]), method)

    async def sql(self, caller: str, sql: str, **fields: Any) -> Any:
        return json.loads((await self.ask(caller, "POST", "/v1/query", {"sql": sql} | fields)).body)

    @asynccontextmanager
    async def wire(self, caller: str) -> AsyncIterator[Wire]:
        named = "aside" if caller == "aside" else "main"
        hello = startup(user="me", database=named)
        async with await enter(self.port, hello, self.tokens[caller]) as wire:
            yield wire

    async def check_unharmed(self) -> None:
        """The victim can go on, and has what it had."""
        idle, sleeper = self.wires
        told = [each.kind for each in await idle.run(f"fetch all from {NAME}_c")]
        assert told[-3:] == ["D", "C", "Z"], told
        shown = await idle.run("show app.token")
        assert [[*row] for row in rows(shown)] == [[VALUE.encode()]], shown
        await idle.run(f"move backward all in {NAME}_c")
        activity = "select query from pg_stat_activity where state = 'active' and pid = $1"
        found = await self.sql("victim", activity, params=[sleeper.number])
        assert [each["query"] for each in found["rows"]] == [SLEEP], found
        answer = await self.sql("victim", "show app.token", transaction=self.held)
        assert answer["rows"] == [{"app.token": VALUE}]


async def enter(port: int, hello: bytes, token: str) -> Wire:
    return await Wire.enter(port, hello, frame("p", text(token)))


@asynccontextmanager
async def planted() -> AsyncIterator[Planted]:
    settings = load({"QSERVER_DATA_DIR": ":memory:", "QSERVER_PG_PORT": "0"})
    long = {"QSERVER_STATEMENT_TIMEOUT": "1h"}  # the sleep goes on, however slow the machine is
    async with serving(**long) as served, trio.open_nursery() as nursery:
        stop = trio.Event()
        listener = new_postgres(served.service, settings, None)
        addresses = await nursery.start(listener.run, bind_postgres(settings), stop)
        port = addresses[0][1]
        tokens, key_id = await _tokens(served)
        async with (
            await served.client() as client,
            await enter(port, _hello(), tokens["victim"]) as idle,
            await enter(port, _hello(), tokens["victim"]) as sleeper,
        ):
            found = Planted(served, client, tokens, key_id, port, [idle, sleeper], "")
            await _plant(found)
            yield found
            for wire in (idle, sleeper):
                await found.sql("admin", f"select pg_terminate_backend({wire.number})")
        stop.set()


def _hello() -> bytes:
    return startup(user="me", database="main", application_name=VALUE)


async def _tokens(served: Served) -> tuple[dict[str, str], str]:
    await served.admin("POST", "/v1/databases", {"name": "aside"})
    tokens, both = {"admin": ADMIN}, ["data:read", "data:write", "schema"]
    wanted: dict[str, dict[str, Any]] = {
        "victim": {"scopes": both},
        "reads": {"scopes": ["data:read"]},
        "writes": {"scopes": both},
        "aside": {"scopes": both, "databases": ["aside"]},
        "named": {"statements": {NAME: f"select '{VALUE}' as found, :who as who"}},
    }
    key_id = ""
    for name, fields in wanted.items():
        made = await served.admin("POST", "/v1/keys", {"name": f"{name} {VALUE}", **fields})
        tokens[name] = made["key"]
        key_id = made["id"] if name == "victim" else key_id
    for name, parent in (("narrowed", "reads"), ("sibling", "victim"), ("browser", "named")):
        body = {"bind": {"who": VALUE}} if name == "browser" else {}
        async with await served.client() as client:
            sent = message("POST", "/v1/session", body, tokens[parent])
            tokens[name] = json.loads((await client.ask(sent)).body)["session"]["token"]
    made = await served.admin("POST", "/v1/signup", {"organization": "acme"})
    return tokens | {"acme": made["key"]}, key_id


async def _plant(found: Planted) -> None:
    async def said(answer: Any) -> None:
        assert answer["success"], answer

    idle, sleeper = found.wires
    for sql in OF_THE_WIRE:
        _succeeded(await idle.run(sql))
    asked = parse(f"select $1, '{VALUE}'", f"{NAME}_e", [25]) + bind([VALUE.encode()], f"{NAME}_e")
    await idle.send(asked + SYNC)
    _succeeded(await idle.until_ready())
    opened = await found.ask("victim", "POST", "/v1/transaction/open", {"settings": FIELDS})
    found.held = json.loads(opened.body)["transaction"]["id"]
    for sql in OVER_HTTP:
        await said(await found.sql("victim", sql, transaction=found.held))
    await said(await found.sql("victim", "create table t (id int primary key, n text)"))
    filled = "insert into t values ($1, $2)"
    await said(await found.sql("victim", filled, params=[1, "plain"], settings=FIELDS))
    await said(await found.sql("victim", f"select n, '{VALUE}' from t where n <> '{VALUE}'"))
    await sleeper.send(query(SLEEP))
    seen = "select 1 from pg_stat_activity where state = 'active' and pid = $1"
    while not (await found.sql("victim", seen, params=[sleeper.number]))["rows"]:
        await trio.lowlevel.checkpoint()


def _succeeded(answer: list[Message]) -> None:
    assert "E" not in [each.kind for each in answer], answer
