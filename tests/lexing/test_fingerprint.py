"""Parameterizing: what fingerprint and literals a text has, and that the lexer agrees about the
literals."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qserver.errors import QserverError, SqlSyntaxError
from qserver.lexing.fingerprint import MARK, parameterize
from qserver.lexing.lexer import tokenize
from qserver.lexing.literals import LITERAL_TOKENS, read_literal
from qserver.sql.parser import parse

PIECES = [
    *(
        "SELECT",
        "a1",
        "t2.c3",
        "date",
        "e",
        "E",
        "n",
        "x",
        "b",
        "u&",
        "é1",
        '"q 1"',
        '"it\'s"',
        '""""',
    ),
    *("1", "23", "1.5", ".5", "5.", "1e5", "2147483648", "99999999999999999999"),
    *("'a'", "''", "'it''s'", "'1'", "'--'", "'/*'", "'\"'", "'a'\n'b'", "'$$'", "'\\'"),
    *(r"E'\''", r"e'a\\'", "E'x'", "B'1'", "x'F'", "N'n'", "U&'a'", "U&'a' UESCAPE '!'"),
    *("$$1'$$", "$t$ $$ 1 $t$", "$1", "$12", "?", ":name", ":1", "::int", ":"),
    *("-- 1 'x\n", "/* 1 ' */", "/* /* 1 */ ' */", "--\r"),
    *("-", "+", "*", "/", "=", "<>", "||", "->", ".", "..", ",", "(", ")", "[", "]", ";", "?|"),
    *(" ", "\n", "\t", "VALUES (1,'a'),(2,NULL)", "values(1)", "UESCAPE"),
]


@pytest.mark.parametrize(
    ("sql", "fingerprint", "literals", "kinds"),
    [
        ("SELECT a1, t2.c3", "SELECT a1, t2.c3", [], ""),
        ("SELECT 1", "SELECT ␀", [1], "i"),
        ("a-1", "a-␀", [1], "i"),
        ("x=-1", "x=-␀", [1], "i"),
        ("1::int", "␀::int", [1], "i"),
        ("a[1:2]", "a[␀:␀]", [1, 2], "ii"),
        ("2147483648+1.5", "␀+␀", [2**31, Decimal("1.5")], "ln"),
        ("'it''s'||E'\\n'", "␀||␀", ["it's", "\n"], "ss"),
        ("$1 + :p2 + a$1", "$1 + :p2 + a$1", [], ""),
        ('"1" \'"\' "\'"', '"1" ␀ "\'"', ['"'], "s"),
        ("/* 1 /* ' */ */ 2 -- 3", "/* 1 /* ' */ */ ␀ -- 3", [2], "i"),
        ("1..2", "␀..␀", [1, 2], "ii"),
        ("date'2024-01-01'", "date␀", ["2024-01-01"], "s"),
        ("$$a$$,$1", "␀,$1", ["a"], "s"),
        ("b'1'", "␀", ["1"], "b"),
        ("", "", [], ""),
    ],
)
def test_a_text_has_a_shape_and_literals(
    sql: str, fingerprint: str, literals: list[Any], kinds: str
) -> None:
    parameterized = parameterize(sql)
    assert parameterized.fingerprint == fingerprint.replace("␀", MARK)
    assert (parameterized.literals, parameterized.kinds) == (literals, kinds)


def test_statements_that_differ_in_literals_only_have_one_shape() -> None:
    one = parameterize("SELECT * FROM t WHERE a = 1 AND b = 'x'")
    other = parameterize("SELECT * FROM t WHERE a = 234 AND b = 'it''s'")
    assert (one.fingerprint, one.kinds) == (other.fingerprint, other.kinds)


def test_a_text_cannot_pretend_to_be_another_shape() -> None:
    with pytest.raises(QserverError):
        parameterize(f"SELECT {MARK}")


@pytest.mark.parametrize("sql", ["'a", '"a', "/* a", "$$a", "E'\\'", "1 'a''"])
def test_what_is_not_closed_is_refused_by_lift_as_by_the_lexer(sql: str) -> None:
    with pytest.raises(SqlSyntaxError) as parameterized:
        parameterize(sql)
    with pytest.raises(SqlSyntaxError) as tokenized:
        list(tokenize(sql))
    assert parameterized.value.message == tokenized.value.message
    assert parameterized.value.position == tokenized.value.position


def literals_by_the_lexer(sql: str) -> tuple[list[Any], str]:
    found = [
        read_literal(token.text, token.start)
        for token in tokenize(sql)
        if token.kind in LITERAL_TOKENS
    ]
    return [value for _, value in found], "".join([kind for kind, _ in found])


@given(st.lists(st.sampled_from(PIECES), max_size=12))
@example(["E", "'\\'", "'a'"])
@example(["u&", '"it\'s"'])
@example(["$1", "$$1'$$"])
@example(["..", ".", "1"])
def test_lift_and_lexer_find_the_same_literals_however_tokens_are_glued(pieces: list[str]) -> None:
    sql = "".join(pieces)
    try:
        expected = literals_by_the_lexer(sql)
    except QserverError:
        return  # whether it is refused by both is another test's question
    parameterized = parameterize(sql, repeat=False)
    assert (parameterized.literals, parameterized.kinds) == expected


@given(st.lists(st.sampled_from(PIECES), max_size=10))
def test_putting_the_literals_back_gives_the_text(pieces: list[str]) -> None:
    """So the fingerprint is the text and nothing else, and equal fingerprints are equal texts."""
    sql = "".join(pieces)
    try:
        tokens = list(tokenize(sql))
    except QserverError:
        return
    try:
        rest = parameterize(sql, repeat=False).fingerprint.split(MARK)
    except QserverError:
        return  # a literal that means nothing, such as B'1''a'
    literals = [token.text for token in tokens if token.kind in LITERAL_TOKENS]
    assert len(rest) == len(literals) + 1
    assert "".join(part for pair in zip(rest, [*literals, ""], strict=True) for part in pair) == sql


@given(st.text(alphabet="'\"$/*-\\eE&u1.a \n\r", max_size=30))
def test_lift_refuses_exactly_what_cannot_be_cut(sql: str) -> None:
    try:
        list(tokenize(sql))
        cut = True
    except QserverError as error:
        if "trailing junk" in error.message or "zero-length" in error.message:
            return  # only the parser looks so closely
        cut = False
    try:
        parameterize(sql)
        parameterized = True
    except QserverError:
        parameterized = False
    assert parameterized == cut


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1, 'a', 2.5 FROM t WHERE x = E'b' LIMIT 3",
        "INSERT INTO t VALUES (1, 'a'), (2, NULL) ON CONFLICT (a) DO UPDATE SET b = 5",
        "WITH x AS (VALUES (1), (2)) SELECT 7 FROM x, (VALUES (3), (4), (5)) y WHERE '8' = $1",
        "CREATE TABLE t AS VALUES (1), (2)",
    ],
)
def test_the_parser_counts_literals_as_lift_does(sql: str) -> None:
    for repeat in (True, False):
        parameterized, parsed = parameterize(sql, repeat=repeat), parse(sql, repeat=repeat)
        assert (parameterized.literals, parameterized.kinds) == (parsed.literals, parsed.kinds)
