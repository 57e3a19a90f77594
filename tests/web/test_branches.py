"""A transaction on a new branch: what it takes in all counts toward its timeout."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from qserver.errors import QueryCanceled
from qserver.query.sql_database import RunOptions
from qserver.web.branches import run_on_branch


class SlowPlane:
    """Takes its time to make a branch, and remembers what is there."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.branches: set[str] = set()
        self.timeouts: list[float | None] = []

    @property
    def records(self) -> SlowPlane:
        return self

    async def create_for_transaction(self, grant: Any, database: str) -> Any:
        await trio.sleep(self._seconds)
        self.branches.add("b")
        return SimpleNamespace(id="b", name="branch")

    async def delete(self, grant: Any, database: str) -> None:
        await trio.lowlevel.checkpoint()
        self.branches.remove(database)

    async def database(self, grant: Any, database: str) -> Any:
        await trio.lowlevel.checkpoint()
        return self._opened()

    async def wait_fresh(self, *_: Any) -> None:
        await trio.lowlevel.checkpoint()

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        yield SimpleNamespace(sql=self)

    async def transaction(self, statements: Any, *, timeout_ms: float | None, **_: Any) -> str:
        await trio.lowlevel.checkpoint()
        self.timeouts.append(timeout_ms)
        return "done"


async def run(plane: Any, timeout_ms: float | None) -> Any:
    grant: Any = None
    return await run_on_branch(plane, grant, "a", [], RunOptions(timeout_ms=timeout_ms))


async def test_making_the_branch_counts_toward_the_timeout(autojump_clock: object) -> None:
    plane = SlowPlane(2.0)
    assert await run(plane, 3000) == ("branch", "done")
    assert plane.timeouts == [pytest.approx(1000)] and plane.branches == {"b"}
    assert await run(plane, None) == ("branch", "done")
    assert plane.timeouts[1] is None


async def test_a_branch_that_took_too_long_to_make_is_none(autojump_clock: object) -> None:
    plane = SlowPlane(2.0)
    with pytest.raises(QueryCanceled):
        await run(plane, 1500)
    assert plane.branches == set() and plane.timeouts == []
