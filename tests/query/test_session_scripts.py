"""Golden scripts of sessions: each runs on one connection, here and on PostgreSQL.

A statement whose answer is another on PostgreSQL has a line `# PostgreSQL: …` above it, which says
why.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from qserver.errors import QserverError
from qserver.values.zones import InSessionZone
from tests.differential.engines import (
    NoOracle,
    Outcome,
    Postgres,
    fresh_database,
    outcome_of,
    started_postgres,
)
from tests.given import GIVEN
from tests.query.connections import Connection
from tests.sql.databases import opened_sql
from tests.sql.golden import Case, answer_of, parse_script, print_script, same

FOLDER = Path(__file__).parent / "session_scripts"
SCRIPTS = sorted(FOLDER.glob("*.script"))
DIFFERENT = "# PostgreSQL:"


def cases_of(path: Path) -> tuple[list[Case], list[str]]:
    return parse_script(path.read_text(encoding="utf-8"))


async def answered(connection: Connection, sql: str) -> list[str]:
    try:
        result = await connection.run(sql)
    except QserverError as error:
        lines = [f"error {error.code}: {error.message}"]
        if error.detail:
            lines += [f"  detail: {line}" for line in error.detail.splitlines()]
        return [*lines, f"  hint: {error.hint}"] if error.hint else lines
    with InSessionZone(connection.session.settings.zone):
        return answer_of(result)


@pytest.mark.long
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
async def test_a_script_of_a_session_answers_as_it_says(path: Path) -> None:
    cases, rest = cases_of(path)
    writing = GIVEN.get("QSERVER_GOLDEN") == "write"
    async with opened_sql() as database:
        connection = Connection(database)
        for number, case in enumerate(cases, 1):
            found = await answered(connection, case.sql)
            if writing:
                case.answer = found
                continue
            assert same(case.answer, found), f"statement {number}: {case.sql}\n" + "\n".join(
                ["expected:", *case.answer, "found:", *found]
            )
    if writing:
        path.write_text(print_script(cases, rest), encoding="utf-8")  # noqa: ASYNC240


@pytest.fixture(scope="module")
def postgres_server() -> Iterator[object]:
    try:
        with started_postgres() as server:
            yield server
    except NoOracle:
        pytest.skip("there is no PostgreSQL here")


def told(outcome: Outcome) -> str:
    """What is compared: the code of an error, or names, values and the number of changed rows."""
    if outcome.error is not None:
        return f"error {outcome.error}"
    rows = [" | ".join("NULL" if each is None else each for each in row) for row in outcome.rows]
    changed = f"{outcome.affected} changed" if outcome.affected else ""
    return "\n".join([changed, " | ".join(outcome.columns), *rows])


@pytest.mark.long
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
async def test_a_script_of_a_session_answers_as_postgresql(
    path: Path, postgres_server: object
) -> None:
    cases, _ = cases_of(path)
    with fresh_database(postgres_server) as oracle:
        async with opened_sql() as database:
            connection = Connection(database)
            found = [
                await differences(number, case, oracle, connection)
                for number, case in enumerate(cases, 1)
            ]
    assert "\n".join(filter(None, found)) == ""


async def differences(number: int, case: Case, oracle: Postgres, connection: Connection) -> str:
    wanted = oracle.run(case.sql)
    try:
        result = await connection.run(case.sql)
    except QserverError as error:
        found = Outcome(error.code, error.message)
    else:
        with InSessionZone(connection.session.settings.zone):
            found = outcome_of(result, case.sql)
    is_same = told(found) == told(wanted)
    says_so = any(line.startswith(DIFFERENT) for line in case.before)
    if is_same != says_so:
        return ""
    if is_same:
        return f"statement {number} is the same: {case.sql}"
    return (
        f"statement {number}: {case.sql}\nhere: {told(found)} {found.message}\n"
        f"PostgreSQL: {told(wanted)} {wanted.message}"
    )
