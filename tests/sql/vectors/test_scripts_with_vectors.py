"""Every golden script answers the same when all tables are large enough for vectors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sampling import sampled
from tests.sql.databases import opened_sql
from tests.sql.golden import answer, parse_script, same
from tests.sql.vectors.vectors import tiny_chunks

SCRIPTS = sorted((Path(__file__).parent.parent / "scripts").rglob("*.script"))


@pytest.mark.parametrize("path", sampled(SCRIPTS, 12), ids=lambda path: path.stem)
async def test_a_script_answers_as_it_says(path: Path) -> None:
    cases, _ = parse_script(path.read_text())  # noqa: ASYNC240  # a small file, in a test
    with tiny_chunks():
        async with opened_sql() as database:
            for case in cases:
                found = await answer(database, case.sql)
                if not case.sql.startswith("EXPLAIN"):
                    assert same(case.answer, found), f"{case.sql}\n{found}"
