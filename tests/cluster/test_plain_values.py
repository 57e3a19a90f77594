"""Plain values come back equal, and nothing else is taken."""

from __future__ import annotations

from collections import OrderedDict
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.cluster.plain_values import packed, unpacked

zones = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(1 << 200), 1 << 200)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.uuids()
    | st.datetimes()
    | st.datetimes(timezones=zones)
    | st.dates()
    | st.times()
    | st.timedeltas()
)
keys = st.text() | st.integers(-(1 << 63), (1 << 64) - 1)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(keys, inner, max_size=5),
)


def there_and_back(value: object) -> object:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(packed(value)), ext_hook=unpacked)


@given(values)
def test_a_value_comes_back_equal_and_of_the_same_type(value: object) -> None:
    found = there_and_back(value)
    assert found == value
    assert type(found) is type(value)


@given(st.datetimes(timezones=zones))
def test_a_datetime_with_a_zone_stays_one(value: datetime) -> None:
    found = there_and_back(value)
    assert isinstance(found, datetime)
    assert found == value and found.utcoffset() == value.utcoffset()


@pytest.mark.parametrize("value", [Decimal("-0.00"), Decimal("1E+5"), Decimal("NaN")])
def test_a_decimal_keeps_its_digits(value: Decimal) -> None:
    assert str(there_and_back(value)) == str(value)


def test_a_tuple_comes_back_as_a_list() -> None:
    assert there_and_back((1, (2, b"3"), [None])) == [1, [2, b"3"], [None]]


class Named(msgspec.Struct):
    name: str
    at: date


class Listed(msgspec.Struct, array_like=True):
    name: str
    id: UUID


def test_a_struct_is_a_map_of_its_fields_or_a_list() -> None:
    day, number = date(2024, 2, 29), UUID(int=7)
    assert there_and_back([Named("a", day), Listed("b", number)]) == [
        {"name": "a", "at": day},
        ["b", number],
    ]


@pytest.mark.parametrize("value", [object(), {1, 2}, OrderedDict(), [time], bytearray(b"x")])
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="is not a plain value"):
        packed(value)
