"""A process that has more connections than another lets that one accept first."""

from __future__ import annotations

from qserver.cluster import OwnConnections, SharedConnections
from tests.children import fork, wait


def two() -> tuple[OwnConnections, OwnConnections]:
    shared = SharedConnections(2)
    return shared.of(0), shared.of(1)


def test_those_that_have_none_both_accept() -> None:
    one, other = two()
    assert not one.lets_others_accept() and not other.lets_others_accept()


def test_the_one_with_more_lets_the_other_accept() -> None:
    one, other = two()
    one.note(1)
    assert one.lets_others_accept() and not other.lets_others_accept()
    other.note(1)
    assert not one.lets_others_accept()


def test_among_many_a_few_more_do_not_count() -> None:
    one, other = two()
    other.note(80)
    one.note(90)
    assert not one.lets_others_accept()
    one.note(91)
    assert one.lets_others_accept()


def test_a_process_that_begins_again_has_none() -> None:
    shared = SharedConnections(2)
    shared.of(0).note(7)
    other = shared.of(1)
    other.note(1)
    assert not other.lets_others_accept()
    shared.of(0)
    assert other.lets_others_accept()


def test_what_another_process_notes_is_seen() -> None:
    one, other = two()
    one.note(1)

    def run() -> None:
        other.note(5)

    assert wait(fork(run)) == 0
    assert other.lets_others_accept() and not one.lets_others_accept()
