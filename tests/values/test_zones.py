"""Zones come from tzdata, abbreviations and POSIX, and clocks change as in PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.errors import DatetimeFieldOverflow, InvalidParameterValue
from qserver.values.zones import find_zone, offset_text, to_local, to_utc, zone_named

berlin = zone_named("Europe/Berlin")
moments = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


def test_zones_are_found_in_any_case_and_only_once() -> None:
    assert find_zone("europe/BERLIN") is not None
    assert find_zone("Europe/Berlin") is find_zone("Europe/Berlin")
    assert find_zone("Europe/../etc") is None


@pytest.mark.parametrize(
    ("name", "hours"),
    [("EST", -5), ("cest", 2), ("z", 0), ("UTC+3", -3), ("+3", -3), ("-3", 3), ("<x1>-3", 3)],
)
def test_abbreviations_and_posix_names_have_offsets(name: str, hours: int) -> None:
    noon = datetime(2020, 7, 1, 12, tzinfo=UTC)
    assert to_local(noon, zone_named(name)) == datetime(2020, 7, 1, 12 + hours)


@pytest.mark.parametrize("name", ["", "foo", "UTC+", "+24", "3x", "Europe/Foo", "\u0661"])
def test_what_is_no_zone_is_refused(name: str) -> None:
    with pytest.raises(InvalidParameterValue, match="not recognized"):
        zone_named(name)


def test_a_time_that_is_skipped_or_repeated_is_standard_time() -> None:
    assert to_utc(datetime(2020, 3, 29, 2, 30), berlin) == datetime(2020, 3, 29, 1, 30, tzinfo=UTC)
    assert to_utc(datetime(2020, 10, 25, 2, 30), berlin) == datetime(
        2020, 10, 25, 1, 30, tzinfo=UTC
    )


@given(moments)
def test_local_time_and_back(moment: datetime) -> None:
    back = to_utc(to_local(moment, berlin), berlin)
    assert back in (moment, moment + timedelta(hours=1), moment + timedelta(hours=2))
    assert to_utc(to_local(back, berlin), berlin) == back


def test_the_ends_of_the_calendar_are_errors() -> None:
    with pytest.raises(DatetimeFieldOverflow):
        to_utc(datetime(1, 1, 1), berlin)
    with pytest.raises(DatetimeFieldOverflow):
        to_local(datetime(9999, 12, 31, 23, 30, tzinfo=UTC), timezone(timedelta(hours=1)))


@pytest.mark.long
@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "+00"), (7200, "+02"), (-12600, "-03:30"), (-1, "-00:00:01"), (3661, "+01:01:01")],
)
def test_offsets_print_as_in_postgresql(seconds: int, text: str) -> None:
    assert offset_text(timedelta(seconds=seconds)) == text
