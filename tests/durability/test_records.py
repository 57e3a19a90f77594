"""A record of the log says exactly what was written, or it is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from zlib import crc32

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.durability.records import (
    FORMAT,
    FORMAT_CUT,
    Definitions,
    LogRecord,
    decode_record,
    encode_record,
    encode_record_in_pieces,
    writes_of,
)
from qserver.durability.seal import PIECE_BYTES, sealed
from qserver.errors import DataCorrupted
from qserver.storage.catalog import changes_from_plain, changes_to_plain
from qserver.storage.writes import CHANGES_AT_ONCE, Writes
from qserver.values.keys import NAN_KEY, NULL_KEY, Descending
from qserver.values.schema import Column, Table, define_table
from qserver.values.steps import at_once
from qserver.values.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    NUMERIC,
    REAL,
    SMALLINT,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    char,
    numeric,
    varchar,
)
from tests.durability.histories import stored
from tests.steps import taken
from tests.values.making import define_index

TYPES = [
    BOOLEAN,
    SMALLINT,
    INTEGER,
    BIGINT,
    REAL,
    DOUBLE,
    NUMERIC,
    numeric(12, 4),
    TEXT,
    varchar(20),
    char(3),
    DATE,
    TIMESTAMP,
    TIMESTAMPTZ,
]

moments = st.datetimes().map(lambda moment: moment.replace(fold=0))  # SQL has no fold
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.decimals(),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.dates(),
    moments,
    moments.map(lambda moment: moment.replace(tzinfo=UTC)),
)
key_elements = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.dates(),
    st.sampled_from([NULL_KEY, NAN_KEY, Descending(NULL_KEY), Descending(7), Descending("z")]),
)
rows = st.lists(values, max_size=4).map(tuple)
keys = st.lists(key_elements, min_size=1, max_size=3).map(tuple)
tree_writes = st.dictionaries(keys, st.none() | rows, max_size=5)
all_writes = st.dictionaries(st.integers(0, 2**31), tree_writes, max_size=3)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    count = draw(st.integers(1, 4))
    columns = [
        Column(f"c{at}", draw(st.sampled_from(TYPES)), draw(st.booleans())) for at in range(count)
    ]
    key = draw(st.sampled_from([(), ("c0",), tuple(column.name for column in columns)]))
    table = define_table(draw(st.integers(1, 99)), draw(st.sampled_from("tuv")), columns, key)
    for number in range(draw(st.integers(0, 2))):
        descending = draw(st.sampled_from([(), (True,), (False,)]))
        index = define_index(
            100 + number, f"i{number}", table, ["c0"], draw(st.booleans()), descending
        )
        table = table.with_index(index)
    return table


@given(
    version=st.integers(1, 2**62),
    time=st.floats(allow_nan=False),
    trees_used=st.integers(0, 2**31),
    writes=all_writes,
    dropped=st.lists(st.integers(1, 2**31)).map(tuple),
    changes=st.dictionaries(st.sampled_from("tuvw"), st.none() | tables()),
)
def test_a_record_comes_back_as_it_was_written(
    version: int,
    time: float,
    trees_used: int,
    writes: dict[int, dict[Any, Any]],
    dropped: tuple[int, ...],
    changes: dict[str, Table | None],
) -> None:
    data = stored(version, time, trees_used, writes, dropped, changes_to_plain(changes))
    record = decode_record(data)
    assert (record.version, record.time, record.trees_used) == (version, time, trees_used)
    assert record.dropped == dropped
    assert changes_from_plain(record.catalog_changes) == changes
    # By text, because `==` holds 1.0 and 1.00 or 1 and true for equal, and NaN for different.
    assert repr(at_once(writes_of(record))) == repr(writes)


EXAMPLE = stored(
    7,
    1234.5,
    9,
    {3: {(1, "ada"): (1, "ada", Decimal("1.50"), date(2024, 2, 29)), (2, "bob"): None}},
    (4, 5),
    {"gone": None},
)


def test_damage_to_any_single_byte_is_refused() -> None:
    decode_record(EXAMPLE)
    for position, byte in enumerate(EXAMPLE):
        for other in range(256):
            if other != byte:
                damaged = EXAMPLE[:position] + bytes([other]) + EXAMPLE[position + 1 :]
                with pytest.raises(DataCorrupted):
                    decode_record(damaged)


def test_a_record_that_lacks_its_end_is_refused_wherever_it_was_cut() -> None:
    for length in range(len(EXAMPLE)):
        with pytest.raises(DataCorrupted):
            decode_record(EXAMPLE[:length])


def test_an_intact_checksum_over_nonsense_is_refused_all_the_same() -> None:
    for body in (b"", b"\xc1", msgspec.msgpack.encode({"a": 1}), msgspec.msgpack.encode([])):
        with pytest.raises(DataCorrupted, match="cannot be decoded"):
            decode_record(crc32(body).to_bytes(4, "big") + body)


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param([7, 1234.5, 9, [], [], {}], id="of the same shape"),
        pytest.param([7, 1234.5, 9, [], [], {}, "more"], id="longer"),
        pytest.param([{"another": "shape"}], id="of another shape"),
        pytest.param([], id="bare"),
    ],
)
def test_a_record_of_another_release_is_refused_with_a_hint_what_to_do(rest: list[Any]) -> None:
    body = msgspec.msgpack.encode([FORMAT_CUT + 1, *rest])
    with pytest.raises(DataCorrupted) as caught:
        decode_record(crc32(body).to_bytes(4, "big") + body)
    assert str(caught.value) == "a record of the log has format 3, this release knows 2"
    assert caught.value.hint == (
        "The data were written by another release of qserver: use that or a newer one."
    )


def test_entries_that_cannot_be_decoded_are_refused() -> None:
    record = msgspec.structs.replace(decode_record(EXAMPLE), trees=[(3, b"\xc1")])
    with pytest.raises(DataCorrupted):
        at_once(writes_of(record))


def test_points_in_time_keep_their_zone_or_its_absence() -> None:
    moments = (datetime(2024, 2, 29, 12, 30), datetime(2024, 2, 29, 12, 30, tzinfo=UTC))
    record = decode_record(stored(1, 0.0, 0, {1: {(1,): moments}}))
    assert at_once(writes_of(record)) == {1: {(1,): moments}}


def test_a_record_of_many_entries_is_cut_and_read_as_a_whole() -> None:
    writes: Writes = {
        3: {(at,): (at, "x") for at in range(5000)},
        4: {(at,): None for at in range(3)},
    }
    definitions = [Definitions("create table t (a integer)", ["t"])]
    whole = LogRecord(FORMAT, 7, 1.5, 9, [], (4, 5), {"t": None}, ["r1"], definitions)
    record = decode_record(taken(encode_record_in_pieces(whole, writes, {3}))[1])
    assert record.format == FORMAT_CUT
    assert len(record.trees) > 1 + 5000 / CHANGES_AT_ONCE
    assert at_once(writes_of(record)) == writes
    read = msgspec.structs.replace(record, format=FORMAT, trees=[])
    assert msgspec.structs.astuple(read) == msgspec.structs.astuple(whole)


def test_pieces_of_long_rows_have_few_of_them() -> None:
    writes: Writes = {3: {(at,): (at, "x" * 200_000) for at in range(300)}}
    pauses, data = taken(encode_record_in_pieces(LogRecord(FORMAT, 1, 1.5, 9, [], (), {}), writes))
    record = decode_record(data)
    sizes = [len(piece) for _, piece in record.trees]
    assert max(sizes[1:]) < 1.1 * PIECE_BYTES and pauses == 2 * len(sizes)
    assert at_once(writes_of(record)) == writes


def test_a_record_tells_who_wanted_it_and_which_statements_defined() -> None:
    definitions = [Definitions("create table t (a integer)", ["t"])]
    given = LogRecord(FORMAT, 3, 1.5, 2, [], (), {}, ["r1", "r2"], definitions)
    record = decode_record(encode_record(given))
    assert (list(record.requests), list(record.definitions)) == (["r1", "r2"], definitions)


def test_a_record_of_an_earlier_release_tells_neither() -> None:
    data = sealed(msgspec.msgpack.encode([1, 3, 1.5, 2, [], [], {}]))
    record = decode_record(data)
    assert (record.version, list(record.requests), list(record.definitions)) == (3, [], [])
