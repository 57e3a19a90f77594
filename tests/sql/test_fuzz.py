"""Whatever text comes in, a result or an error of ours comes out."""

from __future__ import annotations

from random import Random

import pytest

from qserver.errors import QserverError
from qserver.query.sql_database import SqlDatabase
from tests.sampling import sampled
from tests.sql.databases import opened_sql

STATEMENTS = (
    "SELECT a , count ( * ) FROM t WHERE b > 1 AND s IN ( 'x' , 'y' ) GROUP BY a ORDER BY 2",
    "SELECT t . a , u . a FROM t LEFT JOIN t AS u ON t . a = u . b WHERE u . a IS NULL",
    "SELECT sum ( a ) OVER ( PARTITION BY b ORDER BY a ROWS 2 PRECEDING ) FROM t",
    "WITH c AS ( SELECT a FROM t UNION ALL SELECT 1 ) SELECT * FROM c WHERE a = ( SELECT 1 )",
    "INSERT INTO t ( a , b ) VALUES ( 100 , 2 ) ON CONFLICT ( a ) DO UPDATE SET b = 3 RETURNING *",
    "UPDATE t SET b = b + 1 , s = upper ( s ) WHERE a BETWEEN 1 AND 2 RETURNING a",
    "DELETE FROM t USING t AS u WHERE t . a = u . b AND NOT EXISTS ( SELECT 1 FROM t AS x )",
    "SELECT CASE WHEN a > 1 THEN 'x' ELSE s END , cast ( a AS text ) , a :: numeric FROM t",
    "SELECT DISTINCT ON ( a ) a , b FROM t ORDER BY a , b DESC NULLS LAST FETCH FIRST 2 ROWS ONLY",
)
ALPHABET = "abt 0189'\"$\\;:,.()[]*+-/<>=%|&!?@#~^_\n\té\u2028\x00\ud800"


async def outcome(database: SqlDatabase, sql: str) -> str:
    """The code of the error, or that there was none. Other exceptions pass, and fail the test."""
    try:
        await database.execute(sql, timeout_ms=5000)
    except QserverError as error:
        assert len(error.code) == 5
        return error.code
    return "00000"


async def with_table(database: SqlDatabase) -> None:
    await database.execute("CREATE TABLE t (a INT PRIMARY KEY, b INT, s TEXT)")
    await database.execute("INSERT INTO t VALUES (1, 1, 'x'), (2, NULL, 'y'), (3, 1, NULL)")


def mutated(chance: Random, tokens: list[str]) -> list[str]:
    tokens = list(tokens)
    for _ in range(chance.randint(1, 3)):
        at, other = chance.randrange(len(tokens)), chance.randrange(len(tokens))
        match chance.randrange(4):
            case 0 if len(tokens) > 1:
                del tokens[at]
            case 1:
                tokens.insert(at, tokens[other])
            case 2:
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case _:
                tokens[at] = chance.choice(chance.choice(STATEMENTS).split())
    return tokens


@pytest.mark.parametrize("seed", sampled(range(4), 2))
async def test_changed_statements_end_in_a_result_or_an_error(seed: int) -> None:
    chance = Random(seed)
    async with opened_sql() as database:
        await with_table(database)
        codes = set()
        for _ in range(100):
            tokens = mutated(chance, chance.choice(STATEMENTS).split())
            codes.add(await outcome(database, " ".join(tokens)))
        assert "42601" in codes


async def test_random_characters_end_in_an_error() -> None:
    chance = Random(7)
    async with opened_sql() as database:
        await with_table(database)
        for _ in range(300):
            text = "".join(chance.choices(ALPHABET, k=chance.randint(0, 40)))
            await outcome(database, text)
            whole = chance.choice(STATEMENTS)
            at = chance.randrange(len(whole))
            await outcome(database, whole[:at] + chance.choice(ALPHABET) + whole[at + 1 :])


DEEP_OR_LONG = {
    "parentheses": "SELECT " + "(" * 10_000 + "1" + ")" * 10_000,
    "parentheses_never_closed": "SELECT " + "(" * 10_000,
    "subqueries": "SELECT * FROM " + "(SELECT * FROM " * 200 + "t" + ") AS d" * 200,
    "scalar_subqueries": "SELECT " + "(SELECT " * 200 + "1" + ")" * 200,
    "minus_signs": "SELECT " + "- " * 5000 + "1",
    "nots": "SELECT " + "NOT " * 5000 + "true",
    "casts": "SELECT 1" + "::int" * 5000,
    "additions": "SELECT " + " + ".join(["1"] * 5000),
    "additions_just_allowed": "SELECT " + " + ".join(["a"] * 380) + " FROM t",
    "joins": "SELECT 1 FROM t t0" + "".join(f" JOIN t t{n} USING (a)" for n in range(1, 100)),
    "unions": " UNION ".join(["SELECT 1"] * 190),
    "cases": "SELECT " + "CASE WHEN true THEN " * 500 + "1" + " END" * 500,
    "unfinished_string": "SELECT 'abc",
    "unfinished_name": 'SELECT "abc',
    "unfinished_comment": "SELECT 1 /* abc",
    "unfinished_dollar": "SELECT $x$abc",
    "nul": "SELECT 'a\x00b'",
    "surrogate": "SELECT '\ud800'",
    "surrogate_name": 'SELECT 1 AS "\udfff"',
    "nothing": "",
    "only_a_comment": "-- nothing",
}


@pytest.mark.long
@pytest.mark.parametrize("name", sampled(tuple(DEEP_OR_LONG), 8))
async def test_deep_and_broken_texts_end_in_a_result_or_an_error(name: str) -> None:
    async with opened_sql() as database:
        await with_table(database)
        await outcome(database, DEEP_OR_LONG[name])
        assert (await database.execute("SELECT count(*) FROM t")).rows == [(3,)]


@pytest.mark.long
async def test_long_lists_and_chains_are_answered() -> None:
    async with opened_sql() as database:
        await with_table(database)
        items = ", ".join(map(str, range(10_000)))
        found = await database.execute(f"SELECT count(*) FROM t WHERE a IN ({items})")
        assert found.rows == [(3,)]
        for word, expected in (("OR", 1), ("AND", 0)):
            chain = f" {word} ".join(f"a = {number}" for number in range(3, 5000))
            found = await database.execute(f"SELECT count(*) FROM t WHERE {chain}")
            assert found.rows == [(expected,)]
        wide = await database.execute(f"SELECT {', '.join(['a'] * 500)} FROM t WHERE a = 1")
        assert wide.rows == [(1,) * 500]
