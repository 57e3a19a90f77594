"""An interval keeps its three parts, and compares by what they come to."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given

from qserver.errors import DatetimeFieldOverflow
from qserver.values.interval import ZERO, Interval
from tests.values.strategies import intervals

month, day = Interval(months=1), Interval(days=1)


def test_a_month_is_thirty_days_and_a_day_is_twenty_four_hours_to_comparison() -> None:
    assert month == Interval(days=30) and hash(month) == hash(Interval(days=30))
    assert day == Interval(microseconds=86_400_000_000)
    assert month > Interval(days=29, microseconds=86_399_999_999)
    assert Interval(-1, 30) == ZERO and Interval(-1, 29) < ZERO


def test_equal_intervals_keep_their_own_parts() -> None:
    assert month.parts == (1, 0, 0)
    assert Interval(days=30).parts == (0, 30, 0)


@given(intervals, intervals)
def test_order_is_that_of_the_spans(left: Interval, right: Interval) -> None:
    assert (left < right) == (left.span < right.span) == (right > left)
    assert (left <= right) == (left.span <= right.span) == (right >= left)
    assert (
        (left == right)
        == (left.span == right.span)
        == (left.normal().parts == right.normal().parts)
    )


@given(intervals)
def test_the_normal_form_is_equal_and_stays(value: Interval) -> None:
    assert value.normal() == value
    assert value.normal().normal().parts == value.normal().parts
    assert 0 <= value.normal().days < 30 and 0 <= value.normal().microseconds < 86_400_000_000


@pytest.mark.parametrize("parts", [(2**31, 0, 0), (0, -(2**31) - 1, 0), (0, 0, 2**63)])
def test_a_part_out_of_range_is_an_error(parts: tuple[int, int, int]) -> None:
    with pytest.raises(DatetimeFieldOverflow, match="interval out of range"):
        Interval(*parts)


@given(intervals)
def test_copies_are_the_same(value: Interval) -> None:
    for made in (copy.deepcopy(value), pickle.loads(pickle.dumps(value.normal()))):
        assert made == value
    assert copy.copy(value).parts == value.parts


def test_an_interval_does_not_change() -> None:
    with pytest.raises(AttributeError):
        month.months = 2
    with pytest.raises(AttributeError):
        del month.days


def test_an_interval_compares_to_nothing_else() -> None:
    assert (month == 30) is False
    with pytest.raises(TypeError):
        month < 5  # noqa: B015


def test_a_repr_shows_the_parts() -> None:
    assert repr(Interval(1, -2, 3)) == "Interval(months=1, days=-2, microseconds=3)"
