"""Values of all types, in text and binary, out and in: the same bytes as a real PostgreSQL's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.pq import ExecStatus

from qserver.errors import QserverError
from qserver.pgwire.binary_format import binary_reader, binary_writer
from qserver.pgwire.types import OIDS, oid_of, type_of_oid
from qserver.values.types import OPAQUE_KINDS, REG_KINDS, Kind, SqlType, array_of
from tests.differential.engines import NoOracle, started_postgres
from tests.pgwire.serving import in_thread, serving

VALUES: dict[str, tuple[str, ...]] = {
    "boolean": ("true", "false"),
    "smallint": ("0", "-32768", "32767"),
    "integer": ("0", "-2147483648", "2147483647"),
    "bigint": ("0", "-9223372036854775808", "9223372036854775807"),
    "real": ("0", "1.5", "-3.4e38", "1e-45", "NaN", "Infinity", "-Infinity"),
    "double precision": ("0", "-0", "0.1", "1e308", "5e-324", "NaN", "Infinity"),
    "numeric": (
        *("0", "1", "-1", "0.00", "12345678901234567890.123456789", "1e20", "1e-20", "9999.9999"),
        *("10000", "0.0001", "-0.5", "100.00", "NaN", "Infinity", "-Infinity", "1000000000000"),
    ),
    "numeric(10,3)": ("1", "-12.3456", "0"),
    "text": ("", "a", "héllo ☃ 𝄞", "it''s\\"),
    "varchar(5)": ("abc", ""),
    "char(4)": ("ab", "abcd"),
    "date": ("2000-01-01", "1999-12-31", "0001-01-01", "9999-12-31"),
    "timestamp": ("2000-01-01 00:00:00", "1999-12-31 23:59:59.999999", "0001-01-01 00:00:00"),
    "timestamptz": ("2024-02-29 12:34:56.789+02", "1970-01-01 00:00:00+00"),
    "time": ("00:00:00", "23:59:59.999999"),
    "timetz": ("12:34:56+05:30", "00:00:00.5-08"),
    "interval": ("0", "1 year 2 mons -3 days 04:05:06.789", "-1 mons", "178000000 years"),
    "tid": ("(0,0)", "(0,10)", "(4294967295,65535)"),
    "tid[]": ('{"(0,1)",NULL}',),
    "uuid": ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",),
    "bytea": ("\\x", "\\x00ff10", "abc"),
    "json": ('{"a" : [1, null]}', "1"),
    "jsonb": ('{"b": 1, "a": [true, "x"]}', "null"),
    "jsonpath": ("$.a[*]?(@.b == 1)", "strict $"),
    "jsonpath[]": ("{$.a,NULL}",),
    "int[]": ("{}", "{1,NULL,3}", "{{1,2},{3,4}}", "{{{1}}}"),
    "text[]": ('{a,"b c",NULL,""}', '{"a\\"b",NULL}'),
    "numeric[]": ("{1.5,NULL}",),
    "timestamptz[]": ('{"2024-01-01 00:00:00+00"}',),
    "boolean[]": ("{t,f}",),
    "uuid[]": ("{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",),
    "jsonb[]": ('{"{\\"a\\": 1}"}',),
    "bytea[]": ('{"\\\\x00ff"}',),
    "date[]": ("{2000-01-01,NULL}",),
    "bigint[]": ("{-1,9223372036854775807}",),
    "double precision[]": ("{0.1,NaN}",),
    "varchar[]": ("{a,b}",),
    "interval[]": ('{"1 day"}',),
}
CASES = [(name, text) for name, texts in VALUES.items() for text in (*texts, None)]


@pytest.fixture(scope="module")
def oracle() -> Iterator[str]:
    try:
        with started_postgres() as server:
            yield server.get_uri()
    except NoOracle as error:
        pytest.skip(f"there is no PostgreSQL package for this platform: {error}")


Answer = tuple[int, int, bytes | None, bytes | None, bytes | None]


def answers(url: str, sent: dict[tuple[str, str | None], bytes | None] | None) -> list[Answer]:
    """For each case: oid and modifier, text and binary, and the text of the binary as parameter."""
    found: list[Answer] = []
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set time zone 'UTC'")
        pgconn = connection.pgconn
        for name, text in CASES:
            literal = "NULL" if text is None else f"'{text}'"
            values: list[Any] = []
            oid = 0
            for form in (0, 1):
                result = pgconn.exec_params(
                    f"select cast({literal} as {name})".encode(), [], result_format=form
                )
                assert result.status == ExecStatus.TUPLES_OK, (name, text, result.error_message)
                values.append(result.get_value(0, 0))
                oid = result.ftype(0)
            back = values[1] if sent is None else sent[name, text]
            result = pgconn.exec_params(b"select $1", [back], [oid], [1], 0)
            assert result.status == ExecStatus.TUPLES_OK, (name, text, result.error_message)
            again = result.get_value(0, 0)
            if name.startswith("char") and again is not None:
                again = again.rstrip()  # a character without a length keeps no blanks here
            found.append((oid, result.fmod(0), *values, again))
    return found


@pytest.mark.long
async def test_values_are_those_of_postgresql(oracle: str) -> None:
    expected = await in_thread(answers, oracle, None)
    sent = {case: answer[3] for case, answer in zip(CASES, expected, strict=True)}
    async with serving() as served:
        got = await in_thread(answers, served.url, sent)
    wrong = [
        (case, mine, theirs)
        for case, mine, theirs in zip(CASES, got, expected, strict=True)
        if mine != theirs
    ]
    assert wrong == []


def test_oids_are_told_apart() -> None:
    pseudo = Kind.UNKNOWN, Kind.VOID, Kind.RECORD, Kind.ANYARRAY
    for kind in OIDS:
        if kind in (Kind.ENUM, *pseudo, *REG_KINDS, *OPAQUE_KINDS):
            continue
        for each in (SqlType(kind), array_of(SqlType(kind))):
            assert type_of_oid(oid_of(each)) == each
    assert type_of_oid(0) is None and type_of_oid(705) is None


@given(st.sampled_from(list(OIDS)), st.booleans(), st.binary(max_size=40))
def test_no_bytes_raise_anything_but_an_error_of_ours(
    kind: Kind, is_array: bool, data: bytes
) -> None:
    if kind is Kind.RECORD:
        return
    sql_type = array_of(SqlType(kind)) if is_array else SqlType(kind)
    try:
        binary_reader(sql_type)(data)
    except QserverError:
        pass


@pytest.mark.long
@given(st.decimals() | st.decimals(allow_nan=False, allow_infinity=False, places=5))
def test_numerics_come_back(value: Any) -> None:
    if value.is_snan() or (value.is_finite() and abs(value.adjusted()) > 5000):
        return
    numeric = SqlType(Kind.NUMERIC)
    back = binary_reader(numeric)(binary_writer(numeric)(value))
    assert (back.is_nan() and value.is_nan()) or back == value
