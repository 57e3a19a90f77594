"""Whatever comes, there is a result or an error of ours, in bounded time and without recursion."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qserver.errors import QserverError, StatementTooComplex
from qserver.lexing.fingerprint import parameterize
from qserver.lexing.keywords import KEYWORDS, NEIGHBOURS
from qserver.sql.parser import parse, parse_expression
from tests.known_work import calls_of, least_steps
from tests.sampling import NIGHTLY, sampled

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


@settings(max_examples=400 if NIGHTLY else 50)
@given(
    st.lists(st.sampled_from(WORDS), max_size=15), st.sampled_from(["", "select ", "alter table "])
)
def test_any_tokens_end_in_a_result_or_an_error_of_ours(words: list[str], head: str) -> None:
    survive(head + " ".join(words))


@settings(max_examples=200 if NIGHTLY else 30)
@given(
    st.lists(st.sampled_from(WORDS), max_size=8), st.sampled_from(["create ", "create table t ("])
)
def test_any_definition_ends_in_a_result_or_an_error_of_ours(words: list[str], head: str) -> None:
    survive(head + " ".join(words))


@pytest.mark.long
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
        "SELECT 1" + " UNION SELECT 1 EXCEPT SELECT 1" * LEVELS,
        "SELECT 1 FROM a" + " CROSS JOIN b" * LEVELS,
        "WITH a AS (" * LEVELS + "SELECT 1" + ") SELECT 1" * LEVELS,
    ],
    ids=lambda sql: sql[:20],
)
def test_what_is_deep_is_refused_as_too_complex(sql: str) -> None:
    with pytest.raises(StatementTooComplex):
        parse(sql)


PIECES = ("'", '"', "$a$b", "/*", "--\n", "E'", "values (1),", "(", "1.")


@pytest.mark.long
@pytest.mark.parametrize("piece", sampled(PIECES, 2))
def test_a_long_text_takes_work_in_proportion(piece: str) -> None:
    """Eight times the text may take eight times the work, and a little more; not sixty-four times.

    Calls are counted. What loops in C is measured: the bound is halfway between, and a machine that
    stumbles over the long text does not do so each time.
    """
    short, long = (piece * (length // len(piece)) for length in (5_000, 40_000))
    survive(short)  # what is made once and kept does not count
    assert calls_of(lambda: survive(long)) < 10 * calls_of(lambda: survive(short))
    most = 30 * max(least_steps(lambda: survive(short)), 0.5)
    assert least_steps(lambda: survive(long), most) < most
