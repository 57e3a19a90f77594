"""Golden scripts with statements that chance has changed: what comes is a result or an error.

    python -m tests.sql.mutated --runs 1000 --seed 7

Each statement of a script is run, and after it some mutants of it, which see the tables as they are
there. A mutant has tokens removed, swapped, or taken from other statements; lists in parentheses,
names and literals change places with those of others, so that many mutants are valid. It is run
twice, because the second time it may find a plan, or columns as vectors. Half of the databases have
chunks so small that all tables are read by vectors.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import Any, Final

import trio

from qserver.errors import QserverError
from qserver.query.sql_database import SqlDatabase
from tests.sql.databases import opened_sql
from tests.sql.golden import parse_script
from tests.sql.vectors.vectors import tiny_chunks

SCRIPTS: Final = sorted((Path(__file__).parent / "scripts").rglob("*.script"))
TIMEOUT_MS: Final = 4000
TWICE: Final = 0.4
"""The share of mutants that are run twice."""

TOKEN: Final = re.compile(
    r"""
    \$\$.*?\$\$ | [eEbBxX]?'(?:[^']|'')*' | "(?:[^"]|"")*" | [A-Za-z_][\w$]*
    | \d+(?:\.\d+)?(?:[eE][+-]?\d+)? | :: | [<>!=@?&|~*/+%^\#-]+ | \$\d+ | \S
    """,
    re.VERBOSE | re.DOTALL,
)
LITERALS: Final = (
    *("NULL", "1", "0", "-1", "2147483647", "9223372036854775807", "1.5", "1e308", "true", "'NaN'"),
    *("''", "'a'", "'{}'", "'{a,b}'", "'[1,2]'", "'{\"a\":1}'", "'2024-02-29'", "'1 day'"),
    *("'infinity'", "'x'::bytea", "interval '1 month'", "'null'::jsonb", "now()", "DEFAULT", "*"),
    *("ARRAY[1,2]", "ARRAY[]::int[]", "ARRAY[NULL]::text[]", "array[[1,2],[3,4]]", "NULL::int[]"),
    *("ROW(1,'a')", "(1,2)", "(SELECT 1)", "(SELECT NULL)", "$1", "$2", "count(*)", "$1::text"),
)
PARAMETERS: Final[tuple[Any, ...]] = (
    *(1, 0, -1, None, "a", "", 1.5, True, "2024-01-01", {"a": 1}, "[1]", "{1,2}", 10**18, "NaN"),
    *([1, 2], [], ["a", None], [[1, 2], [3, 4]]),
)

Tokens = list[str]


def tokens_of(script: Path) -> list[Tokens]:
    """Its statements, in order."""
    cases, _ = parse_script(script.read_text())
    return [TOKEN.findall(case.sql) for case in cases]


def mutant(chance: Random, tokens: Tokens, others: Sequence[Tokens]) -> Tokens:
    """The statement with one or two changes."""
    tokens = list(tokens)
    for _ in range(chance.choice((1, 1, 1, 2))):
        if tokens:
            chance.choice(CHANGES)(chance, tokens, chance.choice(others))
    return tokens


def _remove(chance: Random, tokens: Tokens, other: Tokens) -> None:
    del tokens[chance.randrange(len(tokens))]


def _repeat(chance: Random, tokens: Tokens, other: Tokens) -> None:
    tokens.insert(chance.randrange(len(tokens)), chance.choice(tokens))


def _swap(chance: Random, tokens: Tokens, other: Tokens) -> None:
    a, b = chance.randrange(len(tokens)), chance.randrange(len(tokens))
    tokens[a], tokens[b] = tokens[b], tokens[a]


def _put_literal(chance: Random, tokens: Tokens, other: Tokens) -> None:
    tokens[chance.randrange(len(tokens))] = chance.choice(LITERALS)


def _change_literal(chance: Random, tokens: Tokens, other: Tokens) -> None:
    _put_at(chance, tokens, r"\d|'", LITERALS)


def _change_name(chance: Random, tokens: Tokens, other: Tokens) -> None:
    _put_at(chance, tokens, "[A-Za-z_]", [each for each in other if re.match("[A-Za-z_]", each)])


def _take_some(chance: Random, tokens: Tokens, other: Tokens) -> None:
    at, start = chance.randrange(len(tokens)), chance.randrange(len(other))
    tokens[at : at + chance.randint(0, 4)] = other[start : start + chance.randint(1, 8)]


def _take_group(chance: Random, tokens: Tokens, other: Tokens) -> None:
    here, there = _groups(tokens), _groups(other)
    if here and there:
        start, stop = chance.choice(there)
        tokens[slice(*chance.choice(here))] = other[start:stop]


CHANGES: Final = (
    *(_remove, _repeat, _swap, _put_literal, _take_some),
    *(_change_literal,) * 5,
    *(_change_name,) * 3,
    *(_take_group,) * 4,
)
"""Those that leave most statements valid come more often."""


def _put_at(chance: Random, tokens: Tokens, where: str, things: Sequence[str]) -> None:
    places = [at for at, token in enumerate(tokens) if re.match(where, token)]
    if places and things:
        tokens[chance.choice(places)] = chance.choice(things)


def _groups(tokens: Tokens) -> list[tuple[int, int]]:
    """Where parentheses and brackets open, and behind where they close."""
    found, opened = [], []
    for at, token in enumerate(tokens):
        if token in ("(", "["):
            opened.append(at)
        elif token in (")", "]") and opened:
            found.append((opened.pop(), at + 1))
    return found


def parameters(chance: Random, sql: str) -> list[Any] | None:
    count = max((int(each) for each in re.findall(r"\$(\d)(?!\d)", sql)), default=0)
    return [chance.choice(PARAMETERS) for _ in range(count)] or None


async def outcome(database: SqlDatabase, sql: str, given: list[Any] | None = None) -> str:
    """The code of the error, or that there was none. Other exceptions pass."""
    try:
        await database.execute(sql, given, timeout_ms=TIMEOUT_MS)
    except QserverError as error:
        assert not error.code.startswith("XX"), (sql, given)
        return error.code
    except Exception as error:
        error.add_note(f"{sql}\n{given}")
        raise
    return "00000"


async def run(script: Path, seed: int, mutants: int) -> Counter[str]:
    """Run a script with so many mutants of each statement at most; count their outcomes."""
    chance = Random(seed)
    statements = tokens_of(script)
    others = [tokens for tokens in statements if len(tokens) > 1]
    found: Counter[str] = Counter()
    with tiny_chunks() if chance.random() < 0.5 else nullcontext():
        async with opened_sql() as database:
            for tokens in statements:
                await outcome(database, " ".join(tokens))
                for _ in range(chance.randint(0, mutants)):
                    sql = " ".join(mutant(chance, tokens, others))
                    given = parameters(chance, sql)
                    for _ in range(1 + (chance.random() < TWICE)):
                        found[await outcome(database, sql, given)] += 1
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sql.mutated")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found: Counter[str] = Counter()
    for seed in range(options.seed, options.seed + options.runs):
        script = Random(seed).choice(SCRIPTS)
        try:
            found += trio.run(run, script, seed, 6)
        except BaseException:
            print(f"seed {seed}, {script.name}", file=sys.stderr)
            raise
    print(f"{found.total():,} mutants, {found['00000']:,} answered")
    return 0


if __name__ == "__main__":
    sys.exit(main())
