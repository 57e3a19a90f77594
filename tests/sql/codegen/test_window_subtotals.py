"""Moving sums, counts and averages are what each frame alone would give."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from qserver.sql.codegen import window_functions, window_subtotals
from tests.sql.databases import opened_sql

CALLS = ("sum(i)", "sum(b)", "sum(n)", "sum(m)", "avg(i)", "avg(n)", "count(*)", "count(n)")
FRAMES = (
    "ORDER BY i RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING",
    "ORDER BY i DESC RANGE BETWEEN 3 PRECEDING AND 1 PRECEDING",
    "ORDER BY d RANGE BETWEEN INTERVAL '1 month' PRECEDING AND CURRENT ROW",
    "ORDER BY id ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING",
    "PARTITION BY p ORDER BY i NULLS FIRST GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
async def test_subtotals_give_what_each_frame_gives(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = Random(seed)
    rows = []
    for number in range(150):
        i, n, m = [chance.choice((*values, "NULL")) for values in (range(-4, 5), _SAME, _OTHERS)]
        day = chance.randrange(1, 28)
        rows.append(f"({number}, {number % 3}, {i}, {n}, {m}, {10**18 * 9}, '2020-02-{day}')")
    used: list[bool] = []

    def counting(*arguments: Any) -> Any:
        found = original(*arguments)
        used.append(found is not None)
        return found

    original = window_subtotals.subtotals_of
    queries = [
        f"SELECT id, {call} OVER ({frame}), {call} FILTER (WHERE p > 0) OVER ({frame}) FROM w"
        " ORDER BY id"
        for call in CALLS
        for frame in FRAMES
    ]
    async with opened_sql() as database:
        await database.execute(
            "CREATE TABLE w (id int PRIMARY KEY, p int, i int, n numeric, m numeric, b bigint,"
            " d date)"
        )
        await database.execute(f"INSERT INTO w VALUES {', '.join(rows)}")
        monkeypatch.setattr(window_functions, "subtotals_of", counting)
        found = [(await database.execute(sql)).rows for sql in queries]
        monkeypatch.setattr(window_functions, "subtotals_of", lambda *arguments: None)
        expected = [(await database.execute(sql)).rows for sql in queries]
    assert list(map(str, found)) == list(map(str, expected))
    assert True in used and False in used, "numerics of several scales have no subtotals"


_SAME = ("1.10", "2.25", "-3.00")
_OTHERS = ("1.1", "2.25", "-3", "'NaN'")
