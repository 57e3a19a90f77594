"""The iterations of a recursion pause as other loops do: by their work, not each time."""

from __future__ import annotations

import pytest

from qserver.query.request import Request
from tests.sql.databases import opened_sql

COUNT = (
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5000)"
    " SELECT max(n) FROM r"
)


async def test_short_iterations_share_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = 0
    check = Request.check

    def noted(request: Request) -> None:
        nonlocal pauses
        pauses += 1
        check(request)

    async with opened_sql() as database:
        monkeypatch.setattr(Request, "check", noted)
        result = await database.execute(COUNT)
    assert result.rows == [(5000,)]
    assert 1 < pauses < 500
