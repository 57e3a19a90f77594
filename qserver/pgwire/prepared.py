"""Prepared statements and portals.

Parse ─► Prepared: text, types of parameters, columns
Bind ──► Portal: the same with values and formats
Execute ─► Running, when the first row is wanted
"""

from __future__ import annotations

from typing import Any, Final

from qserver.errors import FeatureNotSupported, ProtocolViolation, QserverError
from qserver.pgwire.binary_format import binary_reader
from qserver.pgwire.messages import Bind
from qserver.pgwire.rows import BINARY, RowWriter, formats_of, row_writer
from qserver.pgwire.running import Running
from qserver.pgwire.tags import Kind
from qserver.pgwire.text_format import Reader, text_reader
from qserver.pgwire.texts import Text
from qserver.query.named_statements import tag_of_plan
from qserver.query.plan_cache import CachedPlan
from qserver.query.planning import Prepared as Planned
from qserver.query.results import Statement
from qserver.query.session import Session
from qserver.query.session_columns import columns_of_other
from qserver.sql import ast
from qserver.values.types import SqlType

Columns = tuple[tuple[str, ...], tuple[SqlType, ...]]
NO_COLUMNS: Final[Columns] = (), ()
FORMATS_KEPT: Final = 4
"""Sets of formats of one statement that are remembered; clients use one or two."""


class Prepared:
    """A statement of a session, which has been planned."""

    __slots__ = (
        "_plan",
        "_readers",
        "_writers",
        "columns",
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
        self.columns: Columns | None = None
        """Names and types; None if it gives no rows."""
        self.parameters: tuple[SqlType, ...] = ()
        self.reads = False
        """Whether it surely changes nothing."""
        self.tag = "" if text.kind is None else text.kind.tag
        self._readers: dict[tuple[int, ...], list[Reader]] = {}
        self._writers: dict[tuple[int, ...], RowWriter] = {}
        self._plan = found if isinstance(found, CachedPlan) else None
        if isinstance(found, CachedPlan):
            self._describe_plan(found)
        elif found is not None:
            self._describe_other(found, session)

    @property
    def kind(self) -> Kind | None:
        return self.text.kind

    def is_of(self, text: Text, found: CachedPlan | Planned | None) -> bool:
        """Return whether it is what a text with a plan would be: clients repeat themselves."""
        return found is not None and self._plan is found and self.text is text

    def _describe_plan(self, plan: CachedPlan) -> None:
        if plan.columns or not plan.writes:
            self.columns = plan.columns, plan.types
        if plan.parameters is not None:
            if plan.parameters.names:
                raise ProtocolViolation("parameters have numbers here: write $1 instead of :name")
            self.parameters = plan.parameters.types
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
            self.parameters = inner.parameters.types

    def readers(self, formats: tuple[int, ...]) -> list[Reader]:
        """Return what reads each parameter."""
        known = self._readers.get(formats)
        if known is None:
            each = formats_of(formats, len(self.parameters), "parameter")
            known = [
                binary_reader(sql_type) if form == BINARY else text_reader(sql_type)
                for sql_type, form in zip(self.parameters, each, strict=True)
            ]
            if len(self._readers) >= FORMATS_KEPT:
                self._readers.clear()
            self._readers[formats] = known
        return known

    def writer(self, formats: tuple[int, ...]) -> RowWriter:
        """Return what writes its rows."""
        known = self._writers.get(formats)
        if known is None:
            known = row_writer(*(self.columns or NO_COLUMNS), formats)
            if len(self._writers) >= FORMATS_KEPT:
                self._writers.clear()
            self._writers[formats] = known
        return known


class Portal:
    """A prepared statement with values."""

    __slots__ = ("formats", "has_ended", "prepared", "rows", "running", "statement")

    def __init__(self, prepared: Prepared, bind: Bind) -> None:
        self.prepared = prepared
        self.formats = bind.result_formats
        self.statement = Statement(
            prepared.text.sql, _values(prepared, bind), prepared.text.parameterized
        )
        self.running: Running | None = None
        self.rows = 0
        """Rows that were sent."""
        self.has_ended = False
        if prepared.columns is not None:
            prepared.writer(bind.result_formats)  # a wrong number of formats is an error of Bind

    @property
    def description(self) -> RowWriter | None:
        """What tells its columns; None if it has no rows."""
        prepared = self.prepared
        return None if prepared.columns is None else prepared.writer(self.formats)

    def writer(self, running: Running) -> RowWriter:
        """Return what writes its rows; raise if they are others than the client was told."""
        stream = running.stream
        known = self.prepared.writer(self.formats)
        is_same = stream.columns is known.columns and stream.types is known.types
        if not is_same and (stream.types != known.types or stream.columns != known.columns):
            raise FeatureNotSupported("cached plan must not change result type")
        return known

    def close(self) -> None:
        if self.running is not None:
            self.running.close()
            self.running = None


def _values(prepared: Prepared, bind: Bind) -> list[Any] | None:
    given, count = bind.values, len(prepared.parameters)
    if len(given) != count:
        raise ProtocolViolation(
            f"bind message supplies {len(given)} parameters, but prepared statement"
            f' "{prepared.name}" requires {count}'
        )
    if not given:
        return None
    if len(bind.formats) > 1 and len(bind.formats) != count:
        raise ProtocolViolation(
            f"bind message has {len(bind.formats)} parameter formats but {count} parameters"
        )
    readers = prepared.readers(bind.formats)
    return [None if data is None else read(data) for data, read in zip(given, readers, strict=True)]
