"""Golden scripts: statements, and below each what it must answer.

    # Text after a hash is for the reader.
    > CREATE TABLE t (a INT PRIMARY KEY, b TEXT)
    ok
    > INSERT INTO t VALUES (1, 'one'), (2, NULL)
    2 changed
    > SELECT a, b
    > FROM t ORDER BY a
    a | b
    1 | one
    2 | NULL
    > SELECT c FROM t
    error 42703: column "c" does not exist

A statement is one or more lines that begin with `>`; the answer is every line up to the next
statement, comment or empty line. `sorted` before an answer's rows says that their order is free. A
script runs on a database of its own, from the first line to the last.

To write the answers of a script anew, run its tests with QSERVER_GOLDEN=write and read the diff.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from qserver.errors import QserverError
from qserver.query.sql_database import Result, SqlDatabase
from qserver.values.text_output import text_function
from qserver.values.types import SqlType


@dataclass(slots=True)
class Case:
    """One statement of a script, with the lines around it."""

    before: list[str] = field(default_factory=list)
    statement: list[str] = field(default_factory=list)
    answer: list[str] = field(default_factory=list)

    @property
    def sql(self) -> str:
        return "\n".join(line[1:].removeprefix(" ") for line in self.statement)


def parse_script(text: str) -> tuple[list[Case], list[str]]:
    """The cases, and what stands after the last."""
    cases: list[Case] = []
    waiting: list[str] = []
    in_answer = False
    for line in text.splitlines():
        if line.startswith(">"):
            if not cases or in_answer or waiting or cases[-1].answer:
                cases.append(Case(waiting))
                waiting = []
            cases[-1].statement.append(line)
            in_answer = False
        elif not line.strip() or line.startswith("#"):
            waiting.append(line)
            in_answer = True
        else:
            cases[-1].answer.append(line)
    return cases, waiting


def print_script(cases: list[Case], rest: list[str]) -> str:
    lines = [
        line for case in cases for line in (*case.before, *case.statement, *case.answer)
    ] + rest
    return "\n".join(lines) + "\n"


async def answer(database: SqlDatabase, sql: str) -> list[str]:
    """What a statement comes to, as lines of a script."""
    try:
        result = await database.execute(sql)
    except QserverError as error:
        lines = [f"error {error.code}: {error.message}"]
        if error.detail:
            lines += [f"  detail: {line}" for line in error.detail.splitlines()]
        if error.hint:
            lines.append(f"  hint: {error.hint}")
        return lines
    return answer_of(result)


def answer_of(result: Result) -> list[str]:
    lines = []
    if result.affected_rows or not result.columns:
        changed = result.affected_rows
        lines.append(f"{changed} changed" if changed else "ok")
    if result.columns:
        lines.append(" | ".join(result.columns))
        writers = [text_function(sql_type) for sql_type in result.types]
        for row in result.rows:
            values = zip(row, writers, result.types, strict=True)
            lines.append(" | ".join(_shown(*each) for each in values))
    return lines


def _shown(value: Any, write: Any, sql_type: SqlType) -> str:
    if value is None:
        return "NULL"
    text: str = write(value)
    return text if text.strip() == text and text else f"'{text}'"


def same(expected: list[str], found: list[str]) -> bool:
    if expected[:1] == ["sorted"]:
        return sorted(expected[1:]) == sorted(found)
    return expected == found
