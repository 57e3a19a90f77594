"""The interface of DDL to storage and to the compiler.

A DDL statement changes the catalog and, if necessary, the rows, all in one storage transaction. To
compute expressions (a new column's default, the rows of CREATE TABLE AS) it builds the query that a
user would write and runs it like any other statement.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

from qserver.errors import FeatureNotSupported
from qserver.sql import ast
from qserver.sql.binder.expressions.literals import Literals
from qserver.sql.binder.names.type_names import bind_type
from qserver.sql.execution import Rows, Writer
from qserver.sql.plan import OutputColumn
from qserver.sql.ports import CatalogPort
from qserver.sql.stored_texts import stored_expression
from qserver.values.constraints import ForeignKey
from qserver.values.identifiers import catalog_key
from qserver.values.keys import Key, Row
from qserver.values.notices import Notice
from qserver.values.relations import Definition
from qserver.values.relations import Sequence as SqlSequence
from qserver.values.schema import Table
from qserver.values.temporary import OnCommit
from qserver.values.types import UNSTORED_KINDS, SqlType

DdlSteps: TypeAlias = Generator[Any, Any, int]
"""A running DDL statement: yields, and returns the number of rows that it created.

It yields None, or the awaited plan of a statement that takes long to plan; the caller sends the
plan.
"""


MISSING: Final = "00000"
TAKEN: Final = "42P07"
"""The codes of notices about what is not there, and about what is."""


class Definitions(Protocol):
    """The part of a catalog that DDL uses."""

    def definitions(self) -> Iterator[Definition]: ...
    def find(self, name: str) -> Definition | None: ...
    def index_owner(self, name: str) -> Table | None: ...


class DefinitionWriter(Writer, Protocol):
    """A transaction that may also change definitions."""

    @property
    def catalog(self) -> Definitions: ...

    def find_definition(self, name: str) -> Definition | None: ...
    def define(self, name: str, definition: Definition | None) -> None: ...
    def next_tree(self, schema: str) -> int: ...
    def drop_trees(self, *trees: int) -> None: ...
    def note_rewritten(self, old: int, new: int) -> None: ...

    def put_entries(self, tree: int, entries: dict[Key, Row | None]) -> None: ...


class Statements(Protocol):
    """Compiles and runs statements against the transaction's current state."""

    @property
    def names(self) -> CatalogPort: ...

    @property
    def path(self) -> tuple[str, ...]:
        """The schemas in which names without one are looked for."""

    @property
    def creation_path(self) -> tuple[str, ...]:
        """The schemas of which the first that exists gets new names."""

    def open_temporary(self) -> None:
        """Begin to define temporary relations; raise where nothing could use them."""

    def on_commit(self, table: Table, action: OnCommit) -> None:
        """Let each commit of the session do something to a temporary table."""

    @property
    def may_read(self) -> bool:
        """Whether the request may read rows."""

    def check_read(self) -> None:
        """Raise if the request may not read rows."""

    def describe(
        self, query: ast.Query | ast.Execute, literals: Sequence[Any]
    ) -> Generator[Any, Any, tuple[tuple[OutputColumn, ...], tuple[str, ...]]]:
        """Return the columns of a query, and the names of the relations that it reads."""

    def columns_of(
        self, query: ast.Query, literals: Sequence[Any]
    ) -> Generator[Any, Any, tuple[OutputColumn, ...]]:
        """Return the columns of a query."""

    def check(self, statement: ast.Statement) -> Generator[Any, Any, None]:
        """Raise the errors of a statement without literals that occur before it runs."""

    def run(
        self, statement: ast.Statement, literals: Sequence[Any]
    ) -> Generator[Any, Any, Generator[Rows | None, None, int]]:
        """Run a statement: yields pages of rows, or None to yield; returns the number of affected
        rows.

        Its writes are not checked against foreign keys: existing rows keep their keys.
        """

    def run_query(
        self, query: ast.Query | ast.Execute, literals: Sequence[Any]
    ) -> Generator[Any, Any, Generator[Rows | None, None, int]]:
        """Run a query of the user as if it stood alone; its WITH may change rows."""

    def view_text(self, text: str) -> Generator[Any, Any, str]:
        """Return the query of a view with the present columns in place of its stars."""

    def parse_query(self, text: str) -> ast.Query:
        """Parse the query of a view, with the positions of its names in the text."""

    def parse_expression(self, text: str) -> tuple[ast.Expression, Sequence[Any]]:
        """Parse the stored text of an expression; return it with its literals."""

    def check_foreign_key(self, table: Table, key: ForeignKey) -> Generator[None, None, int]:
        """Raise if a row of the table refers to no row."""

    def count_written(self, entries: int, width: int, long_bytes: int) -> None:
        """Count entries of an index that the transaction keeps until it commits."""

    def next_row_id(self, schema: str) -> int:
        """Return a new id for a row without a primary key."""

    def sequence_state(self, sequence: SqlSequence) -> tuple[int, bool]:
        """Return a sequence's value: the last used one if True, else the next one."""

    def begin_sequence(self, sequence: SqlSequence, value: int, called: bool) -> None:
        """Create the state of a sequence. Its number must come from `next_tree`."""

    def end_sequence(self, sequence: SqlSequence) -> None:
        """Remove the state of a sequence that gets a new one."""

    def give_notice(self, notice: Notice) -> None:
        """Tell the client something beside the answer."""

    def drop_sequence(self, sequence: SqlSequence) -> None:
        """Remove the state of a sequence that is dropped; where it was stays known."""


def refuse_other_database(name: tuple[str, ...], database: str) -> None:
    if len(name) > 3 or (len(name) == 3 and name[0] != database):
        raise FeatureNotSupported(
            f"cross-database references are not implemented: {'.'.join(name)}"
        )


@dataclass(frozen=True, slots=True)
class DdlPort:
    """The environment of one DDL statement: transaction, compiler, and literals."""

    transaction: DefinitionWriter
    statements: Statements
    literals: Sequence[Any]
    database: str
    """Its name, which may stand before a schema."""
    cascaded: dict[str, None] = field(default_factory=dict)
    """Descriptions of what CASCADE has dropped."""

    def skip(self, text: str, code: str = MISSING) -> None:
        """Tell the client that there is nothing to do, because of IF EXISTS or IF NOT EXISTS."""
        self.tell(f"{text}, skipping", code)

    def tell(self, text: str, code: str = "00000", detail: str | None = None) -> None:
        self.statements.give_notice(Notice("NOTICE", code, text, detail))

    def find(self, name: str) -> Definition | None:
        """Return the definition under a name; the statement then depends on it."""
        return self.transaction.find_definition(name)

    def key(self, name: tuple[str, ...]) -> str:
        """Return the catalog key that a name in the statement means, whether or not it exists."""
        refuse_other_database(name, self.database)
        if len(name) > 1:
            return catalog_key(name[-2], name[-1])
        keys = [catalog_key(schema, name[0]) for schema in self.statements.path]
        if len(keys) == 1:
            return keys[0]
        for key in keys:
            if self.find(key) is not None or self.transaction.catalog.index_owner(key) is not None:
                return key
        return keys[0] if keys else catalog_key("", name[0])

    def type(self, node: ast.TypeName) -> SqlType:
        return bind_type(node, Literals(self.literals, fixed=True), self.statements.names.find_type)

    def stored(self, text: str) -> str:
        """Return the text of an expression as a definition keeps it."""
        return stored_expression(text, self.statements.names, self.key)

    def column_type(self, node: ast.TypeName) -> SqlType:
        """Return a type that a column can have: its values are stored."""
        sql_type = self.type(node)
        if (sql_type.element or sql_type).kind in UNSTORED_KINDS:
            raise FeatureNotSupported(
                f"a column cannot have the type {sql_type}",
                hint="Store the oid, or the name as a text, and cast it where it is read.",
                position=node.position + 1,
            )
        return sql_type

    def value(self, literal: ast.Literal) -> Any:
        return self.literals[literal.index]

    def require_read(self, table: Table) -> None:
        """Raise if the request may not read rows and the table has some.

        For statements whose success reveals rows: a constraint that holds, a cast that does not
        fail. An empty table reveals nothing.
        """
        if not self.statements.may_read and any(self.transaction.scan_values(table.id)):
            self.statements.check_read()

    def table_now(self, name: str) -> Table:
        """Return the current definition of a table that exists."""
        table = self.find(name)
        assert isinstance(table, Table)
        return table
