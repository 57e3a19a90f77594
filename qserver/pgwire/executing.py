"""The statements and portals of a session, as the protocol names them.

Prepared statements with a name, and portals that have begun within a transaction, are the
session's own: PREPARE and DECLARE make the same (`query.named_statements`, `query.portals`), and
each way finds those of the other. What only the protocol has, such as formats, is here.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

import trio

from qserver.engine.work import Step
from qserver.errors import InvalidCursorName, InvalidStatementName, ProgramLimitExceeded
from qserver.limits import PORTALS_MAX
from qserver.pgwire.messages import BindReader
from qserver.pgwire.prepared import Portal, Prepared
from qserver.pgwire.rows import RowWriter, row_writer
from qserver.pgwire.state import State
from qserver.pgwire.tags import kind_of
from qserver.pgwire.texts import NO_TYPES, TEXT_LENGTH_MAX, Text
from qserver.pgwire.waits import Waits
from qserver.query.analysis import analysing, definitions
from qserver.query.announced_types import types_with_oids
from qserver.query.named_statement import NamedStatement, held_by_text
from qserver.query.named_statements import check_new, statement_named, tag_of_plan
from qserver.query.plan_cache import CachedPlan
from qserver.query.planning import Prepared as Planned
from qserver.query.results import Statement
from qserver.query.session import Session, portal_named
from qserver.sql import ast, parse
from qserver.values.numbering import FIRST_OID

_COPIES_OF_VALUES: Final = 2
"""Of values in a message: as they came, and as the statement has them."""


def _size_of_unnamed(sql: str) -> int:
    """What the unnamed statement counts as memory: nothing, unless it is long."""
    return held_by_text(sql) if len(sql) > TEXT_LENGTH_MAX else 0


class Executing:
    def __init__(self, state: State) -> None:
        self.state = state
        self.binds = BindReader()
        self._unnamed: Prepared | None = None
        self._named: dict[str, tuple[NamedStatement, Prepared]] = {}
        """What the protocol knows of statements of the session."""
        self._portals: dict[str, Portal] = {}

    @property
    def session(self) -> Session:
        return self.state.settings.session

    # --- statements ---

    def prepare(self, name: str, sql: str, oids: tuple[int, ...]) -> Waits[None]:
        """Plan a statement, and keep it under a name; the unnamed one replaces the last."""
        session = self.session
        last = self._unnamed
        if name:
            check_new(session, name)
        else:
            self._unnamed = None
        block = self.state.block
        opened = block.opened if block.transaction else (yield from self.state.find_database())
        try:
            texts = self.state.host.texts
            deadline = trio.current_time() + (self.state.options().timeout_ms or 0) / 1000
            own_types = NO_TYPES
            if any(oid >= FIRST_OID for oid in oids):
                asked = definitions(opened.sql, block.transaction, deadline, session)
                catalog, _ = yield from asked
                own_types = types_with_oids(oids, catalog)
            text = yield from texts.find(opened.sql.planner, sql, oids, own_types)
            found = None
            if text.parameterized is not None:
                statement = Statement(text.sql, None, text.parameterized)
                found = yield from analysing(
                    opened.sql, statement, block.transaction, deadline, self.session
                )
            if not name and last is not None and last.is_of(text, found):
                self._unnamed = last
                return
            prepared = Prepared(name, text, found, session)
            request = opened.sql.request_of(self.state.options())
            pool = request.environment.pool
            if not name:
                session.statements.hold("", _size_of_unnamed(sql), pool)
                self._unnamed = prepared
                return
            about = name, sql, text.sql, text.parameterized, found, request.now
            named = NamedStatement(*about, from_sql=False)
            session.statements.keep(named, pool)
            self._forget_others()
            self._named[name] = named, prepared
        finally:
            if not block.transaction:
                opened.release()

    def _forget_others(self) -> None:
        """Forget statements that the session has no more: DEALLOCATE does not tell of them."""
        known = self.session.statements
        if len(self._named) > len(known):
            self._named = {
                name: each for name, each in self._named.items() if known.get(name) is each[0]
            }

    def is_prepared(self, body: bytes) -> bool:
        """Return whether the unnamed statement is what this Parse asks for, as it is now."""
        last, state = self._unnamed, self.state
        if last is None or body != last.body or state.block.transaction is not None:
            return False
        plan, opened = last.plan_in(self.session), state.opened_nowait()
        if opened is None:
            return False
        try:
            return plan is not None and opened.sql.beginnings.is_still_good(plan)
        finally:
            opened.release()

    def note_body(self, body: bytes) -> None:
        """Remember the Parse of the unnamed statement, which clients repeat."""
        if self._unnamed is not None:
            self._unnamed.body = body if len(body) <= TEXT_LENGTH_MAX else b""

    @property
    def has_portals(self) -> bool:
        return bool(self._portals or self.session.portals)

    def statement(self, name: str) -> Prepared:
        if not name:
            if self._unnamed is None:
                raise InvalidStatementName("unnamed prepared statement does not exist")
            return self._unnamed
        known = self._named.get(name)
        named = self.session.statements.get(name)
        if known is None or known[0] is not named:
            named = statement_named(self.session, name)
            text = Text(named.text, kind_of(named.text), named.parameterized)
            known = self._named[name] = named, Prepared(name, text, named.found, self.session)
        return known[1]

    def has(self, prepared: Prepared, named: NamedStatement | None) -> bool:
        """Return whether the session still has a statement as it was, under the same name."""
        if named is None:
            return self._unnamed is prepared
        return self.session.statements.get(named.name) is named

    def close_statement(self, name: str) -> None:
        if name:
            self.session.statements.drop(name)
            self._named.pop(name, None)
        else:
            self.session.statements.hold("", 0, None)
            self._unnamed = None

    def tag_of(self, sql: str) -> Waits[str]:
        """Return the word of the tag of a statement that begins with WITH."""
        block = self.state.block
        opened = block.opened if block.transaction else (yield from self.state.find_database())
        try:
            text: Text = yield from self.state.host.texts.find(opened.sql.planner, sql)
            statement = Statement(sql, None, text.parameterized)
            deadline = trio.current_time() + (self.state.options().timeout_ms or 0) / 1000
            found: CachedPlan | Planned = yield from analysing(
                opened.sql, statement, block.transaction, deadline, self.session
            )
        finally:
            if not block.transaction:
                opened.release()
        return tag_of_plan(found) if isinstance(found, CachedPlan) else "SELECT"

    def declares_outside(self, text: str) -> bool:
        """Return whether a text is a DECLARE that makes sense in a transaction block only."""
        statement = parse(text).statement
        return isinstance(statement, ast.Declare) and not statement.hold

    # --- portals ---

    def open_portal(self, name: str, portal: Portal, size: int = 0) -> None:
        """Keep a portal; `size` is that of its message."""
        if self.has_portals:
            self.close_portal(name)
        if len(self._portals) >= PORTALS_MAX:
            raise ProgramLimitExceeded(
                f"a session has at most {PORTALS_MAX} portals",
                hint="Close those that are not needed.",
            )
        if size > TEXT_LENGTH_MAX:
            assert self.state.grant is not None, "a client that binds has proved who it is"
            portal.hold(self.state.grant.share.memory, _COPIES_OF_VALUES * size)
        self._portals[name] = portal

    def keep_portal(self, name: str, portal: Portal) -> None:
        """Keep a portal that has begun, so that it is closed."""
        self._portals[name] = portal

    def portal(self, name: str) -> Portal:
        found = self._portals.get(name)
        if found is None:
            raise InvalidCursorName(f'portal "{name}" does not exist')
        return found

    def description(self, name: str) -> RowWriter | None:
        """Return what tells the columns of a portal, or of a cursor; None if it has no rows."""
        portal = self._portals.get(name)
        if portal is None and name in self.session.portals:
            cursor = portal_named(self.session, name)
            return row_writer(cursor.columns, cursor.types)
        return self.portal(name).description

    def begun(self, name: str, portal: Portal) -> None:
        """Note a portal that runs inside of a transaction: others may have to let it finish."""
        assert portal.running is not None
        portal.running.portal.name = name
        self.session.portals[name] = portal.running.portal

    def close_portal(self, name: str) -> None:
        portal = self._portals.pop(name, None)
        if portal is not None:
            portal.close()
        if name in self.session.portals:
            self.session.close_portal(name)

    def close_portals(self, *, unless: bool = False) -> None:
        """Close the protocol's portals: the transaction that they belong to ends, or goes back."""
        if not unless and self._portals:
            portals, self._portals = self._portals, {}
            begun = self.session.portals
            for name, portal in portals.items():
                portal.close()
                if name in begun:
                    self.session.close_portal(name)

    def make_way(self) -> Generator[Step, Any, None]:
        """Let portals keep their rows before something changes them."""
        yield from self.session.make_way()

    # --- the end of a transaction ---

    def commit(self) -> Waits[str]:
        self.close_portals()
        return (yield from self.state.block.commit(self.state.options()))

    def close(self) -> None:
        self.close_portals()
        self.session.end()
