"""Python's values, there and back, of each type, alone and in arrays; with either flavour."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from qserver import dbapi
from qserver.client import Client, Statement, TrioClient
from qserver.client.python_values import timedelta_of
from qserver.dbapi import Connection
from tests.dbapi.served import KEY
from tests.sampling import examples
from tests.web.contract.servers import Server

ZONES = some.integers(-14 * 3600, 14 * 3600).map(lambda s: timezone(timedelta(seconds=s)))
TEXTS = some.text(some.characters(codec="utf-8", exclude_characters="\0"))
JSON = some.recursive(
    some.none() | some.booleans() | some.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
VALUES: dict[str, some.SearchStrategy[Any]] = {
    "boolean": some.booleans(),
    "smallint": some.integers(-(2**15), 2**15 - 1),
    "bigint": some.integers(-(2**63), 2**63 - 1),
    "numeric": some.decimals(allow_nan=False, places=7) | some.just(Decimal("-Infinity")),
    "double precision": some.floats(allow_nan=False),
    "real": some.integers(-1000, 1000).map(lambda n: n / 8),
    "text": TEXTS,
    "date": some.dates(),
    "timestamp": some.datetimes(),
    "timestamptz": some.datetimes(
        min_value=datetime(1, 1, 3), max_value=datetime(9999, 12, 29), timezones=ZONES
    ),
    "time": some.times(),
    "interval": some.timedeltas(timedelta(days=-100_000), timedelta(days=100_000)),
    "uuid": some.uuids(),
    "bytea": some.binary(),
}
SHORTEST = settings(
    max_examples=examples(24),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@SHORTEST
@given(data=some.data())
def test_values_come_back_as_they_were(connection: Connection, data: some.DataObject) -> None:
    row = {name: data.draw(strategy | some.none()) for name, strategy in VALUES.items()}
    lists = {
        name: data.draw(some.lists(strategy | some.none(), max_size=3))
        for name, strategy in VALUES.items()
    }
    connection.autocommit = True
    casts = [f"?::{name}" for name in row] + [f"?::{name}[]" for name in lists]
    given = [*row.values(), *lists.values()]
    cursor = connection.cursor().execute(f"SELECT {', '.join(casts)}", given)
    found = cursor.fetchone()
    assert found is not None
    assert list(found) == given
    for value, came in zip(given, found, strict=True):
        assert type(came) is type(value)


@SHORTEST
@given(value=some.dictionaries(TEXTS, JSON, max_size=3) | some.lists(JSON, max_size=3))
def test_json_comes_back_as_it_was(connection: Connection, value: Any) -> None:
    connection.autocommit = True
    cursor = connection.cursor().execute("SELECT ?::jsonb, ?::json", [value, value])
    assert cursor.fetchone() == (value, value)


def test_the_types_are_pythons(connection: Connection) -> None:
    cursor = connection.cursor()
    cursor.execute(
        "SELECT 'NaN'::float8, 'NaN'::numeric, '12:30:00+02'::timetz, now(),"
        " ARRAY[[1.5, NULL], [2, 3]], INTERVAL '1 year 2 months 3 days -4.5 seconds'"
    )
    row = cursor.fetchone()
    assert row is not None
    nan, exact, zoned, now, nested, interval = row
    assert nan != nan and isinstance(nan, float)
    assert isinstance(exact, Decimal) and exact.is_nan()
    assert zoned == time(12, 30, tzinfo=timezone(timedelta(hours=2)))
    assert now.tzinfo is UTC
    assert nested == [[Decimal("1.5"), None], [Decimal(2), Decimal(3)]]
    assert interval == timedelta(days=365 + 60 + 3, seconds=-4.5)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("P0D", timedelta()),
        ("PT0S", timedelta()),
        ("P-1Y-2M-3DT-4H-5M-6.07S", -timedelta(days=428, hours=4, minutes=5, seconds=6.07)),
        ("PT-0.000001S", timedelta(microseconds=-1)),
    ],
)
def test_intervals_are_read(text: str, value: timedelta) -> None:
    assert timedelta_of(text) == value


def test_an_interval_that_python_cannot_hold_is_an_error(connection: Connection) -> None:
    with pytest.raises(dbapi.DataError, match="longer than Python's timedelta") as caught:
        connection.cursor().execute("SELECT INTERVAL '1000000000 days' * 2")
    assert caught.value.sqlstate == "22015"


WANTED = (Decimal("1.5"), date(2030, 1, 2), UUID(int=7), b"\0x", [timedelta(hours=1)], {"a": 1.5})
SELECT = (
    "SELECT 1.5, DATE '2030-01-02', '00000000-0000-0000-0000-000000000007'::uuid,"
    " '\\x0078'::bytea, ARRAY[INTERVAL '1' HOUR], '{\"a\": 1.5}'::jsonb"
)


def test_the_client_has_them_on_request(server: Server) -> None:
    with Client(server.url, KEY, values="python") as client:
        assert client.query(SELECT).rows == [WANTED]
        assert client.read(SELECT).rows == [WANTED]
        assert client.transaction([Statement(SELECT)]).results[0].rows == [WANTED]
        assert list(client.stream(SELECT)) == [WANTED]
        with client.begin() as transaction:
            assert transaction.query(SELECT).rows == [WANTED]
        client.query("CREATE TABLE values_of_python (d DATE PRIMARY KEY)")
        with client.live("SELECT d FROM values_of_python") as query:
            client.query("INSERT INTO values_of_python VALUES ('2030-01-02')")
            assert next(iter(query)).inserted == [(date(2030, 1, 2),)]
        assert list(client.rows("values_of_python")) == [(date(2030, 1, 2),)]
        client.query("DROP TABLE values_of_python")
    with Client(server.url, KEY) as client:
        assert client.query("SELECT 1.5, DATE '2030-01-02'").rows == [("1.5", "2030-01-02")]


async def test_the_client_of_trio_has_them_too(server: Server) -> None:
    async with TrioClient(server.url, KEY, values="python") as client:
        assert (await client.query(SELECT)).rows == [WANTED]
        async with client.stream(SELECT) as rows:
            assert [row async for row in rows] == [WANTED]
