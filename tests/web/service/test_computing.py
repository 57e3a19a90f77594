"""Long computations run beside the loop, a few at a time, as long as somebody waits for them."""

from __future__ import annotations

from threading import get_ident
from typing import Any

import pytest
import trio

from qserver.engine.world import Check
from qserver.web.service.computing import compute_in_threads


async def test_it_is_computed_in_another_thread_and_errors_come_back() -> None:
    compute = compute_in_threads()
    assert await compute(lambda check: get_ident()) != get_ident()

    def fail(check: Check) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await compute(fail)


async def test_what_nobody_waits_for_ends_itself() -> None:
    compute = compute_in_threads(1)

    def endless(check: Check) -> Any:
        while True:
            check()

    with trio.move_on_after(0.05) as scope:
        await compute(endless)
    assert scope.cancelled_caught
    assert await compute(lambda check: "the only thread is free again") is not None
