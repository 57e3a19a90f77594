"""Every golden script answers as it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.given import GIVEN
from tests.sql.databases import opened_sql
from tests.sql.golden import answer, parse_script, print_script, same

SCRIPTS = sorted((Path(__file__).parent / "scripts").rglob("*.script"))
NAMES = [str(path.relative_to(Path(__file__).parent / "scripts")) for path in SCRIPTS]


@pytest.mark.parametrize("path", SCRIPTS, ids=NAMES)
async def test_a_script_answers_as_it_says(path: Path) -> None:
    cases, rest = parse_script(path.read_text())  # noqa: ASYNC240  # a small file, in a test
    writing = GIVEN.get("QSERVER_GOLDEN") == "write"
    async with opened_sql() as database:
        for number, case in enumerate(cases, 1):
            found = await answer(database, case.sql)
            if writing:
                case.answer = found
                continue
            assert same(case.answer, found), f"statement {number}: {case.sql}\n" + "\n".join(
                ["expected:", *case.answer, "found:", *found]
            )
    if writing:
        path.write_text(print_script(cases, rest))  # noqa: ASYNC240


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) > 3
