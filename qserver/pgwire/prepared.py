"""Prepared statements and portals.

Parse ─► Prepared: text, types of parameters, columns
Bind ──► Portal: the same with values and formats
Execute ─► Running, when the first row is wanted
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from qserver.errors import ProtocolViolation, QserverError
from qserver.pgwire.binary_format import binary_reader
from qserver.pgwire.messages import Bind, text_of
from qserver.pgwire.rows import BINARY, RowWriter, formats_of, row_writer
from qserver.pgwire.running import Running
from qserver.pgwire.tags import Kind
from qserver.pgwire.text_format import Reader, integer_reader, text_reader
from qserver.pgwire.texts import Text
from qserver.query.memory_pool import MemoryPool
from qserver.query.named_statements import tag_of_plan
from qserver.query.plan_cache import CachedPlan
from qserver.query.planning import Prepared as Planned
from qserver.query.results import Statement
from qserver.query.session import Session
from qserver.query.session_columns import columns_of_other
from qserver.query.settings.values import Settings
from qserver.sql import ast
from qserver.values.types import INTEGER_KINDS, SqlType

Columns = tuple[tuple[str, ...], tuple[SqlType, ...]]
NO_COLUMNS: Final[Columns] = (), ()
FORMATS_KEPT: Final = 4
"""Sets of formats of one statement that are remembered; clients use one or two."""


class Prepared:
    """A statement of a session, which has been planned."""

    __slots__ = (
        "_last",
        "_plan",
        "_readers",
        "_writers",
        "body",
        "columns",
        "has_run",
        "kind",
        "name",
        "parameters",
        "reads",
        "tag",
        "text",
    )

    def __init__(
        self, name: str, text: Text, found: CachedPlan | Planned | None, session: Session
    ) -> None:
        self.name = name
        self.text = text
        self.kind: Kind | None = text.kind
        self.columns: Columns | None = None
        """Names and types; None if it gives no rows."""
        self.parameters: tuple[SqlType, ...] = ()
        self.reads = False
        """Whether it surely changes nothing."""
        self.tag = "" if text.kind is None else text.kind.tag
        self._readers: dict[tuple[int, ...], list[Reader]] = {}
        """What reads each parameter, by the formats that were used."""
        self.has_run = False
        """Whether it has been bound and executed in one round trip."""
        self.body = b""
        """The Parse that it was made by, if it has no name."""
        self._writers: dict[tuple[int, ...], RowWriter] = {}
        self._plan = found if isinstance(found, CachedPlan) else None
        self._last: tuple[Settings, CachedPlan] | None = None
        """The plan that it last had, and the settings of the session then."""
        self.keep(self._plan, session)
        if isinstance(found, CachedPlan):
            self._describe_plan(found)
        elif found is not None:
            self._describe_other(found, session)

    def is_of(self, text: Text, found: CachedPlan | Planned | None) -> bool:
        """Return whether it is what a text with a plan would be: clients repeat themselves."""
        return found is not None and self._plan is found and self.text is text

    def plan_in(self, session: Session) -> CachedPlan | None:
        """Return the plan that it last had, if the session is as it was then."""
        last = self._last
        if last is None or last[0] is not session.settings or session.temporary is not None:
            return None
        return last[1]

    def keep(self, plan: CachedPlan | None, session: Session) -> None:
        """Keep a plan for the next time, unless it depends on the values that are given."""
        if plan is None or plan.undecided or session.temporary is not None:
            self._last = None
        else:
            self._last = session.settings, plan

    def _describe_plan(self, plan: CachedPlan) -> None:
        if plan.columns or not plan.writes:
            self.columns = plan.columns, plan.types
        if plan.parameters is not None:
            if plan.parameters.names:
                raise ProtocolViolation("parameters have numbers here: write $1 instead of :name")
            self.parameters = plan.parameter_types
        self.reads = not plan.writes
        self.tag = tag_of_plan(plan)

    def _describe_other(self, found: Planned, session: Session) -> None:
        if isinstance(found.inner, QserverError):
            raise found.inner
        statement = found.parsed.statement
        self.columns = columns_of_other(session, statement)
        inner = found.inner
        takes_parameters = isinstance(statement, ast.Explain | ast.Declare)
        if takes_parameters and isinstance(inner, CachedPlan) and inner.parameters is not None:
            self.parameters = inner.parameter_types

    def readers(self, formats: tuple[int, ...]) -> list[Reader]:
        """Return what reads each parameter."""
        known = self._readers.get(formats)
        if known is not None:
            return known
        each = formats_of(formats, len(self.parameters), "parameter")
        made = [
            binary_reader(sql_type) if form == BINARY else self._text_reader(at, sql_type)
            for at, (sql_type, form) in enumerate(zip(self.parameters, each, strict=True), 1)
        ]
        if len(self._readers) >= FORMATS_KEPT:
            self._readers.clear()
        self._readers[formats] = made
        return made

    def _text_reader(self, at: int, sql_type: SqlType) -> Reader:
        """Return what reads a parameter in text format, by its number and type."""
        plan = self._plan
        if plan is not None and at not in plan.undecided and sql_type.kind in INTEGER_KINDS:
            return integer_reader(sql_type.kind, text_of)
        return text_reader(sql_type)

    def writer(self, formats: tuple[int, ...]) -> RowWriter:
        """Return what writes its rows."""
        known = self._writers.get(formats)
        if known is None:
            known = row_writer(*(self.columns or NO_COLUMNS), formats)
            if len(self._writers) >= FORMATS_KEPT:
                self._writers.clear()
            self._writers[formats] = known
        return known


class Portal(msgspec.Struct, eq=False):  # one for each Bind, and a Struct is cheap to make
    """A prepared statement with values."""

    prepared: Prepared
    statement: Statement
    description: RowWriter | None
    """What tells its columns, and writes its rows; None if it has none."""
    running: Running | None = None
    has_ended: bool = False
    pool: MemoryPool | None = None
    held: int = 0
    """Bytes of long values that count there until it is closed."""

    def hold(self, pool: MemoryPool, size: int) -> None:
        pool.take(size)
        self.pool, self.held = pool, size

    def writer(self, running: Running) -> RowWriter:
        """Return what writes its rows; raise if they are others than the client was told."""
        assert self.description is not None, "it has rows"
        self.description.check(running.stream.columns, running.stream.types)
        return self.description

    def close(self) -> None:
        if self.running is not None:
            self.running.close()
            self.running = None
        if self.pool is not None:
            self.pool.give_back(self.held)
            self.pool = None


def new_portal(prepared: Prepared, bind: Bind) -> Portal:
    text = prepared.text
    statement = Statement(text.sql, _values(prepared, bind), text.parameterized)
    has_rows = prepared.columns is not None
    return Portal(prepared, statement, prepared.writer(bind.result_formats) if has_rows else None)


def _values(prepared: Prepared, bind: Bind) -> list[Any] | None:
    given = bind.values
    if len(given) != len(prepared.parameters):
        raise ProtocolViolation(
            f"bind message supplies {len(given)} parameters, but prepared statement"
            f' "{prepared.name}" requires {len(prepared.parameters)}'
        )
    if not given:
        return None
    readers = prepared.readers(bind.formats)
    return [None if data is None else read(data) for data, read in zip(given, readers, strict=True)]
