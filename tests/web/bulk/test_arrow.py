"""Answers in Apache Arrow, read from a real server by the client: every type, and failures."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from decimal import Decimal
from signal import SIGTERM

import pyarrow
import pytest

from qserver.client import Client, ConnectionLost, TrioClient
from qserver.errors import DivisionByZero, InvalidRequest, NotAcceptable, UndefinedTable
from tests.cli.real_server import KEY, ROOT, real_server
from tests.forked import Forked


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with real_server() as url, Client(url, KEY) as client:
        client.transaction(
            [
                "CREATE TABLE many (id INTEGER PRIMARY KEY, name TEXT, price NUMERIC(8,2))",
                "INSERT INTO many SELECT i, 'n' || i, i / 4.0 FROM generate_series(1, 5000) i",
            ]
        )
        yield client


_FIRST_BATCH = """
import sys, trio
from qserver.values.types import INTEGER
from qserver.web.bulk.arrow_rows import ArrowEncoder, require_arrow
trio.run(require_arrow)
loaded = set(sys.modules)
ArrowEncoder(("a",), (INTEGER,)).batch([(1,)])
print(sorted(set(sys.modules) - loaded))
"""


@pytest.mark.long
def test_everything_is_imported_beside_the_loop_before_the_first_batch() -> None:
    """pyarrow imports pandas, if that is there, when it makes its first array."""
    done = subprocess.run([sys.executable, "-c", _FIRST_BATCH], capture_output=True, cwd=ROOT)
    assert (done.stdout, done.stderr) == (b"[]\n", b"")


def one(client: Client, expression: str) -> tuple[str, object]:
    """The Arrow type of an expression, and its value; a NULL below it stays one."""
    found = client.arrow(
        f"SELECT s.x FROM generate_series(1, 2) g(i) LEFT JOIN (SELECT {expression} AS x, 1 AS i) s"
        " ON s.i = g.i ORDER BY g.i"
    )
    value, nothing = found.table.column("x").to_pylist()
    assert nothing is None
    return str(found.table.schema.field("x").type), value


@pytest.mark.parametrize(
    ("expression", "arrow", "value"),
    [
        ("true", "bool", True),
        ("'-32768'::smallint", "int16", -32768),
        ("2147483647", "int32", 2147483647),
        ("9223372036854775807", "int64", 9223372036854775807),
        ("1.5::real", "float", 1.5),
        ("'Infinity'::double precision", "double", float("inf")),
        ("12345.67::numeric(8,2)", "decimal128(8, 2)", Decimal("12345.67")),
        ("12345.6::numeric(8,2)", "decimal128(8, 2)", Decimal("12345.60")),
        ("7::numeric(50,10)", "decimal256(50, 10)", Decimal("7.0000000000")),
        ("1.10::numeric", "string", "1.10"),
        ("'NaN'::numeric", "string", "NaN"),
        ("repeat('9', 90)::numeric(90)", "string", "9" * 90),
        ("'Grüße'::text", "string", "Grüße"),
        ("'ab'::char(4)", "string", "ab  "),
        ("'ab'::varchar(4)", "string", "ab"),
        ("DATE '2024-02-29'", "date32[day]", date(2024, 2, 29)),
        ("DATE '0001-01-01'", "date32[day]", date(1, 1, 1)),
        ("TIME '12:34:56.789'", "time64[us]", time(12, 34, 56, 789000)),
        ("TIME WITH TIME ZONE '12:00+02'", "string", "12:00:00+02"),
        (
            "TIMESTAMP '2024-02-29 12:34:56.789'",
            "timestamp[us]",
            datetime(2024, 2, 29, 12, 34, 56, 789000),
        ),
        (
            "TIMESTAMPTZ '2024-02-29 12:00+02'",
            "timestamp[us, tz=UTC]",
            datetime(2024, 2, 29, 10, tzinfo=UTC),
        ),
        ("INTERVAL '1 year 2 days 3 seconds'", "string", "P1Y2DT3S"),
        (
            "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid",
            "string",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ),
        ("'\\x00ff'::bytea", "binary", b"\x00\xff"),
        ("'{\"a\": [1, null]}'::jsonb", "string", '{"a": [1, null]}'),
        ("ARRAY[1, NULL, 3]", "list<element: int32>", [1, None, 3]),
        ("ARRAY[]::text[]", "list<element: string>", []),
        ("ARRAY[1.5, NULL]::numeric[]", "list<element: string>", ["1.5", None]),
        ("ARRAY[1.5]::numeric(4,1)[]", "list<element: decimal128(4, 1)>", [Decimal("1.5")]),
        ("ARRAY[DATE '2024-02-29']", "list<element: date32[day]>", [date(2024, 2, 29)]),
        ("ROW(1, 'a b')", "string", '(1,"a b")'),
    ],
)
def test_each_type_has_its_own_in_arrow(
    client: Client, expression: str, arrow: str, value: object
) -> None:
    found, got = one(client, expression)
    assert found.replace("item: ", "element: ") == arrow
    assert got == value


def test_a_result_names_its_types_and_keeps_all_columns(client: Client) -> None:
    found = client.arrow("SELECT 1 AS a, 2.5::numeric(4,1) AS a, now() AS t WHERE $1", [False])
    assert found.columns == ("a", "a_2", "t")
    assert len(found) == 0
    assert found.types == ("integer", "numeric(4,1)", "timestamp with time zone")
    assert list(found.dicts()) == []


def test_rows_of_many_parts_are_whole_and_in_order(client: Client) -> None:
    found = client.arrow("SELECT id, name, price FROM many ORDER BY id")
    assert found.table.column("id").to_pylist() == list(range(1, 5001))
    assert found.table.slice(0, 1).to_pylist() == [
        {"id": 1, "name": "n1", "price": Decimal("0.25")}
    ]
    assert len(found.table.to_batches()) > 1
    some = client.rows_as_arrow("many", columns=["id"], where="id > $1", params=[4998])
    assert some.table.column("id").to_pylist() == [4999, 5000]
    assert len(client.arrow("SELECT id FROM many", max_rows=7)) == 7


@pytest.mark.long
def test_frames_of_pandas_and_polars_are_made_of_it(client: Client) -> None:
    found = client.arrow("SELECT id, name FROM many WHERE id < 3 ORDER BY id")
    frame = found.to_pandas()
    assert list(frame["id"]) == [1, 2] and str(frame["id"].dtype) == "int32"
    assert found.to_polars().rows() == [(1, "n1"), (2, "n2")]
    plain = client.query("SELECT id, price FROM many WHERE id < 3 ORDER BY id")
    assert list(plain.to_pandas()["price"]) == ["0.25", "0.50"]
    assert plain.to_polars().columns == ["id", "price"]


async def test_the_other_flavour_has_it_too(client: Client) -> None:
    async with TrioClient(client.url, KEY) as other:
        found = await other.arrow("SELECT count(*) AS n FROM many")
    assert found.table.to_pylist() == [{"n": 5000}]


def test_errors_are_those_of_the_server(client: Client) -> None:
    with pytest.raises(UndefinedTable):
        client.arrow("SELECT * FROM nowhere")
    with pytest.raises(DivisionByZero):  # the first page is computed before the answer begins
        client.arrow("SELECT 1 / id FROM generate_series(0, 3) g(id)")
    with pytest.raises(UndefinedTable):
        client.rows_as_arrow("nowhere")
    with pytest.raises(InvalidRequest):
        client.arrow("SELECT 1", dry_run=True)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 / (4000 - id) FROM many ORDER BY id",
        "SELECT ARRAY[[1, 2], [3, 4]]",
        "SELECT 'NaN'::numeric(8,2)",
    ],
)
def test_an_answer_that_is_cut_off_is_no_result(client: Client, sql: str) -> None:
    """A later error, several dimensions, and NaN cannot be told inside of the format."""
    with pytest.raises((ConnectionLost, DivisionByZero)):
        client.arrow(sql)


def test_pyarrow_reads_the_plain_answer(client: Client) -> None:
    headers = {"Accept": "application/vnd.apache.arrow.stream"}
    answer = client._http.post("/v1/query", json={"sql": "SELECT 1 AS n"}, headers=headers)
    assert answer.headers["content-type"] == headers["Accept"]
    assert pyarrow.ipc.open_stream(answer.content).read_all().to_pylist() == [{"n": 1}]


def without_pyarrow() -> None:
    sys.modules["pyarrow"] = None  # type: ignore[assignment]


@contextmanager
def server_without_pyarrow() -> Iterator[str]:
    reading, writing = os.pipe()
    environment = {"PATH": os.environ["PATH"], "QSERVER_API_KEY": KEY}
    arguments = ["serve", "--port", "0", "--data", ":memory:"]
    process = Forked(arguments, ROOT, environment, writing, without_pyarrow)
    os.close(writing)
    with os.fdopen(reading) as output:
        found = None
        while found is None:
            line = output.readline()
            assert line, "it has ended"
            found = re.search(r"http://[\d.:]+", line)
        try:
            yield found.group()
        finally:
            process.send_signal(SIGTERM)
            output.read()
            assert process.wait() == 0


def test_without_pyarrow_the_server_says_so_and_changes_nothing() -> None:
    with server_without_pyarrow() as url, Client(url, KEY) as client:
        client.query("CREATE TABLE t (a INTEGER)")
        with pytest.raises(NotAcceptable) as caught:
            client.arrow("INSERT INTO t VALUES (1) RETURNING a")
        assert vars(caught.value)["http_status"] == 406
        assert "qserver[arrow]" in (caught.value.hint or "")
        with pytest.raises(NotAcceptable):
            client.rows_as_arrow("t")
        assert client.query("SELECT count(*) FROM t").rows == [(0,)]
