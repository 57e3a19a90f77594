"""Requests that have arrived: whose is handled next, and to whom it is charged.

A server calls connections one after the other in a pass of the loop. While several owners are
there, each of them gets a short time in a pass, and who has used the least is first. So a request
waits for some of each other owner's, and never for the hundreds that one of them has sent.
"""

from __future__ import annotations

from collections.abc import Collection, Coroutine
from typing import Any, TypeVar

from qserver.engine.turns import OWNER, Line, Turns, current_line, in_turns

T = TypeVar("T")


class Arrivals:
    """Owners of requests, for a server that knows none; used in one run of the loop."""

    set_owner, owner = staticmethod(OWNER.set), staticmethod(OWNER.get)

    def __init__(self) -> None:
        self._line: Line | None = None
        self._began = 0.0
        self._turn: Turns | None = None

    @property
    def is_contended(self) -> bool:
        return self._line is not None and self._line.is_contended

    @property
    def strangers(self) -> Turns:
        return current_line().strangers

    def only_owner(self) -> Turns | None:
        line = self._line
        if line is None:
            line = self._line = current_line()
        return line.last

    def meets(self, owner: Turns | None) -> bool:
        assert self._line is not None, "somebody was alone"
        if owner is not None:
            self._line.meet(owner)
        return self._line.is_contended

    def begin(self, owner: Turns) -> None:
        assert self._line is not None, "it is contended"
        OWNER.set(None)
        self._turn = owner
        self._began = self._line.now()

    def end(self) -> Turns:
        line = self._line
        assert line is not None, "it has begun"
        owner = OWNER.get() or line.strangers
        line.step_ended(owner, self._began, is_long=False, turn=self._turn)
        return owner

    def next_of(self, owners: Collection[Turns]) -> Turns | None:
        line = self._line
        assert line is not None, "it is contended"
        for owner in sorted(owners, key=lambda owner: owner.tag):
            if line.admits(owner, among_called=False):
                return owner
        return None

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        return await in_turns(work)
