"""Every guard, for every kind of statement, by every way to send it.

A cell is one request; it must end as the documentation says, and change what it says.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from random import Random
from typing import Any, TypeVar

import pytest

from qserver.control.logs import MemoryLogs
from qserver.durability.files import Disk
from tests.sampling import NIGHTLY, SEED
from tests.web.guards import expected
from tests.web.guards.expected import Expected
from tests.web.guards.kinds import CONTROLS, KINDS, Kind
from tests.web.guards.ways import WAYS, Sender, Told, told
from tests.web.served import serving

Thing = TypeVar("Thing")
CELLS_BY_DAY = 30
NAMED_WAYS = ("query", "transaction", "stream", "lines", "live", "get")


@dataclass
class Table:
    """Asks cells, and collects those that are not as expected."""

    sender: Sender
    wrong: list[str] = field(default_factory=list)

    async def cell(
        self,
        kind: Kind,
        way: str,
        wanted: Expected,
        headers: Mapping[str, str] | None = None,
        between: Callable[[], Awaitable[None]] | None = None,
        **fields: Any,
    ) -> Told:
        """Ask; then call `between`, and look whether something has changed."""
        found: Told = await getattr(self.sender, way)(kind.sql, headers or {}, **fields)
        if between is not None:
            await between()
        applied = await self.sender.restored()
        affected = wanted.affected if found.affected < 0 else found.affected  # CSV does not tell
        if kind.draws and wanted.code is None:
            applied = False  # what a sequence has given out may be a version, or may not
        got = Expected(found.status, found.code, applied, affected)
        if got != wanted:
            self.wrong.append(f"{kind.sql!r} by {way} {fields}: {got}, not {wanted}")
        return found

    def end(self) -> None:
        assert self.wrong == [], "\n" + "\n".join(self.wrong)


@asynccontextmanager
async def table(logs: MemoryLogs | None = None) -> AsyncIterator[Table]:
    """A table in a service of its own."""
    async with serving(*([] if logs is None else [logs])) as served:
        async with await served.client() as client:
            sender = Sender(served, client)
            await sender.prepare()
            found = Table(sender)
            yield found
            found.end()


def some(things: Sequence[Thing], count: int, salt: str) -> Sequence[Thing]:
    """All at night, and by day so many, others for each salt."""
    return things if NIGHTLY else Random(f"{SEED} {salt}").sample(things, count)


def cells(guard: str) -> Sequence[tuple[Kind, str]]:
    return some(list(product(KINDS, WAYS)), CELLS_BY_DAY, guard)


async def test_without_a_guard() -> None:
    async with table() as asked:
        for kind, way in cells("without_a_guard"):
            await asked.cell(kind, way, expected.plain(kind, way))


async def test_max_affected() -> None:
    async with table() as asked:
        for kind, way in cells("max_affected"):
            for most in {max(kind.most - 1, 0), kind.most}:
                wanted = expected.with_max_affected(kind, way, most)
                await asked.cell(kind, way, wanted, max_affected=most)


@pytest.mark.parametrize("is_stale", [True, False])
async def test_if_version(is_stale: bool) -> None:
    async with table() as asked:
        for kind, way in cells("if_version"):
            before = await asked.sender.stale()
            version = before if is_stale else asked.sender.base
            wanted = expected.with_if_version(kind, way, is_stale=is_stale)
            found = await asked.cell(kind, way, wanted, if_version=version)
            if found.code == expected.CONFLICT:
                assert found.body["error"]["retryable"] is False
                assert found.body["error"]["conflict"]["table"] == "log"


async def test_a_version_of_the_future() -> None:
    async with table() as asked:
        for kind, way in cells("a_version_of_the_future"):
            version = asked.sender.base + 1
            await asked.cell(kind, way, expected.REFUSED, if_version=version)


async def test_dry_run() -> None:
    async with table() as asked:
        for kind, way in cells("dry_run"):
            found = await asked.cell(kind, way, expected.with_dry_run(kind, way), dry_run=True)
            if found.code is None:
                assert bool(found.body["diff"]) == (kind.changes and kind.has_effect), kind


@pytest.mark.half
@pytest.mark.parametrize("opening", ["read_only", "as_of"])
async def test_transactions_that_only_read(opening: str) -> None:
    async with table() as asked:
        for kind in KINDS:
            options = {opening: True if opening == "read_only" else asked.sender.base}
            await asked.cell(kind, "open", expected.only_reading(kind, "open"), opening=options)


async def test_as_of() -> None:
    async with table() as asked:
        for kind, way in cells("as_of"):
            version = asked.sender.base
            wanted = expected.with_as_of(kind, way)
            found = await asked.cell(kind, way, wanted, as_of=version)
            if found.code is None and found.body is not None:
                assert found.body["version"] == version


@pytest.mark.parametrize(
    "scopes",
    [["data:read"], ["data:write"], ["schema"], ["data:read", "schema"], ["keys", "databases"]],
)
async def test_scopes(scopes: list[str]) -> None:
    async with table() as asked:
        made = await asked.sender.served.admin("POST", "/v1/keys", {"name": "k", "scopes": scopes})
        asked.sender.token = made["key"]
        for kind, way in cells(f"scopes {scopes}"):
            await asked.cell(kind, way, expected.with_scopes(kind, way, scopes))


async def test_idempotency_key() -> None:
    async with table() as asked:
        for number, (kind, way) in enumerate(cells("idempotency_key")):
            headers = {"Idempotency-Key": f"cell-{number}"}
            wanted = expected.with_idempotency_key(kind, way)
            first = await asked.cell(kind, way, wanted, headers)
            if wanted.code is None:
                again = await asked.cell(kind, way, replace(wanted, applied=False), headers)
                assert again.replayed and again.body == first.body, kind


class Disks(MemoryLogs):
    """Logs on a disk that is as full as the test says."""

    free = 1 << 40

    def disk(self) -> Disk | None:
        return Disk(self.free, 1 << 40)


@pytest.mark.half
async def test_an_organization_that_is_full() -> None:
    logs = Disks()
    async with table(logs) as asked:
        space = asked.sender.served.service.plane.space

        async def with_room() -> None:
            logs.free = 1 << 40
            await space.measure()

        for kind, way in cells("an_organization_that_is_full"):
            logs.free = 0
            await space.measure()
            await asked.cell(kind, way, expected.when_full(kind, way), between=with_room)


async def test_statements_that_control_transactions() -> None:
    """A savepoint alone is refused but in an open transaction, all others are everywhere."""
    async with table() as asked:
        for kind, way in product(CONTROLS, WAYS):
            if way in expected.GETS:
                wanted = Expected(405, expected.NO_METHOD)
            elif way == "live":
                wanted = expected.REFUSED
            elif way == "open" and kind.inside == "over":
                wanted = Expected(404, "QS030")  # of the commit behind it
            elif way == "open":
                wanted = Expected(200, None if kind.inside == "ok" else kind.inside)
            else:
                wanted = Expected(200, kind.code)
            await asked.cell(kind, way, wanted)


REFUSED_OPTIONS: dict[str, Any] = {"dry_run": True, "as_of": 1, "sql": "select 1"}


@pytest.mark.long
async def test_statement_keys() -> None:
    """A key runs its statements by all ways; only queries and changes can be such statements."""
    async with table() as asked:
        sender = asked.sender
        admin = sender.token
        for kind in KINDS:
            body = {"name": "k", "statements": {"it": kind.sql}}
            status, answer, _ = await sender.ask("POST", "/v1/keys", body, token=admin)
            can_be = kind.sql.startswith(("select", "values", "table", "with", "insert", "update"))
            can_be = can_be or kind.sql.startswith(("delete", "merge"))
            if status != (201 if can_be else 400):
                asked.wrong.append(f"{kind.sql!r} as a statement of a key: {status}")
            if status != 201:
                continue
            made = json.loads(answer)
            sender.token, sender.name = made["key"], "it"
            for way in some(NAMED_WAYS, 2, kind.sql):
                await asked.cell(kind, way, expected.plain(kind, way))
                most = max(kind.most - 1, 0)
                wanted = expected.with_max_affected(kind, way, most)
                await asked.cell(kind, way, wanted, max_affected=most)
            for option, value in REFUSED_OPTIONS.items():
                fields = {option: value, "statement": "it"}
                status, _, _ = await sender.ask("POST", "/v1/query", fields)
                assert status == 403 and not await sender.restored(), (kind, option)
            sender.name = None
            for way in some(WAYS, 2, kind.sql):  # any SQL, even its own
                found: Told = await getattr(sender, way)(kind.sql, {})
                assert (found.status, found.code) == (403, "QS005"), (kind, way)
            await sender.ask("DELETE", f"/v1/keys/{made['id']}", token=admin)


BULK = b'{"id": 7, "entry": "x"}\n{"id": 8, "entry": "y"}\n'
LINES = {"Content-Type": "application/x-ndjson"}


async def test_rows_in_bulk() -> None:
    """Its guards are scopes, keys, room and Idempotency-Key; it takes no other option."""
    logs = Disks()
    address = "/v1/tables/log/rows"
    async with table(logs) as asked:
        sender, service = asked.sender, asked.sender.served.service

        async def sent(path: str = address, **headers: str) -> Expected:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            found = told(*await sender.ask("POST", path, BULK, {**LINES, **named}))
            return Expected(found.status, found.code, await sender.restored(), found.affected)

        assert await sent() == Expected(200, None, True, 2)
        once = await sent(Idempotency_Key="once")
        assert once == Expected(200, None, True, 2)
        assert await sent(Idempotency_Key="once") == replace(once, applied=False)
        for option in ("max_affected=1", "if_version=0", "dry_run=true", "as_of=1", "live=true"):
            assert await sent(f"{address}?{option}") == expected.REFUSED, option
        assert await sent(X_Transaction="txn_a_b") == expected.REFUSED
        for accept in ("text/event-stream", "text/csv"):
            assert await sent(Accept=accept) == Expected(200, None, True, 2)
        logs.free = 0
        await service.plane.space.measure()
        assert await sent() == Expected(200, expected.FULL)
        logs.free = 1 << 40
        await service.plane.space.measure()
        for scopes in (["data:read"], ["schema"], ["data:write"]):
            body = {"name": "k", "scopes": scopes}
            sender.token = (await sender.served.admin("POST", "/v1/keys", body))["key"]
            may = scopes == ["data:write"]
            assert await sent() == (Expected(200, None, True, 2) if may else expected.IS_FORBIDDEN)
        limited = {"name": "k", "statements": {"add": "insert into log values (7, 'x')"}}
        sender.token = (await sender.served.admin("POST", "/v1/keys", limited))["key"]
        assert await sent() == expected.IS_FORBIDDEN
