"""Tokens: where they begin and end, and what cannot be one."""

from __future__ import annotations

import re

import pytest

from qserver.errors import (
    CharacterNotInRepertoire,
    ProgramLimitExceeded,
    SqlSyntaxError,
    StatementTooComplex,
)
from qserver.lexing.lexer import OTHER, PART, START, TAG, check_text, tokenize
from qserver.limits import COMMENT_DEPTH_MAX, STATEMENT_BYTES_MAX, STATEMENT_TOKENS_MAX


def texts(sql: str) -> list[str]:
    return [token.text for token in tokenize(sql)]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a1,t2.c3", ["SELECT", "a1", ",", "t2", ".", "c3"]),
        ("a-1", ["a", "-", "1"]),
        ("x=1::int", ["x", "=", "1", "::", "int"]),
        ("a[1]", ["a", "[", "1", "]"]),
        ("1..2", ["1", "..", "2"]),
        ("...5", ["..", ".5"]),
        ("a.5", ["a", ".5"]),
        ("1.5.5", ["1.5", ".5"]),
        ("1.e5 .5e-3 5.", ["1.e5", ".5e-3", "5."]),
        ("$1 $12", ["$1", "$12"]),
        ("a$1", ["a$1"]),
        ("É_1ñ 🔑", ["É_1ñ", "🔑"]),
        # Operators: a sign at the end needs company.
        ("a=-1", ["a", "=", "-", "1"]),
        ("a<>-1", ["a", "<>", "-", "1"]),
        ("a@-1", ["a", "@-", "1"]),
        ("a*-+1", ["a", "*", "-", "+", "1"]),
        ("a||-1", ["a", "||-", "1"]),
        ("a->>'b'", ["a", "->>", "'b'"]),
        ("a!~~*b", ["a", "!~~*", "b"]),
        ("a=?", ["a", "=", "?"]),
        ("a?|b?&c??", ["a", "?|", "b", "?&", "c", "?", "?"]),
        ("?||?", ["?", "||", "?"]),
        ("a@?b", ["a", "@?", "b"]),
        ("a:=b=>c", ["a", ":=", "b", "=>", "c"]),
        # Comments end operators.
        ("2*/*c*/3", ["2", "*", "3"]),
        ("2+--c\n3", ["2", "+", "3"]),
        ("/* a /* b */ ' */1", ["1"]),
        ("--'\r1", ["1"]),
        ("1--", ["1"]),
        # Strings.
        ("'it''s'", ["'it''s'"]),
        ("'a' 'b'", ["'a'", "'b'"]),
        ("'a'\n 'b'", ["'a'\n 'b'"]),
        ("'a' -- c\n 'b'", ["'a' -- c\n 'b'"]),
        ("'a' /* c */\n 'b'", ["'a'", "'b'"]),
        (r"E'\'' e'\\'", [r"E'\''", r"e'\\'"]),
        ("date'2024-01-01'", ["date", "'2024-01-01'"]),
        ("b'1'x'f'N'n'", ["b'1'", "x'f'", "N'n'"]),
        ("U&'a' UESCAPE '!' b", ["U&'a' UESCAPE '!'", "b"]),
        ("U&\"a\"uescape'!'", ["U&\"a\"uescape'!'"]),
        ("$$a'b$$", ["$$a'b$$"]),
        ("$x$a$$b$y$c$x$ d", ["$x$a$$b$y$c$x$", "d"]),
        ('"a""b"."c\'d"', ['"a""b"', ".", '"c\'d"']),
    ],
)
def test_a_text_is_cut_as_postgresql_cuts_it(sql: str, expected: list[str]) -> None:
    assert texts(sql) == expected


@pytest.mark.parametrize(
    ("sql", "message", "position"),
    [
        ("select 'abc", 'unterminated quoted string at or near "\'abc"', 8),
        ("select e'abc\\'", "unterminated quoted string at or near \"e'abc\\'\"", 8),
        ('select "abc', 'unterminated quoted identifier at or near ""abc"', 8),
        ('select U&"abc', 'unterminated quoted identifier at or near "U&"abc"', 8),
        ("select $a$b$", 'unterminated dollar-quoted string at or near "$a$b$"', 8),
        ("select b'10", 'unterminated bit string literal at or near "b\'10"', 8),
        ("select x'10", 'unterminated hexadecimal string literal at or near "x\'10"', 8),
        ("select /* a /* b */", 'unterminated /* comment at or near "/* a /* b */"', 8),
        ('select ""', 'zero-length delimited identifier at or near """"', 8),
        ("select 1a", 'trailing junk after numeric literal at or near "1a"', 8),
        ("select 0x1F", 'trailing junk after numeric literal at or near "0x1F"', 8),
        ("select 1_000", 'trailing junk after numeric literal at or near "1_000"', 8),
        ("select 1e", 'trailing junk after numeric literal at or near "1e"', 8),
        ("select $1a", 'trailing junk after parameter at or near "$1a"', 8),
    ],
)
def test_what_is_no_token_is_refused_in_postgresqls_words(
    sql: str, message: str, position: int
) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        texts(sql)
    assert (caught.value.message, caught.value.position) == (message, position)


def test_a_very_long_mistake_is_shown_in_part() -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        texts("'" + "a" * 1000)
    assert len(caught.value.message) < 300


def test_comments_nest_up_to_a_limit() -> None:
    def nested(depth: int) -> str:
        return "/*" * depth + "*/" * depth + "1"

    assert texts(nested(COMMENT_DEPTH_MAX)) == ["1"]
    with pytest.raises(StatementTooComplex):
        texts(nested(COMMENT_DEPTH_MAX + 1))


@pytest.mark.parametrize(
    ("sql", "sequence", "position"),
    [
        ("a\0", "0x00", 2),
        ("'\ud800'", "0xed 0xa0 0x80", 2),
        ("é\udfff", "0xed 0xbf 0xbf", 2),
    ],
)
def test_a_text_that_utf8_cannot_hold_is_refused(sql: str, sequence: str, position: int) -> None:
    with pytest.raises(CharacterNotInRepertoire) as caught:
        check_text(sql)
    assert caught.value.message == f'invalid byte sequence for encoding "UTF8": {sequence}'
    assert caught.value.position == position


def test_a_text_has_a_longest_length_in_bytes() -> None:
    check_text("é" * (STATEMENT_BYTES_MAX // 2))
    with pytest.raises(ProgramLimitExceeded):
        check_text("é" * (STATEMENT_BYTES_MAX // 2) + "a")


def test_a_text_has_so_many_tokens_and_no_more() -> None:
    tokens = tokenize("a," * (STATEMENT_TOKENS_MAX // 2) + "a")
    for _ in range(STATEMENT_TOKENS_MAX):
        next(tokens)
    with pytest.raises(ProgramLimitExceeded):
        next(tokens)


@pytest.mark.parametrize(
    ("pattern", "of_ascii"),
    [(START, r"[A-Za-z_]"), (PART, r"[A-Za-z_0-9$]"), (OTHER, r"[^'\"0-9\0]")],
)
def test_a_word_has_ascii_letters_and_all_characters_that_are_not_ascii(
    pattern: str, of_ascii: str
) -> None:
    beyond = (0x80, 0xFF, 0x100, 0x17F, 0x212A, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF)
    for character in map(chr, (*range(128), *beyond)):
        expected = not character.isascii() or re.match(of_ascii, character) is not None
        for flags in (re.NOFLAG, re.IGNORECASE):
            assert (re.match(pattern, character, flags) is not None) == expected, character


def test_the_tag_of_a_string_in_dollars_has_no_dollar() -> None:
    assert texts("$a1$b$a1$ $é🔑_9$'$é🔑_9$") == ["$a1$b$a1$", "$é🔑_9$'$é🔑_9$"]
    assert re.fullmatch(TAG, "a$") is None
