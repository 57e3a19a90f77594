"""The checker of sequences sees what a sequence must not do, and lets pass what it may."""

from __future__ import annotations

from simulations.checkers.numbers import HEIGHT, NumbersChecker


def test_numbers_that_grow_with_gaps_are_fine() -> None:
    checker = NumbersChecker("s")
    for numbers in ([1], [2, 3], [500]):
        assert checker.answer(checker.ask(), numbers, numbers[0]) == []


def test_requests_at_the_same_time_may_be_answered_in_any_order() -> None:
    checker = NumbersChecker("s")
    first, second = checker.ask(), checker.ask()
    assert checker.answer(second, [2], 2) == []
    assert checker.answer(first, [1], 1) == []


def test_a_number_that_comes_twice_is_seen() -> None:
    checker = NumbersChecker("s")
    first, second = checker.ask(), checker.ask()
    assert checker.answer(first, [7], 1) == []
    assert checker.answer(second, [7], 2) == ["s gave 7 to 1 and to 2"]


def test_a_number_that_comes_late_is_seen() -> None:
    checker = NumbersChecker("s")
    assert checker.answer(checker.ask(), [7], 1) == []
    assert checker.answer(checker.ask(), [6], 2) == ["s gave 6 after 7 had been answered"]
    assert checker.answer(checker.ask(), [9, 8], 3) == ["s gave 8 after 9 to 3"]


def test_a_number_of_an_epoch_that_is_over_is_seen() -> None:
    checker = NumbersChecker("s")
    early = checker.ask()
    checker.ask_epoch(5)
    assert checker.answer(checker.ask(), [1], 1) == [], "it has not begun"
    checker.answer_epoch(5)
    assert checker.answer(early, [2], 2) == [], "it had not begun when this was asked for"
    assert checker.answer(checker.ask(), [5 * HEIGHT], 3) == []
    assert checker.answer(checker.ask(), [3], 4) == ["s gave 3, of an epoch that was over"]


def test_an_epoch_that_nobody_has_heard_of_may_have_begun_or_not() -> None:
    checker = NumbersChecker("s")
    checker.ask_epoch(5)  # its outcome is unknown
    assert checker.answer(checker.ask(), [1], 1) == []
    assert checker.answer(checker.ask(), [5 * HEIGHT], 2) == []


def test_a_number_of_an_epoch_that_failed_is_seen() -> None:
    checker = NumbersChecker("s")
    checker.ask_epoch(5)
    checker.answer_epoch(5, failed=True)
    (problem,) = checker.answer(checker.ask(), [5 * HEIGHT], 1)
    assert problem.endswith("of an epoch whose beginning failed")
    (problem,) = checker.answer(checker.ask(), [9 * HEIGHT], 2)
    assert problem.endswith("of an epoch that nobody has asked for")
