"""Answers of commits are kept for a while, and not more of an organization than it may have."""

from __future__ import annotations

from qserver.control.commit_answers import CommitAnswers
from qserver.limits import COMMIT_ANSWER_SECONDS, COMMIT_ANSWERS_MAX


def test_an_answer_is_found_by_its_organization_until_it_expires() -> None:
    clock = [1000.0]
    answers = CommitAnswers(lambda: clock[0])
    answers.keep("a", b"first", b"text")
    clock[0] += COMMIT_ANSWER_SECONDS - 1
    answers.keep("a", b"second", b"other")
    assert (answers.find("a", b"first"), answers.find("b", b"first")) == (b"text", None)
    clock[0] += 1
    assert answers.find("a", b"first") is None and answers.find("a", b"second") == b"other"
    assert len(answers) == 2
    answers.sweep()
    assert repr(answers) == "answers of 1 commits"
    clock[0] += COMMIT_ANSWER_SECONDS
    answers.sweep()
    assert len(answers) == 0


def test_the_oldest_answers_of_an_organization_make_room_for_its_newer_ones() -> None:
    answers = CommitAnswers(lambda: 0.0)
    answers.keep("other", b"0", b"kept")
    for number in range(COMMIT_ANSWERS_MAX + 1):
        answers.keep("a", b"%d" % number, b"%d" % number)
    assert answers.find("a", b"0") is None and answers.find("a", b"1") == b"1"
    assert answers.find("other", b"0") == b"kept"
    assert len(answers) == COMMIT_ANSWERS_MAX + 1
