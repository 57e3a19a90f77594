"""Statements of a session: prepared statements, cursors, channels, and care for tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from qserver.sql.ast.expressions import Expression, Node, TypeName

if TYPE_CHECKING:
    from qserver.sql.ast.queries import Query


@dataclass(frozen=True, slots=True)
class Prepare(Node):
    """`text` is the statement behind AS, `source` the whole."""

    name: str
    types: tuple[TypeName, ...]
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Execute(Node):
    name: str
    arguments: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Deallocate(Node):
    """`name`: None for ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Discard(Node):
    """what: "all", "plans", "sequences", "temp"."""

    what: str


@dataclass(frozen=True, slots=True)
class Declare(Node):
    """`text` is the query behind FOR, `source` the whole. `scroll`: None if it is not said."""

    name: str
    query: Query
    text: str
    source: str
    binary: bool = False
    scroll: bool | None = None
    hold: bool = False


@dataclass(frozen=True, slots=True)
class Fetch(Node):
    """FETCH, or MOVE. direction: "forward", "backward", "absolute", "relative".

    `count`: None for ALL.
    """

    name: str
    direction: str
    count: int | None
    moves: bool = False


@dataclass(frozen=True, slots=True)
class Close(Node):
    """`name`: None for ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Lock(Node):
    tables: tuple[tuple[str, ...], ...]
    mode: str = "access exclusive"
    nowait: bool = False


@dataclass(frozen=True, slots=True)
class Maintain(Node):
    """kind: "vacuum", "analyze", "reindex", "cluster", "checkpoint".

    `tables` have the columns that are named with them. `what`: "table", "index", "schema",
    "database" or "system", for REINDEX; `index`: that of CLUSTER … USING.
    """

    kind: str
    tables: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()
    options: tuple[str, ...] = ()
    what: str = "table"
    index: str | None = None


@dataclass(frozen=True, slots=True)
class Grant(Node):
    """GRANT, or REVOKE. `privileges` have the columns that are named with them.

    kind: "table", "sequence", "schema", "database", "type", "tables", "sequences" (all of a
    schema); "role" if the privileges are roles.
    """

    privileges: tuple[tuple[str, tuple[str, ...]], ...]
    kind: str
    names: tuple[tuple[str, ...], ...]
    roles: tuple[str, ...]
    revokes: bool = False


@dataclass(frozen=True, slots=True)
class Listen(Node):
    """LISTEN, or UNLISTEN. `channel`: None for all."""

    channel: str | None
    ends: bool = False


@dataclass(frozen=True, slots=True)
class Notify(Node):
    channel: str
    payload: str = ""


@dataclass(frozen=True, slots=True)
class Administer(Node):
    """A statement whose words mean something without the grammar of expressions.

    action: "create", "alter", "drop", "comment", "reassign", "label".
    what: "extension", "role", "database", "system", "default privileges", "owned", "security", or
    a kind of `absent_kinds`.
    `names` is what it is about, `roles` whom it gives that. `words` is the rest of an ALTER, or the
    options of a CREATE; texts among them are without their quotes. Of DROP TRIGGER it is the table.
    """

    action: str
    what: str
    names: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    missing_ok: bool = False
    """IF EXISTS, or IF NOT EXISTS."""
    text: str | None = None
    """Of a comment."""
