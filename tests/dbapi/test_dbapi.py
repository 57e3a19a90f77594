"""The rules of PEP 249, one by one."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal

import pytest

from qserver import dbapi
from qserver.dbapi import Connection
from qserver.dbapi.exceptions import class_of
from tests.dbapi.served import KEY, connected
from tests.web.contract.servers import Server

SERVER_ROOMS = ("web", "engine", "storage", "query", "sql", "control", "durability", "pgwire")


def test_the_import_brings_no_part_of_the_server() -> None:
    program = "import sys, qserver.dbapi; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=240
    )
    loaded = {name.split(".")[1] for name in done.stdout.split() if name.startswith("qserver.")}
    assert "client" in loaded
    assert not loaded & set(SERVER_ROOMS)


def test_the_module_has_the_globals_of_the_interface() -> None:
    assert dbapi.apilevel == "2.0"
    assert dbapi.threadsafety == 1
    assert dbapi.paramstyle == "qmark"
    assert all(hasattr(dbapi, name) for name in dbapi.__all__)


def test_the_exceptions_are_in_their_places() -> None:
    assert issubclass(dbapi.Error, Exception)
    assert issubclass(dbapi.Warning, Exception)
    assert issubclass(dbapi.InterfaceError, dbapi.Error)
    for name in ("Data", "Operational", "Integrity", "Internal", "Programming", "NotSupported"):
        each = getattr(dbapi, f"{name}Error")
        assert issubclass(each, dbapi.DatabaseError)
        assert getattr(Connection, f"{name}Error") is each


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("23505", dbapi.IntegrityError),
        ("22012", dbapi.DataError),
        ("42P01", dbapi.ProgrammingError),
        ("0A000", dbapi.NotSupportedError),
        ("25P02", dbapi.InternalError),
        ("40001", dbapi.OperationalError),
        ("57014", dbapi.OperationalError),
        ("08006", dbapi.OperationalError),
        ("08P01", dbapi.ProgrammingError),
        ("QS002", dbapi.OperationalError),
        ("QS005", dbapi.ProgrammingError),
    ],
)
def test_the_code_of_an_error_decides_its_class(code: str, kind: type[Exception]) -> None:
    assert class_of(code) is kind


def test_an_error_has_what_the_server_said(connection: Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    cursor.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(dbapi.IntegrityError, match="Key \\(id\\)=\\(1\\) already exists") as caught:
        cursor.execute("INSERT INTO t VALUES (1)")
    error = caught.value
    assert (error.sqlstate, error.table, error.constraint) == ("23505", "t", "t_pkey")
    assert not error.retryable
    with pytest.raises(dbapi.InternalError) as refused:
        cursor.execute("SELECT 1")
    assert refused.value.sqlstate == "25P02"
    connection.rollback()
    with pytest.raises(dbapi.ProgrammingError) as unknown:
        cursor.execute("SELECT * FROM t")
    assert unknown.value.sqlstate == "42P01"


def test_a_result_is_described(connection: Connection) -> None:
    cursor = connection.cursor()
    assert (cursor.description, cursor.rowcount, cursor.rownumber) == (None, -1, None)
    cursor.execute(
        "SELECT 1 AS n, 1.5::numeric(8, 2) AS d, 'x'::varchar(7) AS v, now()::timestamp(3) AS t,"
        " 'x'::bytea AS b, ARRAY[1] AS a, true AS y, 1::oid AS o, INTERVAL '1' DAY AS i"
    )
    assert cursor.description is not None
    names = [column[0] for column in cursor.description]
    assert names == ["n", "d", "v", "t", "b", "a", "y", "o", "i"]
    codes = dict(zip(names, (column[1] for column in cursor.description), strict=True))
    assert all(codes[name] == dbapi.NUMBER for name in "ndy")
    assert codes["v"] == dbapi.STRING
    assert all(codes[name] == dbapi.DATETIME for name in "ti")
    assert codes["b"] == dbapi.BINARY
    assert codes["o"] == dbapi.ROWID
    assert codes["a"] not in (dbapi.NUMBER, dbapi.STRING)
    assert cursor.description[1][3:6] == (None, 8, 2)
    assert cursor.description[2][3:6] == (7, None, None)
    assert {len(column) for column in cursor.description} == {7}
    cursor.execute("CREATE TABLE t (n INTEGER)")
    assert cursor.description is None


def test_rows_are_fetched_one_some_and_all(connection: Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("SELECT n FROM generate_series(1, 10) n ORDER BY n")
    assert cursor.rowcount == 10
    assert cursor.fetchone() == (1,)
    assert cursor.fetchmany() == [(2,)]
    cursor.arraysize = 3
    assert cursor.fetchmany() == [(3,), (4,), (5,)]
    assert cursor.fetchmany(2) == [(6,), (7,)]
    assert cursor.rownumber == 7
    assert next(cursor) == (8,)
    assert cursor.fetchall() == [(9,), (10,)]
    assert (cursor.fetchone(), cursor.fetchmany(), cursor.fetchall()) == (None, [], [])
    assert list(cursor.execute("SELECT 1")) == [(1,)]
    assert cursor.execute("SELECT 1 WHERE false").fetchall() == []


def test_counts_are_those_of_the_statement(connection: Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE t (n INTEGER)")
    cursor.execute("INSERT INTO t VALUES (1), (2), (3)")
    assert (cursor.rowcount, cursor.lastrowid) == (3, None)
    cursor.execute("UPDATE t SET n = n + 1 WHERE n > 1")
    assert cursor.rowcount == 2
    cursor.execute("DELETE FROM t WHERE n > 100")
    assert cursor.rowcount == 0
    cursor.execute("INSERT INTO t VALUES (7), (8) RETURNING n")
    assert (cursor.rowcount, cursor.fetchall()) == (2, [(7,), (8,)])


@pytest.mark.parametrize(
    ("sql", "params"),
    [
        ("SELECT ?::int + ?::int", [40, 2]),
        ("SELECT $2::int + $1::int", (2, 40)),
        ("SELECT :a::int + :b::int", {"a": 40, "b": 2}),
    ],
)
def test_parameters_are_written_in_three_ways(
    connection: Connection, sql: str, params: object
) -> None:
    assert connection.cursor().execute(sql, params).fetchall() == [(42,)]  # type: ignore[arg-type]


def test_what_makes_no_sense_is_refused(connection: Connection) -> None:
    cursor = connection.cursor()
    with pytest.raises(dbapi.ProgrammingError, match="no rows to fetch"):
        cursor.fetchone()
    with pytest.raises(dbapi.NotSupportedError):
        cursor.callproc("f")
    with pytest.raises(dbapi.ProgrammingError, match="not one text"):
        cursor.execute("SELECT ?", "abc")
    with pytest.raises(dbapi.ProgrammingError):
        cursor.execute("SELECT ?", [])
    with pytest.raises(dbapi.ProgrammingError, match="JSON"):
        cursor.execute("SELECT ?", [object()])
    assert cursor.nextset() is None  # type: ignore[func-returns-value]
    cursor.setinputsizes([1])
    cursor.setoutputsize(1)
    cursor.close()
    cursor.close()
    with pytest.raises(dbapi.InterfaceError):
        cursor.execute("SELECT 1")


def test_a_closed_connection_can_do_nothing(connection: Connection) -> None:
    cursor = connection.cursor()
    connection.close()
    connection.close()
    for use in (connection.cursor, connection.commit, connection.rollback, cursor.fetchone):
        with pytest.raises(dbapi.InterfaceError):
            use()
    with pytest.raises(dbapi.InterfaceError):
        cursor.execute("SELECT 1")


def test_blocks_end_what_they_began(server: Server, database: str) -> None:
    with connected(server, database) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (n INTEGER)")
    assert connection.closed
    with pytest.raises(ZeroDivisionError), connected(server, database) as connection:
        connection.cursor().execute("INSERT INTO t VALUES (1)")
        raise ZeroDivisionError
    with connected(server, database) as connection:
        assert connection.cursor().execute("SELECT count(*) FROM t").fetchall() == [(0,)]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://:k@host/db",
        "qserver://:k@host:99999/db",
        "qserver://:k@host:x/db",
        "qserver://:k@[::1/db",
        "qserver://k@host/db",
        "qserver://:k@host/db/other",
        "host",
    ],
)
def test_a_wrong_url_is_refused_without_the_key(url: str) -> None:
    secret = "svc_k_this_is_secret"
    with pytest.raises(dbapi.InterfaceError) as caught:
        dbapi.connect(url.replace("k@", f"{secret}@"))
    assert secret not in str(caught.value)


def test_a_connection_is_named_by_url_or_by_keywords(server: Server) -> None:
    ways: list[Connection] = [
        dbapi.connect(f"http://:{KEY}@127.0.0.1:{server.port}/main"),
        dbapi.connect(f"qserver+http://me:{KEY}@127.0.0.1:{server.port}"),
        dbapi.connect(host="127.0.0.1", port=server.port, key=KEY, database="main"),
        dbapi.connect(f"qserver://127.0.0.1:{server.port}/other", key=KEY, database="main"),
    ]
    for connection in ways:
        with connection:
            assert connection.cursor().execute("SELECT 1").fetchone() == (1,)
    assert "https://example.com:443" in repr(dbapi.connect("qserver+https://:k@example.com/db"))
    assert "http://[::1]:8000" in repr(dbapi.connect("qserver://:k@[::1]/db"))
    assert "https://h:1" in repr(dbapi.connect(host="h", port=1, https=True))


def test_a_wrong_key_and_a_server_that_is_not_there_are_operational() -> None:
    with dbapi.connect("qserver://:svc_k_none@127.0.0.1:1/main") as nowhere:
        with pytest.raises(dbapi.OperationalError) as caught:
            nowhere.cursor().execute("SELECT 1")
    assert caught.value.sqlstate == "08001"


def test_settings_hold_in_every_statement(server: Server) -> None:
    shown = "SELECT current_setting('TimeZone')"
    url = f"qserver://:{KEY}@127.0.0.1:{server.port}/main?TimeZone=Asia/Tokyo"
    for autocommit in (False, True):
        with dbapi.connect(url, autocommit=autocommit) as connection:
            cursor = connection.cursor()
            for _ in range(2):
                assert cursor.execute(shown).fetchone() == ("Asia/Tokyo",)
                connection.commit()
            connection.rollback()
    with dbapi.connect(url, settings={"TimeZone": "UTC"}) as connection:
        cursor = connection.cursor()
        assert cursor.execute(shown).fetchone() == ("UTC",)
        connection.settings["TimeZone"] = "Asia/Tokyo"
        assert cursor.execute(shown).fetchone() == ("UTC",)
        connection.commit()
        assert cursor.execute(shown).fetchone() == ("Asia/Tokyo",)


def test_numbers_keep_their_digits(connection: Connection) -> None:
    digits = Decimal("12345678901234567890.123456789012345678901234567890")
    cursor = connection.cursor().execute("SELECT ?::numeric, ?::bigint", [digits, 2**63 - 1])
    assert cursor.fetchone() == (digits, 2**63 - 1)
