"""The recorder of a run: what clients tell it is what the checkers get."""

from __future__ import annotations

import pytest

from simulations.history import Append, Attempt, Get, History, Read, Status, Write


def test_positions_count_the_events_of_all_clients_in_one_order() -> None:
    history = History()
    first = history.begin("client 0")
    second = history.begin("client 1")
    history.end(first, Status.OK, [Append("x", 1)], version=4)
    third = history.begin("client 0")
    history.end(third, Status.OK, [Read("x", (1,))], version=4)
    history.end(second, Status.FAILED, [Append("x", 2)])
    assert history.attempts == (
        Attempt(0, "client 0", (Append("x", 1),), 0, 2, Status.OK, 4),
        Attempt(1, "client 1", (Append("x", 2),), 1, 5, Status.FAILED, None),
        Attempt(2, "client 0", (Read("x", (1,)),), 3, 4, Status.OK, 4),
    )


def test_an_unknown_attempt_keeps_what_it_meant_to_write_and_is_never_completed() -> None:
    history = History()
    number = history.begin("client 0")
    operations = (Read("x", ()), Append("x", 1), Get("y", None), Write("y", 2))
    history.end(number, Status.UNKNOWN, operations, version=3)
    [attempt] = history.attempts
    assert attempt.operations == (Append("x", 1), Write("y", 2))
    assert (attempt.completed, attempt.version) == (None, None)


def test_an_attempt_that_is_still_under_way_is_unknown() -> None:
    history = History()
    history.begin("client 0", intended=[Append("x", 1), Read("x", (1,))])
    ended = history.begin("client 1", intended=[Append("x", 2)])
    history.end(ended, Status.UNKNOWN)
    first, second = history.attempts
    assert first == Attempt(0, "client 0", (Append("x", 1),), 0, None, Status.UNKNOWN, None)
    assert second == Attempt(1, "client 1", (Append("x", 2),), 1, None, Status.UNKNOWN, None)


def test_an_attempt_ends_once() -> None:
    history = History()
    number = history.begin("client 0")
    history.end(number, Status.OK)
    with pytest.raises(AssertionError, match="T0 was not begun, or has already ended"):
        history.end(number, Status.OK)
    with pytest.raises(AssertionError, match="T7"):
        history.end(7, Status.OK)


@pytest.mark.parametrize(
    ("completed", "status"), [(None, Status.OK), (None, Status.FAILED), (5, Status.UNKNOWN)]
)
def test_an_attempt_is_completed_unless_it_is_unknown(
    completed: int | None, status: Status
) -> None:
    with pytest.raises(AssertionError):
        Attempt(0, "client", (), 1, completed, status, None)


def test_an_attempt_is_not_completed_before_it_is_invoked() -> None:
    with pytest.raises(AssertionError):
        Attempt(0, "client", (), 5, 5, Status.OK, None)
