"""Which node owns which family: one, among those that serve, and only what must moves."""

from __future__ import annotations

from collections import Counter

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from qserver.control.nodes.placement import CONTROL, Placement, chosen, ranked

FAMILIES = [f"family {number}" for number in range(60)]
NUMBERS = st.sets(st.integers(0, 9), min_size=1)


@st.composite
def placements(draw: st.DrawFn) -> Placement:
    serving = sorted(draw(NUMBERS))
    made = Placement(0, serving[0], (serving[0],))
    for number in serving:
        made = made.joined_by(number)
    for family in draw(st.lists(st.sampled_from([*FAMILIES, CONTROL]), max_size=5)):
        made = made.with_moved(family, draw(st.sampled_from(made.serving)))
    return made


def owners(placement: Placement) -> dict[str, int]:
    return {family: placement.owner_of(family) for family in [*FAMILIES, CONTROL]}


@given(placements())
def test_each_family_has_one_owner_that_serves(placement: Placement) -> None:
    assert set(owners(placement).values()) <= set(placement.serving)
    assert placement.owner_of(CONTROL) == placement.leader


@given(placements(), st.data())
def test_only_the_families_of_the_node_that_goes_move(
    placement: Placement, data: st.DataObject
) -> None:
    gone = data.draw(st.sampled_from(placement.serving))
    after = placement.left_by(gone, 11)
    assert gone not in after.serving
    for family, owner in owners(placement).items():
        if owner != gone and family != CONTROL:
            assert after.owner_of(family) == owner
    if placement.leader != gone:
        assert after.leader == placement.leader
    assert after.leader in after.serving
    assert gone in after.known, "it may still have what it had"


@given(placements(), st.integers(0, 12))
def test_who_joins_takes_only_for_itself_and_the_leader_stays(
    placement: Placement, number: int
) -> None:
    after = placement.joined_by(number)
    assert after.version == placement.version + 1
    assert number in after.serving and number in after.known
    assert after.leader == placement.leader
    for family, owner in owners(placement).items():
        assert after.owner_of(family) in (owner, number)


@given(placements(), st.data())
def test_families_return_with_their_node(placement: Placement, data: st.DataObject) -> None:
    gone = data.draw(st.sampled_from(placement.serving))
    back = placement.left_by(gone, 11).joined_by(gone)
    if 11 not in back.serving:
        for family in FAMILIES:
            assert back.owner_of(family) == placement.owner_of(family)


@given(placements(), st.sampled_from([*FAMILIES, CONTROL]), st.data())
def test_a_family_that_is_moved_is_there_and_no_other_moves(
    placement: Placement, family: str, data: st.DataObject
) -> None:
    to = data.draw(st.sampled_from(placement.serving))
    after = placement.with_moved(family, to)
    assert after.version == placement.version + 1
    assert owners(after) == owners(placement) | {family: to}
    assert CONTROL not in after.moved


def test_what_was_moved_to_where_it_is_chosen_is_not_remembered() -> None:
    placement = Placement(3, 0, (0, 1, 2))
    for family in FAMILIES:
        home = chosen(family, placement.serving)
        away = placement.with_moved(family, (home + 1) % 3)
        assert away.moved == {family: (home + 1) % 3}
        assert away.with_moved(family, home).moved == {}


@given(placements())
def test_a_placement_is_what_it_was_when_it_is_read(placement: Placement) -> None:
    data = msgspec.json.encode(placement)
    assert msgspec.json.decode(data, type=Placement) == placement


def test_the_first_that_serves_leads_when_the_leader_goes() -> None:
    placement = Placement(1, 2, (0, 1, 2))
    assert placement.left_by(2, 1).leader == 0
    assert placement.left_by(0, 1).leader == 2
    alone = Placement(1, 2, (2,)).left_by(2, 7)
    assert (alone.leader, alone.serving) == (7, (7,))


def test_families_are_spread_evenly() -> None:
    counts = Counter(chosen(f"db {number}", (0, 1, 2)) for number in range(3000))
    assert min(counts.values()) > 900
    assert ranked("db 1", (2, 0, 1)) == ranked("db 1", (0, 1, 2))


@given(placements(), st.integers(1, 3), st.data())
def test_whoever_owns_a_family_next_has_followed_it(
    placement: Placement, count: int, data: st.DataObject
) -> None:
    for drained in data.draw(st.sets(st.sampled_from(placement.serving), max_size=3)):
        placement = placement.with_drained(drained)
    for family in FAMILIES:
        owner, followers = placement.owner_of(family), placement.followers_of(family, count)
        assert owner not in followers
        assert len(set(followers)) == len(followers) == min(count, len(placement.serving) - 1)
        for after in (placement.left_by(owner, owner), placement.with_drained(owner)):
            if after.owner_of(family) != owner:  # there was another one
                assert after.owner_of(family) == followers[0]
