"""Nobody reads what another key says to a database, nor ends what it does.

The relations and functions are all that the catalogs have, and the routes all that are declared: a
new one is looked at without being named here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import urlencode

import pytest

from qserver.functions.all_functions import FUNCTIONS, TABLE_FUNCTIONS
from qserver.functions.registry import Function, TableFunction
from qserver.query.catalog.data import relations
from qserver.query.catalog.sources import SOURCES
from qserver.query.definition_texts import SYSTEM_TABLES
from qserver.query.extension_views import EXTENSION_VIEWS
from qserver.values.types import SqlType
from qserver.web.description.catalogue import ROUTES
from qserver.web.route import Route
from tests.pgwire.wire import rows
from tests.sampling import NIGHTLY, drawn, sampled
from tests.web.guards.planted import CALLERS, NAME, VALUE, Planted, planted

SHOW_NAMES: Final = ("pg_stat_statements",)
"""What shows the normal forms of statements, in which names are."""
_RELATIONS: Final = (
    *(f"{schema}.{name}" for schema, name in relations()),
    *(f"qserver_catalog.{each.table.name}" for each in SYSTEM_TABLES),
    *EXTENSION_VIEWS,
)


def _looks_for(*words: str) -> str:
    """A condition that does not have the words itself."""
    parts = (f"position('{word[:3]}' || '{word[3:]}' in t::text)" for word in words)
    return " + ".join(parts) + " > 0"


_LIVE: Final = [f"pg_catalog.{name}" for name, source in SOURCES.items() if source.fixed]
"""Those whose rows stand for a server or a session."""
_BY_DAY: Final = drawn(_RELATIONS, 60, [*_LIVE, *EXTENSION_VIEWS])


def _searches(names: Sequence[str] = _RELATIONS) -> Iterator[str]:
    for name in names:
        words = (VALUE,) if name in SHOW_NAMES else (VALUE, NAME)
        yield f"select '{name}' from {name} as t where {_looks_for(*words)} limit 1"


def _argument(sql_type: SqlType, number: int) -> str:
    """A value of a type: a connection, a setting, or none."""
    match str(sql_type):
        case "integer" | "bigint" | "oid":
            return f"{number}::{sql_type}"
        case "text" | "name":
            return "'app.token'"
        case "boolean":
            return "true"
        case _:
            return f"null::{sql_type}"


def _calls(number: int) -> Iterator[str]:
    """A call of each function that is told who calls, or what the server does, and that does not
    only look at definitions."""
    for name, signatures in [*FUNCTIONS.items(), *TABLE_FUNCTIONS.items()]:
        for each in signatures:
            if isinstance(each, Function | TableFunction) and each.needs_context:
                if isinstance(each, Function) and each.reads_catalog:
                    continue
                given = ", ".join(_argument(kind, number) for kind in each.parameters)
                yield f"select x.* from {name}({given}) as x"


async def _found_by_wire(caller: str, opened: Planted, statements: list[str]) -> list[str]:
    found = []
    async with opened.wire(caller) as wire:
        for sql in statements:
            answer = await wire.run(sql)
            shown = b"".join(cell or b"" for row in rows(answer) for cell in row)
            if _shows(shown, sql) or (shown and "limit 1" in sql):
                found.append(sql)
    return found


async def _found_by_http(caller: str, opened: Planted, statements: list[str]) -> list[str]:
    found = []
    for sql in statements:
        answer = await opened.ask(caller, "POST", "/v1/query", {"sql": sql})
        said = json.loads(answer.body)
        assert said["success"] or said["error"]["code"] != "XX000", (sql, said)
        if _shows(answer.body, sql) or ("limit 1" in sql and said["rows"]):
            found.append(sql)
    return found


def _shows(shown: bytes, sql: str) -> bool:
    has_names = any(name in sql for name in SHOW_NAMES)
    return VALUE.encode() in shown or (NAME.encode() in shown and not has_names)


async def test_what_is_planted_is_seen_by_the_key_itself_and_by_an_administrator() -> None:
    async with planted() as opened:
        searches = list(_searches())
        for caller in ("victim", "admin"):
            found = await _found_by_http(
                caller,
                opened,
                searches[-1:] + [each for each in searches if "pg_stat_activity" in each],
            )
            assert len(found) == 1 and "pg_stat_activity" in found[0]
        own = await opened.sql("victim", "select * from pg_cursors", transaction=opened.held)
        assert f"{NAME}_d" in str(own)
        await opened.check_unharmed()


@pytest.mark.long
@pytest.mark.parametrize("caller", sampled(CALLERS, 2))
async def test_no_relation_of_a_catalog_shows_it_to_others(caller: str) -> None:
    async with planted() as opened:
        searches = list(_searches(_RELATIONS if NIGHTLY else _BY_DAY))
        assert await _found_by_http(caller, opened, searches) == []
        assert await _found_by_wire(caller, opened, searches) == []
        await opened.check_unharmed()


@pytest.mark.parametrize("caller", sampled(CALLERS, 2))
async def test_no_function_shows_it_to_others_or_ends_what_is_done(caller: str) -> None:
    async with planted() as opened:
        before = await _counted(opened)
        for wire in opened.wires:
            calls = list(_calls(wire.number))
            assert await _found_by_http(caller, opened, calls) == []
            assert await _found_by_wire(caller, opened, calls) == []
        await opened.check_unharmed()
        if caller not in ("writes", "sibling"):  # who may change rows may count anew
            assert before <= await _counted(opened)


async def _counted(opened: Planted) -> set[str]:
    found = await opened.sql("victim", "select query from pg_stat_statements", max_rows=1000)
    return {each["query"] for each in found["rows"]}


# --- routes --------------------------------------------------------------------------------------


def _address(route: Route, opened: Planted) -> str:
    path = route.path
    for name, value in (
        ("{database}", "main"),
        ("{key_id}", opened.key_id),
        ("{name}", "t"),
        ("{id}", opened.held),
        ("{organization}", "default"),
    ):
        path = path.replace(name, value)
    given = {"database": "main", "limit": "100", "from": "0", "sql": "copy t to stdout"}
    if route.path == "/v1/query":
        given["sql"] = "select query, application_name from pg_stat_activity"
    named = {each.name: given[each.name] for each in route.queries if each.name in given}
    return f"{path}?{urlencode(named)}" if named else path


@pytest.mark.parametrize("caller", sampled([*CALLERS, "named", "browser"], 3))
async def test_no_route_shows_it_to_others(caller: str) -> None:
    async with planted() as opened:
        for route in ROUTES:
            if route.method != "GET" or route.media == "text/event-stream" or route.anonymous:
                continue
            answer = await opened.ask(caller, "GET", _address(route, opened))
            assert VALUE.encode() not in answer.body, (route.path, answer)
        await opened.check_unharmed()


async def test_only_its_own_key_and_an_administrator_end_a_connection() -> None:
    async with planted() as opened:
        idle, sleeper = opened.wires
        refused: Any = await opened.sql("writes", f"select pg_terminate_backend({idle.number})")
        assert refused["error"]["code"] == "QS005" and "admin" in refused["error"]["hint"]
        await opened.check_unharmed()
        done = await opened.sql("admin", f"select pg_cancel_backend({sleeper.number}) as done")
        assert done["rows"] == [{"done": True}]
        done = await opened.sql("victim", f"select pg_terminate_backend({idle.number}) as done")
        assert done["rows"] == [{"done": True}]
        assert (await idle.until_end())[-1].fields()["C"] == "57P01"
