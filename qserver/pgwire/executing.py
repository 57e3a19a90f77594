"""The statements and portals of a session, and how portals run beside each other.

A portal that was not read to its end is suspended, and reads what its transaction had when it
began. A statement that may change that comes after the rows are kept in memory (`make_way`).
"""

from __future__ import annotations

import trio

from qserver.errors import (
    DuplicatePreparedStatement,
    InvalidCursorName,
    InvalidStatementName,
    ProgramLimitExceeded,
)
from qserver.pgwire.limits import PORTALS_MAX, STATEMENTS_MAX
from qserver.pgwire.prepared import Portal, Prepared
from qserver.pgwire.state import State
from qserver.pgwire.tags import tag_of_plan
from qserver.pgwire.texts import Text
from qserver.pgwire.waits import Waits
from qserver.query.analysis import analysing
from qserver.query.plan_cache import CachedPlan
from qserver.query.planning import Prepared as Planned
from qserver.query.results import Statement


class Executing:
    def __init__(self, state: State) -> None:
        self.state = state
        self._statements: dict[str, Prepared] = {}
        self._portals: dict[str, Portal] = {}

    # --- statements ---

    def prepare(self, name: str, sql: str, oids: tuple[int, ...]) -> Waits[None]:
        """Plan a statement, and keep it under a name; the unnamed one replaces the last."""
        if name and name in self._statements:
            raise DuplicatePreparedStatement(f'prepared statement "{name}" already exists')
        if len(self._statements) >= STATEMENTS_MAX and name:
            raise ProgramLimitExceeded(
                f"a session has at most {STATEMENTS_MAX} prepared statements",
                hint="Close those that are not needed.",
            )
        self._statements.pop(name, None)
        block = self.state.block
        opened = block.opened if block.transaction else (yield from self.state.find_database())
        try:
            texts = self.state.host.texts
            text = yield from texts.find(opened.sql.planner, sql, oids)
            found = None
            if text.parameterized is not None:
                statement = Statement(text.sql, None, text.parameterized)
                deadline = trio.current_time() + (self.state.options().timeout_ms or 0) / 1000
                found = yield from analysing(
                    opened.sql, statement, block.transaction, deadline, self.state.scope
                )
            self._statements[name] = Prepared(name, text, found)
        finally:
            if not block.transaction:
                opened.release()

    def statement(self, name: str) -> Prepared:
        found = self._statements.get(name)
        if found is None:
            what = f'prepared statement "{name}"' if name else "unnamed prepared statement"
            raise InvalidStatementName(f"{what} does not exist")
        return found

    def close_statement(self, name: str) -> None:
        self._statements.pop(name, None)

    def close_statements(self) -> None:
        self._statements.clear()

    def tag_of(self, sql: str) -> Waits[str]:
        """Return the word of the tag of a statement that begins with WITH."""
        block = self.state.block
        opened = block.opened if block.transaction else (yield from self.state.find_database())
        try:
            text: Text = yield from self.state.host.texts.find(opened.sql.planner, sql, ())
            statement = Statement(sql, None, text.parameterized)
            deadline = trio.current_time() + (self.state.options().timeout_ms or 0) / 1000
            found: CachedPlan | Planned = yield from analysing(
                opened.sql, statement, block.transaction, deadline, self.state.scope
            )
        finally:
            if not block.transaction:
                opened.release()
        return tag_of_plan(found) if isinstance(found, CachedPlan) else "SELECT"

    # --- portals ---

    def open_portal(self, name: str, portal: Portal) -> None:
        self.close_portal(name)
        if len(self._portals) >= PORTALS_MAX:
            raise ProgramLimitExceeded(
                f"a session has at most {PORTALS_MAX} portals",
                hint="Close those that are not needed.",
            )
        self._portals[name] = portal

    def portal(self, name: str) -> Portal:
        found = self._portals.get(name)
        if found is None:
            raise InvalidCursorName(f'portal "{name}" does not exist')
        return found

    def close_portal(self, name: str) -> None:
        portal = self._portals.pop(name, None)
        if portal is not None:
            portal.close()

    def close_portals(self, *, unless: bool = False) -> None:
        """Close all portals: the transaction that they belong to ends, or goes back."""
        if not unless and self._portals:
            for portal in self._portals.values():
                portal.close()
            self._portals.clear()

    def make_way(self, besides: Portal | None = None) -> Waits[None]:
        """Let suspended portals keep their rows before a statement that may change them."""
        if not self._portals:
            return
        if besides is not None and besides.prepared.reads:
            return
        grant = self.state.grant
        assert grant is not None
        for portal in self._portals.values():
            running = portal.running
            if portal is not besides and running is not None and not running.has_ended:
                yield from running.stand_aside(grant.share.memory)

    # --- the end of a transaction ---

    def commit(self) -> Waits[str]:
        self.close_portals()
        return (yield from self.state.block.commit(self.state.options()))

    def close(self) -> None:
        self.close_portals()
        self._statements.clear()
