"""What a statement is answered beside its rows: whether it has columns, notices, its tag.

A script of statements runs on one connection, here and on PostgreSQL. A statement whose answer is
another on PostgreSQL has a line `# PostgreSQL: …` above it, which says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.differential.engines import NoOracle, started_postgres
from tests.given import GIVEN
from tests.pgwire.serving import serving
from tests.pgwire.wire import SYNC, Message, Wire, bind, describe, execute, parse
from tests.sql.golden import parse_script, print_script

SCRIPT = Path(__file__).parent / "tags_and_notices.script"
DIFFERENT = "# PostgreSQL:"


def told(messages: list[Message]) -> list[str]:
    """The answer in words; columns and notices come before the tag, in either order."""
    lines: list[str] = []
    for each in messages:
        if each.kind == "T":
            lines.insert(0, "columns")
        elif each.kind in "NE":
            fields = {**dict.fromkeys("SCM", ""), **each.fields()}
            lines.append("{S} {C}: {M}".format(**fields))
            lines += [f"  detail: {line}" for line in fields.get("D", "").splitlines()]
        elif each.kind == "C":
            lines.append(each.body[:-1].decode())
    return lines


@pytest.mark.half
async def test_a_script_of_statements_is_answered_as_it_says() -> None:
    cases, rest = parse_script(SCRIPT.read_text(encoding="utf-8"))
    async with serving() as served, await Wire.enter(served.port) as wire:
        for case in cases:
            found = told(await wire.run(case.sql))
            if GIVEN.get("QSERVER_GOLDEN") == "write":
                case.answer = found
            assert found == case.answer, case.sql
    if GIVEN.get("QSERVER_GOLDEN") == "write":
        SCRIPT.write_text(print_script(cases, rest), encoding="utf-8")


@pytest.mark.half
async def test_the_extended_protocol_answers_the_same() -> None:
    cases, _ = parse_script(SCRIPT.read_text(encoding="utf-8"))
    async with serving() as served, await Wire.enter(served.port) as wire:
        for case in cases:
            asked = parse(case.sql) + bind() + describe() + execute() + SYNC
            found = told(await wire.ask(asked))
            assert found == case.answer, case.sql


@pytest.fixture(scope="module")
def oracle() -> Iterator[Any]:
    psycopg = pytest.importorskip("psycopg")
    try:
        with started_postgres() as server:
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                yield connection.pgconn
    except NoOracle as error:
        pytest.skip(str(error))


@pytest.mark.long
def test_a_script_of_statements_is_answered_as_by_postgresql(oracle: Any) -> None:
    from psycopg.pq import ExecStatus

    notices: list[str] = []
    oracle.notice_handler = lambda result: notices.extend(_lines(result))
    different = []
    for case in parse_script(SCRIPT.read_text(encoding="utf-8"))[0]:
        notices.clear()
        result = oracle.exec_(case.sql.encode())
        lines = list(notices)
        if result.status == ExecStatus.TUPLES_OK:
            lines.insert(0, "columns")
        if result.status == ExecStatus.FATAL_ERROR:
            lines += _lines(result)
        else:
            lines.append((result.command_status or b"").decode())
        says_so = any(line.startswith(DIFFERENT) for line in case.before)
        if (sorted(lines) == sorted(case.answer)) == says_so:
            different.append((case.sql, case.answer, lines))
    assert not different, "\n".join(map(str, different))


def _lines(result: Any) -> list[str]:
    from psycopg.pq import DiagnosticField as Field

    def part(field: Any) -> str:
        return (result.error_field(field) or b"").decode()

    head = f"{part(Field.SEVERITY)} {part(Field.SQLSTATE)}: {part(Field.MESSAGE_PRIMARY)}"
    return [head, *(f"  detail: {line}" for line in part(Field.MESSAGE_DETAIL).splitlines())]
