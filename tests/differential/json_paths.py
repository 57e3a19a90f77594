"""Random SQL/JSON paths on random documents, compared with PostgreSQL.

`python -m tests.differential.json_paths 5000` compares so many paths. A path is printed, run by
each function on a document, with errors and silently, and asked for by the operators.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

import trio

from tests.differential.engines import Outcome, Postgres, Qserver, opened_postgres
from tests.sql.databases import opened_sql

KEYS: Final = ("a", "b", "c", "long key", "é", "type")
TEXTS: Final = (
    *("", "a", "abc", "ABC\nd", "12", "1.5e1", "nan", "x" * 20, "\u00fc", 'q"\\', "a.c"),
    *("2020-01-31", "12:34:56", "12:34:56+02", "2020-01-31 12:34:56", "2020-01-31T12:34:56-05:30"),
    *("2019-12-31 23:00:00+00", "31.01.2020", "2020-02-31", "12:34", "2020-01-31 12:34:56.789"),
)
NUMBERS: Final = ("0", "1", "2", "-1", "3.50", "-2.5", "1e3", "0.001", "12345678901234567890", "7")
TEMPLATES: Final = (
    *("dd.mm.yyyy", "HH24:MI", "yyyy-mm-dd", "yyyy-mm-dd HH24:MI:SS", "HH24:MI:SSTZH", "HH24#MI"),
    *('yyyy-mm-dd"T"HH24:MI:SSTZH:TZM', "", "aaa", "SS"),
)
REGEXES: Final = ("^a", "b.*d", "C$", "[0-9]+", "a.c", "(", "^d", "")
STARTS: Final = ('"a"', "$x", '""', '"12"')
FLAGS: Final = ("", "", "i", "s", "m", "ism", "q", "iq", "x", "z")
COMPARISONS: Final = ("==", "!=", "<>", "<", "<=", ">", ">=")
METHODS: Final = ("type", "size", "abs", "floor", "ceiling", "double", "keyvalue", "datetime")
VARIABLES: Final = {"x": 1, "y": [1, "abc", None], "z": {"a": {"b": 2}}, "a b": "abc"}
FUNCTIONS: Final = ("exists", "match", "query_array", "query_first")


class Drawing:
    """Draws documents and paths."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.in_filter = self.in_position = 0

    def one_of(self, *choices: Callable[[], str]) -> str:
        return self.random.choice(choices)()

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    # --- documents -------------------------------------------------------------------------------

    def document(self, depth: int = 4) -> str:
        kind = self.random.choice(("scalar", "array", "object", "object") if depth else ("scalar",))
        if kind == "array":
            parts = [self.document(depth - 1) for _ in range(self.random.randrange(4))]
            return f"[{', '.join(parts)}]"
        if kind == "object":
            keys = self.random.sample(KEYS, self.random.randrange(4))
            members = [f"{json.dumps(key)}: {self.document(depth - 1)}" for key in keys]
            return f"{{{', '.join(members)}}}"
        return self.one_of(
            lambda: self.random.choice(("null", "true", "false")),
            lambda: self.random.choice(NUMBERS),
            lambda: json.dumps(self.random.choice(TEXTS)),
        )

    # --- paths -----------------------------------------------------------------------------------

    def path(self) -> str:
        mode = self.random.choice(("", "", "lax ", "strict ", "strict "))
        body = self.predicate(3) if self.chance(0.25) else self.expression(3)
        if self.chance(0.03):
            body = self.broken(body)
        return mode + body

    def broken(self, text: str) -> str:
        """Leave out, double or exchange a character."""
        at = self.random.randrange(len(text))
        put = self.random.choice(("", text[at] * 2, self.random.choice('()[].?@$*!&|="\\ 1a,')))
        return text[:at] + put + text[at + 1 :]

    def expression(self, depth: int) -> str:
        if depth and self.chance(0.2):
            return self.one_of(
                lambda: f"{self.random.choice('+-')}{self.expression(depth - 1)}",
                lambda: f"({self.expression(depth - 1)})",
                lambda: self.arithmetic(depth),
                lambda: self.arithmetic(depth),
            )
        return self.chain(depth)

    def arithmetic(self, depth: int) -> str:
        left, right = self.expression(depth - 1), self.expression(depth - 1)
        return f"{left} {self.random.choice('+-*/%')} {right}"

    def chain(self, depth: int) -> str:
        head = self.head(depth)
        steps = [self.step(depth) for _ in range(self.random.choice((0, 1, 1, 2, 2, 3)))]
        if head[0] in "0123456789" and steps:
            head = f"({head})"
        return head + "".join(steps)

    def head(self, depth: int) -> str:
        if self.in_position and self.chance(0.4):
            return "last"
        if self.in_filter and self.chance(0.7):
            return "@"
        if self.chance(0.7):
            return "$"
        return self.one_of(
            lambda: self.random.choice(NUMBERS).lstrip("-"),
            lambda: json.dumps(self.random.choice(TEXTS), ensure_ascii=False),
            lambda: self.random.choice(("null", "true", "false")),
            lambda: self.random.choice(("$x", "$y", "$z", '$"a b"', "$x", "$none")),
            lambda: f"({self.expression(depth - 1) if depth else '1'})",
            lambda: f"({self.predicate(depth - 1) if depth else '1 == 1'})" + ".type()",
        )

    def step(self, depth: int) -> str:
        key = self.random.choice(KEYS)
        steps = [
            *(lambda: f".{json.dumps(key)}" if " " in key else f".{key}",) * 5,
            *(lambda: ".*", lambda: "[*]", lambda: "[*]", self.levels, self.method, self.method),
        ]
        if depth:
            steps += [lambda: self.positions(depth), *(lambda: self.filter(depth),) * 2]
        return self.one_of(*steps)

    def levels(self) -> str:
        first, last = (self.random.choice(("0", "1", "2", "last")) for _ in range(2))
        return self.random.choice((".**", f".**{{{first}}}", f".**{{{first} to {last}}}"))

    def method(self) -> str:
        name = self.random.choice(METHODS)
        template = ""
        if name == "datetime" and self.chance(0.6):
            template = json.dumps(self.random.choice(TEMPLATES))
        return f".{name}({template})"

    def positions(self, depth: int) -> str:
        self.in_position += 1
        ranges = []
        for _ in range(self.random.choice((1, 1, 2))):
            first = self.position(depth)
            ranges.append(f"{first} to {self.position(depth)}" if self.chance(0.3) else first)
        self.in_position -= 1
        return f"[{', '.join(ranges)}]"

    def position(self, depth: int) -> str:
        if self.chance(0.6):
            return self.random.choice(("0", "1", "2", "last", "last - 1", "1.7", "-1"))
        return self.expression(depth - 1)

    def filter(self, depth: int) -> str:
        self.in_filter += 1
        text = f" ? ({self.predicate(depth - 1)})"
        self.in_filter -= 1
        return text

    def predicate(self, depth: int) -> str:
        if depth and self.chance(0.4):
            inner = depth - 1
            return self.one_of(
                lambda: f"{self.predicate(inner)} && {self.predicate(inner)}",
                lambda: f"{self.predicate(inner)} || {self.predicate(inner)}",
                lambda: f"!({self.predicate(inner)})",
                lambda: f"({self.predicate(inner)})",
                lambda: f"({self.predicate(inner)}) is unknown",
                lambda: f"exists({self.expression(inner)})",
            )
        compare = self.random.choice(COMPARISONS)
        left = self.expression(max(depth - 1, 0))
        if self.chance(0.1):
            flags = self.random.choice(FLAGS)
            pattern = json.dumps(self.random.choice(REGEXES))
            return f"{left} like_regex {pattern}" + (f' flag "{flags}"' if flags else "")
        if self.chance(0.1):
            return f"{left} starts with {self.random.choice(STARTS)}"
        return f"{left} {compare} {self.expression(max(depth - 1, 0))}"


@dataclass(frozen=True, slots=True)
class Case:
    path: str
    document: str


def drawn(seed: int, count: int) -> Iterator[Case]:
    for number in range(count):
        drawing = Drawing(Random(f"{seed} {number}"))
        yield Case(drawing.path(), drawing.document())


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def statements_of(case: Case) -> list[str]:
    path, document = quoted(case.path), quoted(case.document)
    variables = quoted(json.dumps(VARIABLES))
    zone = "_tz" if len(case.path) % 4 == 0 else ""
    calls = [f"jsonb_path_{name}{zone}({document}, {path}, {variables}" for name in FUNCTIONS]
    both = f"{document}::jsonb @? {path}, {document}::jsonb @@ {path}"
    return [
        f"SELECT {', '.join(f'{call}, true)' for call in calls)}",
        *(f"SELECT {call})" for call in calls[:3]),
        f"SELECT {both}",
    ]


def same(one: Outcome, other: Outcome) -> bool:
    if one.error is not None or other.error is not None:
        return (one.error, one.message) == (other.error, other.message)
    return one.rows == other.rows


async def differences(postgres: Postgres, qserver: Qserver, case: Case) -> list[str]:
    """Return what differs, statement by statement."""
    found = []
    printed = f"SELECT {quoted(case.path)}::jsonpath::text"
    theirs, ours = postgres.run(printed), await qserver.run(printed)
    if not same(theirs, ours) and ours.error is None:
        # PostgreSQL leaves out parentheses that it needs: what it prints may be another path.
        again = postgres.run(f"SELECT {quoted(str(ours.rows[0][0]))}::jsonpath::text")
        theirs, ours = (theirs, again) if not same(theirs, again) else (ours, ours)
    if not same(theirs, ours):
        found.append(_told(printed, theirs, ours))
    for sql in statements_of(case):
        theirs, ours = postgres.run(sql), await qserver.run(sql)
        if not same(theirs, ours):
            found.append(_told(sql, theirs, ours))
    return found


def _told(sql: str, theirs: Outcome, ours: Outcome) -> str:
    return f"{sql}\n  PostgreSQL: {theirs}\n  qserver: {ours}"


async def compare(seed: int, count: int, postgres: Postgres) -> tuple[list[str], dict[str, int]]:
    """Return the differences, and how many of the paths PostgreSQL runs, and refuses."""
    found: list[str] = []
    counts = {"run": 0, "found": 0, "refused": 0}
    async with opened_sql() as database:
        qserver = Qserver(database)
        for case in drawn(seed, count):
            found += await differences(postgres, qserver, case)
            outcome = postgres.run(statements_of(case)[3])
            counts["refused" if outcome.error else "run"] += 1
            counts["found"] += outcome.rows not in ((), (("[]",),))
    return found, counts


async def run(arguments: list[str]) -> int:
    count, seed = map(int, (arguments + ["1000", "1"][len(arguments) :])[:2])
    with opened_postgres() as postgres:
        found, counts = await compare(seed, count, postgres)
    print("\n".join(found[:40]))
    print(f"{count} paths, {count * 6} statements, {counts}, {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(trio.run(run, sys.argv[1:]))
