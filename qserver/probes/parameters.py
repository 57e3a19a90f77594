"""Probes of parameters: the server binds them and never splices them into the text."""

from __future__ import annotations

from typing import Final

from qserver.errors import QserverError
from qserver.probes.run import Probe, Run
from qserver.probes.steps import changes, does, fails, gives

CATEGORY: Final = "parameters"
INJECTION: Final = "x'); DROP TABLE people; --"
PEOPLE: Final = (
    does("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)"),
    changes("INSERT INTO people VALUES (1, 'Ada'), (2, 'Bob')", 2),
)


async def named_statements(run: Run) -> None:
    """A statement that is kept keeps its columns, and takes parameters by name only."""
    await run.perform(*PEOPLE)
    kept = await run.database.describe("SELECT * FROM people WHERE name = :who")
    await run.perform(
        does("ALTER TABLE people ADD COLUMN secret TEXT DEFAULT 'x'"),
        gives(kept.sql, "1 | Ada", parameters={"who": "Ada"}),
        gives(kept.sql, parameters={"who": INJECTION}),
    )
    run.check("the parameters of the statement", kept.parameters == ("who",), str(kept.parameters))
    for sql in (
        "SELECT id FROM nowhere",
        "SELECT id FROM people WHERE id = $1",
        "DROP TABLE people",
    ):
        try:
            await run.database.describe(sql)
        except QserverError as error:
            run.check(sql, True, f"refused: {error}")
        else:
            run.check(sql, False, "nothing wrong")


PROBES: Final = (
    Probe(
        "parameters_question_mark",
        CATEGORY,
        "Parameters written as ?, given as an array.",
        (
            *PEOPLE,
            gives(
                "SELECT name FROM people WHERE id = ? AND name <> ?", "Bob", parameters=[2, "Eve"]
            ),
            changes("INSERT INTO people VALUES (?, ?)", 1, [3, None]),
            gives("SELECT name FROM people WHERE id = 3", "NULL"),
        ),
    ),
    Probe(
        "parameters_numbered",
        CATEGORY,
        "Parameters written as $1, $2, in any order and more than once.",
        (
            *PEOPLE,
            gives("SELECT $2 || $1 || $2, $1", "bab | a", parameters=["a", "b"]),
            gives(
                "SELECT id FROM people WHERE id = $1 OR id = $1 + 1 ORDER BY 1",
                "1",
                "2",
                parameters=[1],
            ),
        ),
    ),
    Probe(
        "parameters_named",
        CATEGORY,
        "Parameters written as :name, given as an object.",
        (
            *PEOPLE,
            gives("SELECT id FROM people WHERE name = :who", "1", parameters={"who": "Ada"}),
            fails("SELECT id FROM people WHERE name = :who", "08P01", {"whom": "Ada"}),
        ),
    ),
    Probe(
        "parameters_injection",
        CATEGORY,
        "Text that looks like SQL stays a value.",
        (
            *PEOPLE,
            gives("SELECT id FROM people WHERE name = ?", parameters=["' OR '1'='1"]),
            changes("INSERT INTO people VALUES (3, ?)", 1, [INJECTION]),
            gives("SELECT name FROM people WHERE name = $1", INJECTION, parameters=[INJECTION]),
            gives("SELECT count(*) FROM people", "3"),
        ),
    ),
    Probe(
        "parameters_types",
        CATEGORY,
        "A parameter takes the type of its place: dates, JSON, arrays, exact numbers.",
        (
            gives("SELECT $1::date + 1", "2024-03-01", parameters=["2024-02-29"]),
            gives("SELECT $1::jsonb -> 'a'", "[1, 2]", parameters=[{"a": [1, 2]}]),
            gives("SELECT 2 = ANY ($1::integer[])", "t", parameters=[[1, 2, 3]]),
            gives("SELECT $1::numeric * 3", "0.30", parameters=["0.10"]),
            fails("SELECT $1::integer", "22P02", ["seven"]),
        ),
    ),
    Probe(
        "named_statements",
        CATEGORY,
        "Statements kept by name, for keys that run no other: checked when kept, columns fixed.",
        named_statements,
    ),
    Probe(
        "parameters_count",
        CATEGORY,
        "One parameter too many or too few is refused.",
        (
            fails("SELECT ?::integer", "08P01"),
            fails("SELECT ?::integer", "08P01", [1, 2]),
            gives("SELECT ?::integer", "1", parameters=[1]),
        ),
    ),
)
