"""TIMETZ: the moment and the zone are the value."""

from datetime import UTC, time, timedelta, timezone

from qserver.values.admission import admitter
from qserver.values.keys import NULL_KEY
from qserver.values.types import TIMETZ
from qserver.values.zoned_time import ZonedTime, in_zone

EAST = timezone(timedelta(hours=2))
NOON_IN_THE_EAST = ZonedTime(12, tzinfo=EAST)
THE_SAME_MOMENT = ZonedTime(10, tzinfo=UTC)


def test_the_same_moment_in_two_zones_is_two_values() -> None:
    assert NOON_IN_THE_EAST != THE_SAME_MOMENT
    assert len({NOON_IN_THE_EAST, THE_SAME_MOMENT, ZonedTime(10, tzinfo=UTC)}) == 2


def test_times_sort_by_moment_and_then_the_zone_in_the_east_comes_first() -> None:
    before, after = ZonedTime(11, 59, tzinfo=EAST), ZonedTime(10, 1, tzinfo=UTC)
    assert sorted([after, THE_SAME_MOMENT, NOON_IN_THE_EAST, before]) == [
        *(before, NOON_IN_THE_EAST, THE_SAME_MOMENT, after)
    ]
    assert NOON_IN_THE_EAST <= THE_SAME_MOMENT and after >= THE_SAME_MOMENT > NOON_IN_THE_EAST


def test_null_is_above_every_time() -> None:
    assert NOON_IN_THE_EAST < NULL_KEY and not NOON_IN_THE_EAST > NULL_KEY


def test_a_time_of_python_with_a_zone_is_admitted_as_one() -> None:
    admitted = admitter(TIMETZ)(time(12, tzinfo=EAST, fold=1))
    assert type(admitted) is ZonedTime and admitted == NOON_IN_THE_EAST and not admitted.fold


def test_the_zone_can_be_put_on_and_taken_away() -> None:
    assert in_zone(time(1, 2, 3, 4), UTC) == ZonedTime(1, 2, 3, 4, UTC)
    assert type(NOON_IN_THE_EAST.without_zone()) is time
    assert NOON_IN_THE_EAST.without_zone() == time(12)
