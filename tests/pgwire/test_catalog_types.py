"""Types of catalogs over the wire: their oids are PostgreSQL's, and oids are four bytes."""

from __future__ import annotations

import psycopg
import pytest

from qserver.errors import InvalidTextRepresentation
from qserver.pgwire.binary_format import binary_reader, binary_writer
from qserver.pgwire.types import OIDS, oid_of
from qserver.query.catalog.data import recorded_by, relations
from qserver.query.catalog.relations import column_type
from qserver.values.casts import cast_function
from qserver.values.object_names import ObjectName
from qserver.values.type_names import TYPES_BY_NAME
from qserver.values.types import (
    ANYARRAY,
    INT2VECTOR,
    INTEGER,
    OID,
    REGCLASS,
    TEXT,
    Kind,
    SqlType,
    array_of,
)
from tests.pgwire.serving import in_thread, serving
from tests.pgwire.wire import SYNC, Wire, describe, parse


def test_every_type_has_the_oid_that_the_catalog_tells() -> None:
    for name, sql_type in TYPES_BY_NAME.items():
        for row in recorded_by("pg_type", "typname").get(name, ()):
            assert oid_of(sql_type) == row[0], name


def test_an_oid_and_a_regclass_are_four_bytes_without_a_sign() -> None:
    assert binary_writer(OID)(4_000_000_000) == b"\xee\x6b\x28\x00"
    assert binary_reader(OID)(b"\xee\x6b\x28\x00") == 4_000_000_000
    assert binary_writer(REGCLASS)(ObjectName(16384, "t")) == b"\0\0\x40\0"


def test_each_column_of_a_catalog_is_announced_as_postgresql_announces_it() -> None:
    for data in relations().values():
        for name, kind, *_ in data.columns:
            known = recorded_by("pg_type", "typname")[kind][0][0]
            assert oid_of(column_type(kind)) == known, (data.name, name, kind)


async def test_the_schema_is_a_name_and_a_place_in_the_log_is_eight_bytes() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        described = parse("select current_schema, current_schemas(true)") + describe("S") + SYNC
        got = await wire.ask(described)
        assert [b"\0\0\0\x13" in got[2].body, b"\0\0\x03\xeb" in got[2].body] == [True, True]
    write = binary_writer(SqlType(Kind.PG_LSN))
    assert write(cast_function(TEXT, SqlType(Kind.PG_LSN))("16/b374d848")) == bytes.fromhex(
        "00000016b374d848"
    )
    with pytest.raises(InvalidTextRepresentation):
        cast_function(TEXT, SqlType(Kind.PG_LSN))("xyz")


def test_an_array_of_any_type_is_sent_as_one_of_its_items() -> None:
    assert binary_writer(ANYARRAY)((1, None)) == binary_writer(array_of(INTEGER))((1, None))
    assert binary_reader(array_of(TEXT))(binary_writer(ANYARRAY)(("a",))) == ("a",)


def test_a_vector_counts_from_0() -> None:
    written = binary_writer(INT2VECTOR)((1, 2))
    assert written[12:20] == b"\0\0\0\x02\0\0\0\0"
    assert OIDS[Kind.SMALLINT][0].to_bytes(4, "big") == written[8:12]


def _ask_everything(url: str) -> int:
    count = 0
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create table t (id integer generated always as identity, a text[])")
        for schema, name in relations():
            if schema in ("pg_catalog", "information_schema"):
                for binary in (False, True):
                    with connection.cursor(binary=binary) as cursor:
                        cursor.execute(f"select * from {schema}.{name} limit 3".encode())
                        count += 1
    return count


@pytest.mark.long
async def test_every_column_of_every_catalog_can_be_sent_as_text_and_in_binary() -> None:
    async with serving() as served:
        assert await in_thread(_ask_everything, served.url) > 300
