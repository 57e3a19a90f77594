"""Whatever comes, there is a result or an error of ours, in bounded time and without recursion."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qserver.errors import QserverError, StatementTooComplex
from qserver.lexing.fingerprint import parameterize
from qserver.lexing.keywords import KEYWORDS, NEIGHBOURS
from qserver.sql.parser import parse, parse_expression
from tests.known_work import seconds_of, step_seconds
from tests.sampling import sampled

WORDS = [
    *KEYWORDS,
    *NEIGHBOURS,
    *("a", "b", "t", "1", "2.5", "'x'", "$1", "?", ":p", '"q"', "int", "text", "f("),
    *("(", ")", "[", "]", ",", ".", ";", ":", "::", "*", "+", "-", "=", "<", "||", "->", "@", "?|"),
]
TERMS = 10_000
LEVELS = 1_000


def survive(sql: str) -> None:
    for reader in (parameterize, parse, parse_expression):
        try:
            reader(sql)
        except QserverError as error:
            assert error.code != "XX000"
            assert error.position is None or 1 <= error.position <= len(sql) + 1


@given(st.text(max_size=60))
def test_any_text_ends_in_a_result_or_an_error_of_ours(sql: str) -> None:
    survive(sql)


@given(st.binary(max_size=60))
def test_any_bytes_end_in_a_result_or_an_error_of_ours(data: bytes) -> None:
    survive(data.decode("latin-1"))
    survive("SELECT " + data.decode("utf-8", "surrogateescape"))


@settings(max_examples=400)
@given(
    st.lists(st.sampled_from(WORDS), max_size=15), st.sampled_from(["", "select ", "alter table "])
)
def test_any_tokens_end_in_a_result_or_an_error_of_ours(words: list[str], head: str) -> None:
    survive(head + " ".join(words))


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from(WORDS), max_size=8), st.sampled_from(["create ", "create table t ("])
)
def test_any_definition_ends_in_a_result_or_an_error_of_ours(words: list[str], head: str) -> None:
    survive(head + " ".join(words))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + "(" * TERMS + "1" + ")" * TERMS,
        "SELECT 1 WHERE " + " AND ".join(["a = 1"] * TERMS),
        "SELECT 1 WHERE " + " OR ".join(["a = 1"] * TERMS),
        "SELECT a IN (" + ", ".join(["1"] * TERMS) + ")",
        "SELECT " + ", ".join(["a"] * TERMS),
        "SELECT " + "(" * TERMS + "SELECT 1" + ")" * TERMS,
        "SELECT CASE" + " WHEN a THEN 1" * TERMS + " END",
        "SELECT 1" + " -- x\n" * TERMS,
    ],
    ids=lambda sql: sql[:20],
)
def test_what_is_long_but_not_deep_is_parsed(sql: str) -> None:
    parse(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + " + ".join(["1"] * TERMS),
        "SELECT " + " || ".join(["a"] * TERMS),
        "SELECT " + "- " * LEVELS + "1",
        "SELECT " + "NOT " * LEVELS + "a",
        "SELECT a" + "::int" * LEVELS,
        "SELECT a" + "[1]" * LEVELS,
        "SELECT a" + " IS NULL" * LEVELS,
        "SELECT " + "f(" * LEVELS + ")" * LEVELS,
        "SELECT " + "ARRAY[" * LEVELS + "]" * LEVELS,
        "SELECT " + "(1, " * LEVELS + "1" + ")" * LEVELS,
        "SELECT " + "CASE WHEN a THEN " * LEVELS + "1" + " END" * LEVELS,
        "SELECT " + "(SELECT " * LEVELS + "1" + ")" * LEVELS,
        "SELECT 1" + " UNION SELECT 1" * LEVELS,
        "SELECT 1 FROM a" + " CROSS JOIN b" * LEVELS,
        "WITH a AS (" * LEVELS + "SELECT 1" + ") SELECT 1" * LEVELS,
    ],
    ids=lambda sql: sql[:20],
)
def test_what_is_deep_is_refused_as_too_complex(sql: str) -> None:
    with pytest.raises(StatementTooComplex):
        parse(sql)


PIECES = ("'", '"', "$a$b", "/*", "--\n", "E'", "values (1),", "(", "1.")


@pytest.mark.parametrize("piece", sampled(PIECES, 4))
def test_a_long_text_takes_time_in_proportion(piece: str) -> None:
    """Eight times the text may take eight times as long, and a few more; not sixty-four times.

    The bound is halfway between, because other work on the machine slows either measurement.
    """
    short, long = (best_of(piece * (length // len(piece))) for length in (5_000, 40_000))
    assert long < 30 * max(short, step_seconds() / 2)


def best_of(sql: str) -> float:
    return min(seconds_of(lambda: survive(sql)) for _ in range(3))
