"""The index of footprints finds exactly those that contain a key, against a list of them all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from qserver.limits import LIVE_KEYS_MAX, LIVE_RANGES_MAX
from qserver.storage.footprint import Footprint
from qserver.storage.footprint_index import FootprintIndex
from qserver.storage.transaction import ScannedRange
from qserver.values.keys import TOP

TREE = 7
NUMBERS = st.integers(0, 40)
KEYS = st.tuples(NUMBERS) | st.tuples(NUMBERS, NUMBERS)
PREFIXES = KEYS.map(lambda key: ScannedRange(TREE, key, (*key, TOP), None))
INTERVALS = st.builds(
    lambda low, high: ScannedRange(TREE, low, high, None), st.none() | KEYS, st.none() | KEYS
)
FOOTPRINTS = st.tuples(st.sets(KEYS, max_size=4), st.lists(PREFIXES | INTERVALS, max_size=4))


def footprint_of(keys: set[tuple[int, ...]], ranges: list[ScannedRange]) -> Footprint:
    footprint = Footprint()
    for key in keys:
        footprint.add_key(TREE, key)
    for scanned in ranges:
        footprint.add_range(scanned)
    return footprint


@given(
    st.lists(st.tuples(FOOTPRINTS, st.booleans()), max_size=60),
    st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=8),
)
def test_a_key_finds_the_footprints_that_contain_it(
    given: list[tuple[tuple[set[tuple[int, ...]], list[ScannedRange]], bool]],
    looked_up: list[tuple[int, int]],
) -> None:
    index: FootprintIndex[int] = FootprintIndex()
    all_of_them = {}
    for owner, ((keys, ranges), stays) in enumerate(given):
        footprint = footprint_of(keys, ranges)
        index.add(owner, footprint)
        all_of_them[owner] = (footprint, keys, ranges, stays)
    for owner, (footprint, _, _, stays) in all_of_them.items():
        if not stays:
            index.remove(owner, footprint)
    left = {owner: each for owner, each in all_of_them.items() if each[3]}
    for key in looked_up:
        of_tree = index.trees.get(TREE)
        by_key = set() if of_tree is None else of_tree.keys.get(key, set())
        by_range = [] if of_tree is None else [*of_tree.ranges_at(key)]
        assert by_key == {owner for owner, (_, keys, _, _) in left.items() if key in keys}
        expected = [
            (owner, id(scanned))
            for owner, (_, _, ranges, _) in left.items()
            for scanned in ranges
            if key in scanned
        ]
        assert sorted((owner, id(scanned)) for owner, scanned in by_range) == sorted(expected)
    owners = set() if not index.trees else {*index.trees[TREE].owners()}
    assert owners == {owner for owner, (_, keys, ranges, _) in left.items() if keys or ranges}


def test_what_is_removed_leaves_nothing() -> None:
    index: FootprintIndex[int] = FootprintIndex()
    footprint = footprint_of({(1,)}, [ScannedRange(TREE, (1,), (3,), None)])
    index.add(1, footprint)
    index.remove(1, footprint)
    assert index.trees == {}


def test_too_many_keys_or_ranges_are_the_whole_tree() -> None:
    footprint = Footprint()
    for number in range(LIVE_KEYS_MAX):
        footprint.add_key(TREE, (number,))
    assert TREE not in footprint.whole
    footprint.add_key(TREE, (-1,))
    footprint.add_key(TREE, (-2,))
    assert TREE in footprint.whole and footprint.keys == {}
    other = Footprint()
    for number in range(LIVE_RANGES_MAX + 2):
        other.add_range(ScannedRange(TREE, (number,), (number + 1,), None))
    (whole,) = other.ranges[TREE]
    assert (whole.low, whole.high, whole.predicate) == (None, None, None)
