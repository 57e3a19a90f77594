"""A text falls into its statements, whatever stands in them and however it arrives."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.cli.splitting import Splitter, Statement, is_whole, split
from qserver.errors import ProgramLimitExceeded
from qserver.limits import STATEMENT_BYTES_MAX

PARTS = [
    "SELECT",
    "a_b",
    "x$y",
    "1.5e3",
    "( )",
    "-",
    "/",
    "+ *",
    "'a;b'",
    "'it''s;'",
    "''",
    "E'\\';'",
    "e'a'\n'b\\';'",
    "U&'d\\0061;'",
    'U&"d;"',
    '";"";"',
    "$$a;b$$",
    "$tag$ ; $$ ; $tag$",
    "$1",
    "?",
    "-- a;b '\n",
    "/* ; /* ; */ ' */",
    "::text",
    "ä;".rstrip(";"),
    "\n",
]
statements_of_parts = st.lists(st.sampled_from(PARTS), min_size=1, max_size=6).map(
    lambda parts: "S " + " ".join(parts) + " z"
)


def texts(found: list[Statement]) -> list[str]:
    return [each.text for each in found]


@given(st.lists(statements_of_parts, max_size=5), st.lists(st.integers(0, 300), max_size=8))
def test_statements_come_out_as_they_went_in_wherever_the_text_is_cut(
    statements: list[str], cuts: list[int]
) -> None:
    text = "".join(f"{each};" for each in statements)
    places = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    splitter = Splitter()
    found: list[Statement] = []
    for start, end in itertools.pairwise(places):
        found += splitter.feed(text[start:end])
    found += splitter.finish()
    assert texts(found) == statements


@given(st.text(alphabet="aE$'\"-/*;\\\n U&1", max_size=60), st.integers(0, 60))
def test_any_text_splits_the_same_in_one_piece_and_in_two(text: str, cut: int) -> None:
    splitter = Splitter()
    found = [*splitter.feed(text[:cut]), *splitter.feed(text[cut:]), *splitter.finish()]
    assert found == split(text)


@given(st.text(alphabet="aE$'\"-/*;\n U&1", max_size=60))
def test_nothing_but_blanks_comments_and_semicolons_is_lost(text: str) -> None:
    rest = text
    for statement in split(text):
        before, found, rest = rest.partition(statement.text)
        assert found
        assert texts(split(before)) == []
    assert texts(split(rest)) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" ;; ; -- nothing\n; /* ; */", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;SELECT 2;", ["SELECT 1", "SELECT 2"]),
        ("/*+ STREAM */ SELECT 1;", ["/*+ STREAM */ SELECT 1"]),
        ("SELECT 'a", ["SELECT 'a"]),
        ("SELECT /* a; b", ["SELECT /* a; b"]),
        ("\\d users\nSELECT 1;", ["\\d users", "SELECT 1"]),
        ("SELECT 1; \\x\n\\q", ["SELECT 1", "\\x", "\\q"]),
        ("SELECT a \\gx", ["\\gx"]),
        ("SELECT a\n\\p\n, b;", ["\\p", "SELECT a\n\n, b"]),
        ("SELECT 1 \\; SELECT 2;", ["SELECT 1", "SELECT 2"]),
        ("\\a \\t on\n", ["\\a", "\\t on"]),
        ("-- \\d\nSELECT 1;", ["-- \\d\nSELECT 1"]),
    ],
)
def test_texts_and_their_statements(text: str, expected: list[str]) -> None:
    assert texts(split(text)) == expected


def test_lines_are_counted_to_the_first_word_and_to_any_place() -> None:
    first, second = split("SELECT\n 1;\n\n-- why\n/* and\n how */ SELECT\n 2 / 0;")
    assert (first.line, second.first_line, second.line) == (1, 4, 6)
    assert second.line_at(second.text.index("0")) == 7


def test_words_pass_over_comments() -> None:
    (statement,) = split("-- so\n Start /* a */ TRANSACTION read only;")
    assert statement.words(3) == ("start", "transaction", "read")
    assert split("(SELECT 1)")[0].words(2) == ()


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("", True),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; -- done", True),
        ("SELECT ';", False),
        ("SELECT 1; SELECT", False),
        ("\\d", True),
        ("\\d users", True),
        ("/* a", False),
        ("SELECT $$;$$", False),
    ],
)
def test_the_shell_waits_for_a_semicolon(text: str, whole: bool) -> None:
    assert is_whole(text) is whole


def test_a_statement_that_never_ends_is_refused_with_its_line() -> None:
    splitter = Splitter()
    piece = "x" * (1 << 20)
    with pytest.raises(ProgramLimitExceeded, match="begins on line 3"):
        list(splitter.feed("SELECT 1;\n\nSELECT '"))
        for _ in range(STATEMENT_BYTES_MAX // len(piece) + 1):
            list(splitter.feed(piece))


def test_a_long_text_of_short_statements_is_kept_in_pieces_only() -> None:
    splitter = Splitter()
    count = sum(len(list(splitter.feed("SELECT 1;\n" * 1000))) for _ in range(50))
    assert count == 50_000
    assert splitter.is_between_statements
