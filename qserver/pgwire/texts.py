"""What is known of a text that clients prepare: most prepare the same few again and again."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, Final

import msgspec

from qserver.engine.work import Step
from qserver.errors import SqlSyntaxError
from qserver.lexing.fingerprint import Parameterized
from qserver.lexing.pieces import statements_of
from qserver.pgwire.tags import Kind, Sort, kind_of
from qserver.pgwire.types import type_of_oid
from qserver.query.planning import Planner
from qserver.sql import PartlyDeclared
from qserver.values.types import SqlType

TEXTS_KEPT: Final = 1000
NO_TYPES: Final[Mapping[int, SqlType]] = {}
TEXT_LENGTH_MAX: Final = 4096
"""Longer texts are not kept."""


class Text(msgspec.Struct, frozen=True):
    """One statement, and the types that its client declares for parameters."""

    sql: str
    kind: Kind | None
    """None: it is empty."""
    parameterized: Parameterized | None = None
    """None if the engine does not run it."""


class Texts:
    def __init__(self) -> None:
        self._kept: dict[tuple[str, tuple[int, ...]], Text] = {}

    def find(
        self,
        planner: Planner,
        sql: str,
        oids: tuple[int, ...] = (),
        own_types: Mapping[int, SqlType] = NO_TYPES,
    ) -> Generator[Step, Any, Text]:
        """Return the steps that look at a text; they return what it is.

        `own_types` are those of the database, by oid; a text with such is not kept.
        """
        known = None if own_types else self._kept.get((sql, oids))
        if known is not None:
            return known
        types = {at: own_types.get(oid) or type_of_oid(oid) for at, oid in enumerate(oids, 1)}
        found = yield from _read(planner, sql, types)
        if len(sql) <= TEXT_LENGTH_MAX and not own_types:
            if len(self._kept) >= TEXTS_KEPT:
                self._kept.clear()
            self._kept[sql, oids] = found
        return found


def _read(
    planner: Planner, sql: str, types: Mapping[int, SqlType | None]
) -> Generator[Step, Any, Text]:
    statements = statements_of(sql)
    if not statements:
        return Text(sql, None)
    if len(statements) > 1:
        raise SqlSyntaxError("cannot insert multiple commands into a prepared statement")
    ((start, text),) = statements
    kind = kind_of(text)
    is_planned = kind.sort in (Sort.SQL, Sort.DECLARE)
    if start or not is_planned:
        text = sql  # positions in errors are those of the whole
    if not is_planned:
        return Text(text, kind)
    parameterized = yield from planner.parameterizing(text)
    declared = PartlyDeclared({at: each for at, each in types.items() if each is not None})
    if declared:
        parameterized = parameterized.with_declared(declared)
    return Text(text, kind, parameterized)
