"""Tab offers what fits the place."""

from __future__ import annotations

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from qserver.cli.shell.completion import SqlCompleter
from tests.cli.shell.shells import TABLES


def offered(text: str, rest: str = "") -> list[str]:
    completer = SqlCompleter()
    completer.know(TABLES["tables"])
    document = Document(text + rest, len(text))
    return [each.text for each in completer.get_completions(document, CompleteEvent())]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("SELECT * FROM ", "", ["users", "orders"]),
        ("SELECT * FROM or", "", ["orders"]),
        ("SELECT OR", "", ["orders", "OR", "ORDER"]),
        ("SELECT ", " FROM orders", ["user_id", "users", "orders"]),
        ("SELECT u.", " FROM users u", ["id", '"Full Name"']),
        ("SELECT o.u", " FROM users AS u JOIN orders AS o", ["user_id"]),
        ("SELECT nothing.", "", []),
        ("\\ti", "", ["\\timing"]),
        ("\\d us", "", ["users"]),
        ("\\c ", "", []),
    ],
)
def test_what_fits_the_place_is_offered(before: str, after: str, expected: list[str]) -> None:
    assert offered(before, after) == expected


def test_keywords_come_in_the_case_that_was_begun() -> None:
    assert "select" in offered("sel")
    assert "SELECT" in offered("SEL")


def test_a_name_that_needs_quotes_gets_them() -> None:
    assert offered('SELECT "Fu', " FROM users") == ['"Full Name"']
