"""A drained node owns nothing, however often it joins, and answers clients all the same."""

from __future__ import annotations

from itertools import count

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from qserver.control.nodes.membership import Membership
from qserver.control.nodes.owners import NodeOwners
from qserver.control.nodes.placement import CONTROL, Placement
from qserver.control.tokens import Mint

FAMILIES = [f"db_{number}" for number in range(200)]
THREE = Placement(7, 0, (0, 1, 2))


def owned(placement: Placement) -> set[int]:
    return {placement.owner_of(family) for family in FAMILIES}


def test_a_drained_node_serves_and_owns_nothing() -> None:
    drained = THREE.with_drained(2)
    assert drained.version == 8
    assert drained.serving == (0, 1, 2), "the leader counts it: it shows keys"
    assert drained.owning == (0, 1) and owned(drained) == {0, 1}


def test_only_the_families_of_a_drained_node_move_and_they_return() -> None:
    drained = THREE.with_drained(2)
    for family in FAMILIES:
        if THREE.owner_of(family) != 2:
            assert drained.owner_of(family) == THREE.owner_of(family)
    back = drained.undrained(2)
    assert [back.owner_of(each) for each in FAMILIES] == [THREE.owner_of(each) for each in FAMILIES]


def test_a_drained_node_that_joins_writes_the_placement_and_stays_drained() -> None:
    joined = THREE.with_drained(2).left_by(2, 0).joined_by(2)
    assert joined.version == 10 and 2 in joined.serving
    assert joined.drained == (2,) and owned(joined) == {0, 1}


def test_a_leader_that_is_drained_leads_no_more() -> None:
    drained = THREE.with_drained(0)
    assert drained.leader == drained.owner_of(CONTROL) == 1
    assert drained.undrained(0).leader == 1, "nothing moves without need"


def test_a_family_moved_to_a_drained_node_is_elsewhere_until_it_is_not_drained() -> None:
    family = next(each for each in FAMILIES if THREE.owner_of(each) != 2)
    moved = THREE.with_moved(family, 2)
    drained = moved.with_drained(2)
    assert drained.owner_of(family) == THREE.owner_of(family)
    assert drained.undrained(2).owner_of(family) == 2


def test_somebody_owns_the_families_when_only_drained_nodes_are_left() -> None:
    alone = Placement(1, 0, (0, 1)).with_drained(1).left_by(0, 1)
    assert alone.owning == (1,) and alone.leader == 1 and owned(alone) == {1}
    joined = alone.joined_by(0)
    assert joined.owning == (0,) and joined.leader == 0


def test_what_is_so_already_makes_no_version() -> None:
    drained = THREE.with_drained(2)
    assert drained.with_drained(2) is drained
    assert THREE.undrained(2) is THREE
    assert THREE.moved_back("db_1") is THREE


def test_a_family_moves_back() -> None:
    family = next(each for each in FAMILIES if THREE.owner_of(each) != 2)
    back = THREE.with_moved(family, 2).moved_back(family)
    assert back.version == 9 and back.moved == {}
    assert back.owner_of(family) == THREE.owner_of(family)


def test_a_placement_of_before_is_read_as_one_without_drained_nodes() -> None:
    text = b'{"version":3,"leader":0,"serving":[0,1],"moved":{"db_1":1}}'
    assert msgspec.json.decode(text, type=Placement) == Placement(3, 0, (0, 1), {"db_1": 1})


STEPS = st.lists(
    st.tuples(st.sampled_from(["join", "leave", "drain", "undrain"]), st.integers(0, 3)),
    max_size=20,
)


@given(STEPS)
def test_owners_serve_and_are_not_drained_whatever_happens(steps: list[tuple[str, int]]) -> None:
    now = Placement(1, 0, (0,))
    for step, node in steps:
        before = now
        match step:
            case "join":
                now = now.joined_by(node)
            case "leave":
                now = now.left_by(node, 3)
            case "drain":
                now = now.with_drained(node)
            case _:
                now = now.undrained(node)
        assert now.version == before.version + (now is not before)
        assert now.leader in now.owning and {*now.owning} <= {*now.serving}
        is_free = set(now.serving) - set(now.drained)
        assert owned(now) <= (is_free or set(now.serving))


def test_new_databases_are_made_by_nodes_that_own_some() -> None:
    membership = Membership.__new__(Membership)
    membership.placement = THREE.with_drained(2)
    owners = NodeOwners(membership)
    places = {owners.process_for("org", f"n{number}") for number in range(50)}
    assert places == {0, 1}
    numbers = count()
    mint = Mint(lambda size: next(numbers).to_bytes(size, "big"))
    assert owners.owner_of(owners.new_id(mint, 1.0, 1)) == 1
    assert {*owners.everyone} == {0, 1, 2}
