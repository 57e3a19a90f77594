"""Patterns for names become regular expressions as psql makes them, one for each part."""

from __future__ import annotations

import re

import pytest

from qserver.cli.shell.catalog.patterns import Columns, conditions, parts_of
from qserver.cli.shell.commands import run_command
from qserver.cli.shell.shell import Shell
from qserver.client import Client
from qserver.errors import InvalidRequest

NAMES = Columns("c.relname", "n.nspname", "is_visible")


@pytest.fixture
def shell() -> Shell:
    def say(_: str) -> None:
        raise AssertionError("it says nothing")

    with Client("http://127.0.0.1:1", "key", "shop") as client:
        return Shell(client, run_command, say, say)


@pytest.mark.parametrize(
    ("pattern", "found", "others"),
    [
        ("users", ["users"], ["Users", "users2", "my_users"]),
        ("Users", ["users"], ["Users"]),
        ("u*", ["u", "users"], ["my_users"]),
        ("u?", ["us"], ["u", "use"]),
        ("a$b", ["a$b"], ["a", "ab"]),
        ("a[]", ["a[]"], ["a"]),
        ("[ab]x", ["ax", "bx"], ["cx", "[ab]x"]),
        ('"U*"', ["U*"], ["u*", "Users"]),
        ('"a""b"', ['a"b'], ["ab"]),
        ('A"B"c', ["aBc"], ["abc", "ABc"]),
    ],
)
def test_a_pattern_finds_what_psql_finds(pattern: str, found: list[str], others: list[str]) -> None:
    (expression,) = parts_of(pattern)
    for name in found:
        assert re.fullmatch(expression, name), name
    for name in others:
        assert not re.fullmatch(expression, name), name


def test_dots_outside_of_quotes_separate_parts() -> None:
    assert parts_of("shop.users") == ["shop", "users"]
    assert parts_of('"Odd.*"') == ["Odd\\.\\*"]
    assert parts_of('a."b.c".d') == ["a", "b\\.c", "d"]
    assert parts_of("shop.") == ["shop", ""]


def test_no_schema_means_those_that_are_found_without_one(shell: Shell) -> None:
    assert conditions(None, NAMES, shell) == ["is_visible"]
    assert conditions("*", NAMES, shell) == ["is_visible"]
    assert conditions("*.*", NAMES, shell) == []
    assert [each.partition(" ~ ")[0].strip("(") for each in conditions("s.t", NAMES, shell)] == [
        "c.relname",
        "n.nspname",
    ]
    also = Columns("p.proname", also="p.oid::text")
    assert conditions("f", also, shell)[0].count(" ~ ") == 2


def test_a_quote_in_a_name_does_not_end_the_text(shell: Shell) -> None:
    (condition, _) = conditions("o'neill", NAMES, shell)
    assert "'^(o''neill)$'" in condition


@pytest.mark.parametrize(
    ("pattern", "columns"),
    [("a.b.c.d", NAMES), ("a.b", Columns("name")), ("elsewhere.a.b", NAMES)],
)
def test_parts_that_mean_nothing_are_refused(pattern: str, columns: Columns, shell: Shell) -> None:
    with pytest.raises(InvalidRequest):
        conditions(pattern, columns, shell)
