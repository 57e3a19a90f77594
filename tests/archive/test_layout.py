"""What a listing says of generations, and which of them nobody needs."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from qserver.archive.layout import (
    Generation,
    complete,
    file_name,
    generations_in,
    holding,
    manifest_name,
    moment_of,
    new_generation,
    outdated,
    ranges_of,
    segment_name,
    shown,
    stamp,
)
from qserver.archive.objects import Key

DIGEST = "0123456789abcdef" * 4
DAY = 86_400.0


def keys_of(begun: float, begins: float | None, segments: dict[int, float]) -> list[Key]:
    """Those of one generation."""
    name = new_generation(begun, "abcd")
    names = [file_name(name, "control", 0, DIGEST)]
    if begins is not None:
        names.append(manifest_name(name, begins, DIGEST))
    names += [segment_name(name, number, until, DIGEST) for number, until in segments.items()]
    return [Key(each, 10) for each in names]


def test_a_listing_says_from_when_until_when_moments_can_be_restored() -> None:
    keys = [
        *keys_of(100.0, 101.5, {1: 102.0, 2: 103.0}),
        *keys_of(110.0, 102.5, {1: 112.0}),
        *keys_of(120.0, 121.0, {}),
        *keys_of(130.0, None, {}),
        Key("qserver-backup", 60),
        Key("something/else", 1),
    ]
    found = generations_in(keys)
    assert [each.begins for each in complete(found)] == [101.5, 102.5, 121.0]
    assert [each.until for each in complete(found)] == [103.0, 112.0, 121.0]
    assert len(found) == 4 and found[0].size == 40
    assert ranges_of(found) == [(101.5, 112.0)], "the third lacks what came while it was copied"


def test_the_generation_before_is_taken_for_what_the_newest_does_not_have_yet() -> None:
    """Files are copied, then checked. Until the manifest is there the one before gets segments."""
    old = keys_of(100.0, 101.0, {1: 102.0, 2: 110.0})
    new = keys_of(104.0, 105.0, {})

    def taken(keys: list[Key], moment: float) -> float | None:
        found = holding(generations_in(keys), moment)
        return found[0].begins if found else None

    assert taken(old + new, 107.0) == taken(old + new, inf) == 101.0, "a kill came before more"
    assert [taken(old + new, each) for each in (100.9, 104.9, 105.0, 110.1)] == [
        *(None, 101.0, 101.0, None)
    ]
    later = keys_of(120.0, 121.0, {})
    assert taken(old + later, inf) == 101.0, "its files are of several moments"
    assert taken(later, inf) == 121.0 and taken(later, 121.0) is None
    more = keys_of(104.0, 105.0, {1: 111.0})
    assert taken(old + more, 107.0) == taken(old + more, inf) == 105.0
    both = holding(generations_in(old + more), 107.0)
    assert [each.begins for each in both] == [105.0, 101.0], "if the one is damaged"
    lacking = keys_of(104.0, 105.0, {1: 106.0, 3: 112.0})
    assert taken(old + lacking, inf) == 105.0, "what is missing is told, not passed over"
    assert taken(old + lacking, 107.0) == 101.0 and taken(old + lacking, 111.0) is None


def test_what_is_behind_a_missing_segment_does_not_count() -> None:
    (found,) = generations_in(keys_of(100.0, 101.0, {1: 102.0, 2: 103.0, 4: 105.0, 7: 106.0}))
    assert (found.last, found.until, found.missing) == (2, 103.0, [3, 5, 6])


def test_a_generation_is_outdated_when_a_newer_one_has_all_that_is_kept() -> None:
    def left(kept_since: float, *generations: tuple[float, float | None]) -> list[float]:
        keys = [key for begun, begins in generations for key in keys_of(begun, begins, {1: 1e9})]
        found = generations_in(keys)
        gone = [each.name for each in outdated(found, kept_since)]
        return [moment_of(each.name[:20]) for each in found if each.name not in gone]

    days = [(day * DAY, day * DAY + 60) for day in range(1, 6)]
    assert left(0.0, *days) == [day * DAY for day in range(1, 6)]
    assert left(3 * DAY + 59, *days) == [2 * DAY, 3 * DAY, 4 * DAY, 5 * DAY]
    assert left(3 * DAY + 60, *days) == [3 * DAY, 4 * DAY, 5 * DAY]
    assert left(100 * DAY, *days) == [5 * DAY], "the newest that counts is never removed"
    assert left(100 * DAY, (DAY, DAY), (2 * DAY, None)) == [DAY, 2 * DAY], "it may be being made"
    assert left(0.0, (DAY, None), (2 * DAY, 2 * DAY)) == [2 * DAY], "it was not made to its end"
    assert left(100 * DAY, (DAY, None)) == [DAY]


@given(st.integers(0, 4_000_000_000_000))
def test_a_time_in_a_name_is_the_time_to_the_millisecond(thousandths: int) -> None:
    moment = thousandths / 1000
    assert moment_of(stamp(moment)) == moment
    assert shown(moment).replace("-", "").replace(":", "") == stamp(moment)


def test_a_generation_without_segments_ends_where_it_begins() -> None:
    assert Generation("g", 5.0, "manifest").until == 5.0
