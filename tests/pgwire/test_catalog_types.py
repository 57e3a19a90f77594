"""Types of catalogs over the wire: their oids are PostgreSQL's, and oids are four bytes."""

from __future__ import annotations

import psycopg
import pytest

from qserver.pgwire.binary_format import binary_reader, binary_writer
from qserver.pgwire.types import OIDS, oid_of
from qserver.query.catalog.data import recorded_by, relations
from qserver.values.object_names import ObjectName
from qserver.values.type_names import TYPES_BY_NAME
from qserver.values.types import INT2VECTOR, OID, REGCLASS, Kind
from tests.pgwire.serving import in_thread, serving


def test_every_type_has_the_oid_that_the_catalog_tells() -> None:
    for name, sql_type in TYPES_BY_NAME.items():
        kind = (sql_type.element or sql_type).kind
        if kind in OIDS:
            assert oid_of(sql_type) == recorded_by("pg_type", "typname")[name][0][0], name


def test_an_oid_and_a_regclass_are_four_bytes_without_a_sign() -> None:
    assert binary_writer(OID)(4_000_000_000) == b"\xee\x6b\x28\x00"
    assert binary_reader(OID)(b"\xee\x6b\x28\x00") == 4_000_000_000
    assert binary_writer(REGCLASS)(ObjectName(16384, "t")) == b"\0\0\x40\0"


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
