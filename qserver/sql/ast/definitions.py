"""DDL: CREATE, ALTER, DROP and similar; also EXPLAIN, SHOW, SET and transaction control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from qserver.sql.ast.expressions import Node

if TYPE_CHECKING:
    from qserver.sql.ast import Statement
    from qserver.sql.ast.expressions import Expression, Literal, TypeName
    from qserver.sql.ast.queries import Query
    from qserver.sql.ast.sessions import Execute


@dataclass(frozen=True, slots=True)
class ForeignKey(Node):
    columns: tuple[str, ...]
    table: tuple[str, ...]
    referenced: tuple[str, ...] = ()
    on_delete: str = "no action"
    on_update: str = "no action"
    match: str = "simple"
    deferrable: bool = False
    on_delete_columns: tuple[str, ...] = ()  # SET NULL (a, b)


@dataclass(frozen=True, slots=True)
class Constraint(Node):
    """kind: "primary key", "unique", "check", "foreign key", "not null", "null", "default",
    "identity always", "identity by default", "generated". A table constraint names its columns;
    a column constraint has none."""

    kind: str
    name: str | None = None
    columns: tuple[str, ...] = ()
    expression: Expression | None = None
    foreign_key: ForeignKey | None = None
    nulls_not_distinct: bool = False
    text: str = ""
    """The source text of `expression`, which is stored for DEFAULT, CHECK and GENERATED."""
    attributes: tuple[str, ...] = ()
    """As written, for kinds that allow them: "deferrable", "not deferrable", "initially deferred",
    "initially immediate", "not valid", "no inherit"."""
    options: tuple[tuple[str, Expression | None], ...] = ()
    """Options of an identity's sequence, as in CreateSequence."""


@dataclass(frozen=True, slots=True)
class ColumnDefinition(Node):
    name: str
    type: TypeName
    constraints: tuple[Constraint, ...] = ()
    collation: str | None = None


@dataclass(frozen=True, slots=True)
class TableLike(Node):
    """`LIKE table INCLUDING …` among the columns, before the column with the index `before`."""

    name: tuple[str, ...]
    options: tuple[str, ...] = ()  # "including all", "excluding defaults" …
    before: int = 0


@dataclass(frozen=True, slots=True)
class CreateTable(Node):
    name: tuple[str, ...]
    columns: tuple[ColumnDefinition, ...]
    constraints: tuple[Constraint, ...] = ()
    if_not_exists: bool = False
    temporary: bool = False
    query: Query | Execute | None = None  # CREATE TABLE AS
    column_names: tuple[str, ...] = ()
    with_data: bool = True
    likes: tuple[TableLike, ...] = ()
    options: tuple[tuple[str, str], ...] = ()  # WITH (name = value); "on commit"


@dataclass(frozen=True, slots=True)
class IndexItem(Node):
    expression: Expression
    descending: bool = False
    nulls_first: bool | None = None
    text: str = ""
    operator_class: str = ""


@dataclass(frozen=True, slots=True)
class CreateIndex(Node):
    name: str | None
    table: tuple[str, ...]
    items: tuple[IndexItem, ...]
    unique: bool = False
    if_not_exists: bool = False
    where: Expression | None = None
    where_text: str = ""
    including: tuple[str, ...] = ()
    method: str = "btree"
    nulls_not_distinct: bool = False
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CreateView(Node):
    name: tuple[str, ...]
    column_aliases: tuple[str, ...]
    query: Query
    text: str
    replace: bool = False
    temporary: bool = False
    recursive: bool = False
    options: tuple[tuple[str, str], ...] = ()
    check_option: str = ""  # "cascaded", "local"


@dataclass(frozen=True, slots=True)
class CreateSequence(Node):
    """Options by word: "start", "increment", "minvalue", "maxvalue", "cache" with literals, or
    "cycle", "no cycle", "no minvalue", "no maxvalue" with None; "restart" in ALTER with or without.
    OWNED BY is "owned by" with a Name, of no parts for NONE."""

    name: tuple[str, ...]
    options: tuple[tuple[str, Expression | None], ...] = ()
    if_not_exists: bool = False
    temporary: bool = False
    type: TypeName | None = None


@dataclass(frozen=True, slots=True)
class CreateEnum(Node):
    name: tuple[str, ...]
    labels: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class CreateSchema(Node):
    name: str
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class Drop(Node):
    """kind: "table", "index", "view", "sequence", "type", "schema"."""

    kind: str
    names: tuple[tuple[str, ...], ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class Truncate(Node):
    names: tuple[tuple[str, ...], ...]
    restart_identity: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class AlterAction(Node):
    """kind: "add column", "drop column", "rename column", "rename", "set default", "drop default",
    "set not null", "drop not null", "type", "add constraint", "drop constraint", "rename
    constraint", "set schema".

    Also "validate constraint", "alter constraint" (with new attributes in `constraint`), "owner",
    "add identity" (in `constraint`), "alter identity" (`text`: "always", "by default" or empty;
    `options` of the sequence), "drop identity", "drop expression"; "set options" and "reset
    options", in `words`; "set place" (`name`); "switch" (`text`: "enable trigger" and the like);
    "cluster on" and "replica index" (`name`); "nothing", which has no effect; "options" of a
    sequence; "add value" and "rename value" of an enum, with labels in `expression` and
    `new_label`, and `neighbour` for "before" or "after" `new_label`. ADD COLUMN IF NOT EXISTS sets
    `if_exists`.
    """

    kind: str
    name: str = ""
    new_name: str = ""
    column: ColumnDefinition | None = None
    constraint: Constraint | None = None
    type: TypeName | None = None
    expression: Expression | None = None
    text: str = ""
    if_exists: bool = False
    cascade: bool = False
    options: tuple[tuple[str, Expression | None], ...] = ()
    new_label: Literal | None = None
    neighbour: str = ""
    collation: str | None = None  # of "type"
    words: tuple[tuple[str, str], ...] = ()  # of "set options": SET (name = value)


@dataclass(frozen=True, slots=True)
class AlterTable(Node):
    """`what` is "table", "view", "index", "sequence", "type" or "schema"."""

    name: tuple[str, ...]
    actions: tuple[AlterAction, ...]
    if_exists: bool = False
    what: str = "table"


@dataclass(frozen=True, slots=True)
class CommentOn(Node):
    kind: str
    name: tuple[str, ...]
    text: Literal | None


@dataclass(frozen=True, slots=True)
class Explain(Node):
    statement: Statement
    options: tuple[str, ...] = ()  # "analyze", "code", "verbose", "costs off" …


@dataclass(frozen=True, slots=True)
class Show(Node):
    name: str


@dataclass(frozen=True, slots=True)
class SetVariable(Node):
    """SET name = values; RESET name, or SET name TO DEFAULT, if there are none.

    Values are as written; a string is without its quotes. `literals` are the indexes of their
    literals: the cache that stores this node for its fingerprint must make their values part of
    the fingerprint.
    """

    name: str
    values: tuple[str, ...] | None
    literals: tuple[int, ...] = ()
    local: bool = False


@dataclass(frozen=True, slots=True)
class SetConstraints(Node):
    """SET CONSTRAINTS; None: all that may wait."""

    names: tuple[tuple[str, ...], ...] | None
    deferred: bool


@dataclass(frozen=True, slots=True)
class TransactionControl(Node):
    """BEGIN, COMMIT, ROLLBACK, SAVEPOINT …: only an open transaction takes some of them."""

    kind: str
    words: tuple[str, ...] = ()
    """The words after the first, as names are read."""
