"""Versions in shared memory: written by their owner, read by all, through deaths of either."""

from __future__ import annotations

from functools import partial

from qserver.cluster.shared_versions import NEVER, SharedVersions, digest_of
from tests.children import fork, wait


def test_what_an_owner_writes_all_processes_read() -> None:
    shared = SharedVersions(2)
    slot, write = shared.of_owner(1).enter("a")
    assert shared.read(slot, digest_of("a")) == NEVER, "nobody knows it yet"
    assert wait(fork(partial(write, 17))) == 0
    assert shared.read(slot, digest_of("a")) == 17


def test_the_number_of_a_dead_owner_stands_and_its_successor_goes_on() -> None:
    shared = SharedVersions(2)
    slot, write = shared.of_owner(1).enter("a")
    write(17)
    successor = shared.of_owner(1)
    assert shared.read(slot, digest_of("a")) == 17
    again = successor.find("a")
    assert again is not None
    again(18)
    assert successor.enter("a")[0] == slot
    assert shared.read(slot, digest_of("a")) == 18


def test_nobody_has_a_number_that_nobody_follows() -> None:
    assert SharedVersions(2).of_owner(0).find("a") is None


def test_owners_have_slots_of_their_own() -> None:
    shared = SharedVersions(2, slots=1)
    slots = [shared.of_owner(process).enter("a")[0] for process in (0, 1)]
    assert len({*slots}) == 2


def test_a_slot_that_is_taken_over_is_no_longer_read_or_written_as_before() -> None:
    shared = SharedVersions(1, slots=2)
    own = shared.of_owner(0)
    first, write_first = own.enter("a")
    write_first(17)
    own.enter("b")
    third, write_third = own.enter("c")
    assert third == first and own.find("a") is None
    write_third(5)
    write_first(18)
    assert shared.read(first, digest_of("a")) is None
    assert shared.read(third, digest_of("c")) == 5
    assert own.enter("a")[0] != first, "the next one goes"
