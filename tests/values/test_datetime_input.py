"""Dates and times are read as PostgreSQL 15 reads them, in the style ISO, MDY and the zone UTC.

Where the docstring of the module names no difference, the tables were compared with a server.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.errors import QserverError
from qserver.values.types import DATE, TEXT, TIME, TIMESTAMP, TIMESTAMPTZ, TIMETZ, SqlType
from tests.values.making import cast

READ = [
    ("2024-01-02", DATE, "2024-01-02"),
    (" 2024-1-2\n", DATE, "2024-01-02"),
    ("2024/01/02", DATE, "2024-01-02"),
    ("2024.01.02", DATE, "2024-01-02"),
    ("20240102", DATE, "2024-01-02"),
    ("240102", DATE, "2024-01-02"),
    ("700102", DATE, "1970-01-02"),
    ("1/2/2024", DATE, "2024-01-02"),
    ("1-2-24", DATE, "2024-01-02"),
    ("1/2/70", DATE, "1970-01-02"),
    ("January 8, 1999", DATE, "1999-01-08"),
    ("8 Jan 1999", DATE, "1999-01-08"),
    ("1999 Jan 8", DATE, "1999-01-08"),
    ("Mon Jan 8 1999", DATE, "1999-01-08"),
    ("1999-Jan-08", DATE, "1999-01-08"),
    ("08-Jan-99", DATE, "1999-01-08"),
    ("Sept-08-1999", DATE, "1999-09-08"),
    ("0999-01-02 AD", DATE, "0999-01-02"),
    ("2024-01-02 03:04:05+02", DATE, "2024-01-02"),
    ("epoch", DATE, "1970-01-01"),
    ("2024-01-02", TIMESTAMP, "2024-01-02 00:00:00"),
    ("2024-01-02 03:04", TIMESTAMP, "2024-01-02 03:04:00"),
    ("2024-01-02T03:04:05.5", TIMESTAMP, "2024-01-02 03:04:05.5"),
    ("2024-01-02 3:4:5", TIMESTAMP, "2024-01-02 03:04:05"),
    ("2024-01-02 03:04:05.6789996", TIMESTAMP, "2024-01-02 03:04:05.679"),
    ("2024-01-02 23:59:59.9999996", TIMESTAMP, "2024-01-03 00:00:00"),
    ("2024-01-02 24:00", TIMESTAMP, "2024-01-03 00:00:00"),
    ("2024-01-02 23:59:60", TIMESTAMP, "2024-01-03 00:00:00"),
    ("2024-01-02 03:04.5", TIMESTAMP, "2024-01-02 00:03:04.5"),
    ("2024-01-02 12:00 AM", TIMESTAMP, "2024-01-02 00:00:00"),
    ("2024-01-02 12:30 pm", TIMESTAMP, "2024-01-02 12:30:00"),
    ("2024-01-02 10:00 PM", TIMESTAMP, "2024-01-02 22:00:00"),
    ("20240102 0304", TIMESTAMP, "2024-01-02 03:04:00"),
    ("20240102T030405", TIMESTAMP, "2024-01-02 03:04:05"),
    ("Wed Jan 8 04:05:06 1999 PST", TIMESTAMP, "1999-01-08 04:05:06"),
    ("2024-01-02 03:04:05+02", TIMESTAMP, "2024-01-02 03:04:05"),
    ("epoch", TIMESTAMPTZ, "1970-01-01 00:00:00+00"),
    ("2024-01-02 03:04:05", TIMESTAMPTZ, "2024-01-02 03:04:05+00"),
    ("2024-01-02T03:04:05Z", TIMESTAMPTZ, "2024-01-02 03:04:05+00"),
    ("2024-01-02 03:04:05+02", TIMESTAMPTZ, "2024-01-02 01:04:05+00"),
    ("2024-01-02 03:04:05 -0330", TIMESTAMPTZ, "2024-01-02 06:34:05+00"),
    ("2024-01-02 03:04:05+02:30:10", TIMESTAMPTZ, "2024-01-02 00:33:55+00"),
    ("2024-01-02 03:04:05+5", TIMESTAMPTZ, "2024-01-01 22:04:05+00"),
    ("2024-01-02 03:04:05 utc", TIMESTAMPTZ, "2024-01-02 03:04:05+00"),
    ("2024-01-02 03:04:05 EST", TIMESTAMPTZ, "2024-01-02 08:04:05+00"),
    ("2024-01-02 03:04:05 CEST", TIMESTAMPTZ, "2024-01-02 01:04:05+00"),
    ("Wed Jan 8 04:05:06 1999 PST", TIMESTAMPTZ, "1999-01-08 12:05:06+00"),
    ("2024-01-02 +02", TIMESTAMPTZ, "2024-01-01 22:00:00+00"),
    ("2020-07-01 12:00 Europe/Berlin", TIMESTAMPTZ, "2020-07-01 10:00:00+00"),
    ("2020-03-29 02:30 europe/berlin", TIMESTAMPTZ, "2020-03-29 01:30:00+00"),
    ("2020-07-01 12:00 America/New_York", TIMESTAMP, "2020-07-01 12:00:00"),
    ("2020-07-01 12:00 FOO5", TIMESTAMPTZ, "2020-07-01 17:00:00+00"),
    ("2020-07-01 12:00 utc-3:30", TIMESTAMPTZ, "2020-07-01 08:30:00+00"),
    ("2020-07-01 GMT+5", TIMESTAMPTZ, "2020-07-01 05:00:00+00"),
    ("2020-07-01 12:00 EST5EDT", TIMESTAMPTZ, "2020-07-01 16:00:00+00"),
    ("2020-07-01 12:00 FOO5", TIMESTAMP, "2020-07-01 12:00:00"),
    ("12:00 FOO+5", TIMETZ, "12:00:00-05"),
    ("12:00 Etc/GMT+5", TIMETZ, "12:00:00-05"),
    ("jan3 2020", DATE, "2020-01-03"),
    ("J2451187", DATE, "1999-01-08"),
    ("J2451187 10:00", TIMESTAMP, "1999-01-08 10:00:00"),
    ("1999.008", DATE, "1999-01-08"),
    ("2024.366", DATE, "2024-12-31"),
    ("04:05", TIME, "04:05:00"),
    ("040506", TIME, "04:05:06"),
    ("0405", TIME, "04:05:00"),
    ("04:05:06.7899999", TIME, "04:05:06.79"),
    ("4:05 PM", TIME, "16:05:00"),
    ("T04:05:06", TIME, "04:05:06"),
    ("allballs", TIME, "00:00:00"),
    ("04:05:06-08:00", TIME, "04:05:06"),
    ("2003-04-12 04:05:06 America/New_York", TIME, "04:05:06"),
    ("10:00 J2451187", TIME, "10:00:00"),
    ("J2451187 10:00", TIME, "10:00:00"),
    ("04:05:06+02", TIMETZ, "04:05:06+02"),
    ("04:05:06", TIMETZ, "04:05:06+00"),
    ("04:05:06 PST", TIMETZ, "04:05:06-08"),
    ("040506+0230", TIMETZ, "04:05:06+02:30"),
    ("2003-04-12 04:05:06 America/New_York", TIMETZ, "04:05:06-04"),
]

SYNTAX = "22007"
FIELD = "22008"

REFUSED = [
    ("FOO5 2020-07-01", TIMESTAMPTZ, SYNTAX),
    ("2020-07-01 12:00 <FOO>5", TIMESTAMPTZ, SYNTAX),
    ("2020-07-01 12:00 FOO5 EST", TIMESTAMPTZ, SYNTAX),
    ("2020-07-01 12:00 dow5", TIMESTAMPTZ, SYNTAX),
    ("12:00 EST5EDT", TIMETZ, SYNTAX),
    ("2020-07-01 12:00 abc-def", TIMESTAMPTZ, "22023"),
    ("10:00pm5", TIME, SYNTAX),
    ("10:00 5", TIMETZ, SYNTAX),
    ("10:00 20240101", TIME, SYNTAX),
    ("2024-01-01 040506", TIME, SYNTAX),
    ("0", DATE, "22008"),
    ("31", DATE, "22008"),
    ("12", DATE, "22007"),
    ("", DATE, SYNTAX),
    ("x", TIMESTAMP, SYNTAX),
    ("2024-01", DATE, SYNTAX),
    ("2024-01-02 03", TIMESTAMP, SYNTAX),
    ("20240102T03", TIMESTAMP, SYNTAX),
    ("2024-01-02 10:00 foo", TIMESTAMPTZ, SYNTAX),
    ("03:04 2024-01-02", TIMESTAMP, SYNTAX),
    ("2024-01-02 03:04 05:06", TIMESTAMP, SYNTAX),
    ("2024-01-02 2024-01-02", DATE, SYNTAX),
    ("Jan Feb 2024", DATE, SYNTAX),
    ("2024-01-02\x00", DATE, SYNTAX),
    ("٢٠٢٤-01-02", DATE, SYNTAX),
    ("1" * 5000, DATE, SYNTAX),
    ("2024-13-01", DATE, FIELD),
    ("13/2/2024", DATE, FIELD),
    ("99-Jan-08", DATE, FIELD),
    ("2024-01-32", DATE, FIELD),
    ("2024-02-30", DATE, FIELD),
    ("2023-02-29", DATE, FIELD),
    ("0000-01-01", DATE, FIELD),
    ("2024-01-02 25:00", TIMESTAMP, FIELD),
    ("2024-01-02 24:01", TIMESTAMP, FIELD),
    ("2024-01-02 10:60", TIMESTAMP, FIELD),
    ("2024-01-02 10:00:61", TIMESTAMP, FIELD),
    ("2024-01-02 13:00 pm", TIMESTAMP, FIELD),
    ("6000000-01-01", DATE, FIELD),
    ("300000-01-01", TIMESTAMP, FIELD),
    ("2024-01-02 10:00 +16", TIMESTAMPTZ, "22009"),
    ("2024-01-02 10:00 Foo/Bar", TIMESTAMPTZ, "22023"),
    ("1999.400", DATE, SYNTAX),
    ("0000.001", DATE, FIELD),
    ("25:00", TIME, FIELD),
    ("1", TIME, SYNTAX),
    ("12", TIME, SYNTAX),
    ("", TIME, SYNTAX),
    ("04.05.06", TIME, SYNTAX),
    ("04:05:06 America/New_York", TIMETZ, SYNTAX),
]

# PostgreSQL reads these; the difference is documented.
NOT_READ_HERE = [
    ("10000-01-01", DATE, FIELD),
    ("infinity", DATE, FIELD),
    ("-infinity", TIMESTAMP, FIELD),
    ("44-03-15 BC", DATE, FIELD),
    ("9999-12-31 24:00", TIMESTAMP, FIELD),
    ("9999-12-31 23:00-02", TIMESTAMPTZ, FIELD),
    ("0001-01-01 00:00+02", TIMESTAMPTZ, FIELD),
    ("2024-01-02 pm", TIMESTAMP, SYNTAX),
    ("J1", DATE, FIELD),
    ("24:00", TIME, FIELD),
    ("now", TIMESTAMP, "0A000"),
    ("today", DATE, "0A000"),
]


@pytest.mark.parametrize(("text", "target", "expected"), READ)
def test_dates_and_times_are_read_in_many_forms(text: str, target: SqlType, expected: str) -> None:
    assert cast(cast(text, TEXT, target), target, TEXT) == expected


@pytest.mark.parametrize(("text", "target", "code"), REFUSED + NOT_READ_HERE)
def test_what_is_no_date_is_refused(text: str, target: SqlType, code: str) -> None:
    with pytest.raises(QserverError) as caught:
        cast(text, TEXT, target)
    assert caught.value.code == code
    assert f'"{text}"' in caught.value.message or code in ("22023", "0A000")


def test_an_impossible_month_suggests_another_order() -> None:
    with pytest.raises(QserverError) as caught:
        cast("13/2/2024", TEXT, DATE)
    assert caught.value.hint == 'Perhaps you need a different "datestyle" setting.'


@given(
    st.one_of(
        st.text(max_size=30),
        st.text("0123456789-:/.+ TZjanpm", max_size=30),
        st.lists(
            st.sampled_from(["2024", "1", "jan", "-", "/", ":", "12", " ", "pm", "+", "bc", "T"]),
            max_size=12,
        ).map("".join),
    )
)
def test_no_text_causes_another_error(text: str) -> None:
    for target in (DATE, TIMESTAMP, TIMESTAMPTZ, TIME, TIMETZ):
        try:
            value = cast(text, TEXT, target)
        except QserverError:
            continue
        assert cast(cast(value, target, TEXT), TEXT, target) == value
