"""What definitions ask of the world around them, and what one of them has in hand.

A definition changes the catalog and, where rows must follow, the rows: all in one storage
transaction, which this room knows only by the protocol below. Where expressions have to be
computed (a new column's default, the rows of CREATE TABLE AS) it does not do that itself: it puts
together the query that a user would write and has it run like any other statement.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from qserver.sql import ast
from qserver.sql.binder.literals import Literals
from qserver.sql.binder.type_names import bind_type
from qserver.sql.execution import Rows, Writer
from qserver.sql.plan import OutputColumn
from qserver.sql.ports import CatalogPort
from qserver.values.constraints import ForeignKey
from qserver.values.keys import Key, Row
from qserver.values.relations import Definition
from qserver.values.relations import Sequence as SqlSequence
from qserver.values.schema import Table
from qserver.values.types import SqlType

Steps: TypeAlias = Generator[Any, Any, int]
"""A definition at work: yields at each `yield`, returns how many rows it made.

It yields None, or what it waits for: the plan of a statement that takes long to make. Who drives it
sends the result."""


class Definitions(Protocol):
    """A catalog, as far as it is asked here."""

    def definitions(self) -> Iterator[Definition]: ...
    def find(self, name: str) -> Definition | None: ...
    def index_owner(self, name: str) -> Table | None: ...


class DefinitionWriter(Writer, Protocol):
    """A transaction that may also change definitions."""

    @property
    def catalog(self) -> Definitions: ...

    def define(self, name: str, definition: Definition | None) -> None: ...
    def next_tree(self) -> int: ...
    def drop_trees(self, *trees: int) -> None: ...

    def put_entry(self, tree: int, key: Key, value: Row | None) -> None: ...


class Statements(Protocol):
    """The compiler, seen from here: statements against the transaction as it is now."""

    @property
    def names(self) -> CatalogPort: ...

    @property
    def may_read(self) -> bool:
        """May the request read rows?"""

    def check_read(self) -> None:
        """Raise if it may not."""

    def describe(
        self, query: ast.Query, literals: Sequence[Any]
    ) -> Generator[Any, Any, tuple[tuple[OutputColumn, ...], tuple[str, ...]]]:
        """The columns of a query, and the names of the relations that it reads."""

    def columns_of(
        self, query: ast.Query, literals: Sequence[Any]
    ) -> Generator[Any, Any, tuple[OutputColumn, ...]]:
        """The columns of a query."""

    def check(self, statement: ast.Statement) -> Generator[Any, Any, None]:
        """Raise what the statement, which has no literals, would raise before it ran."""

    def run(
        self, statement: ast.Statement, literals: Sequence[Any]
    ) -> Generator[Any, Any, Generator[Rows | None, None, int]]:
        """The rows of a statement, a page at a time, None where it yields; how many it changed.

        What it writes is not held against foreign keys: rows that were there keep their keys.
        """

    def parse_query(self, text: str) -> ast.Query:
        """The query of a view, with the places of its names in the text."""

    def parse_expression(self, text: str) -> tuple[ast.Expression, Sequence[Any]]:
        """An expression that a definition keeps as text, and its literals."""

    def check_foreign_key(self, table: Table, key: ForeignKey) -> Generator[None, None, int]:
        """Raise if a row of the table refers to nothing."""

    def next_row_id(self) -> int:
        """A number for a row that has no key of its own."""

    def sequence_state(self, sequence: SqlSequence) -> tuple[int, bool]:
        """The value that a sequence has given last; the one that comes next, if it is not True."""

    def begin_sequence(self, sequence: SqlSequence, value: int, called: bool) -> None:
        """Let a sequence begin with such a state. Its number must be one of `next_tree`."""

    def end_sequence(self, sequence: SqlSequence) -> None:
        """Forget the state of a sequence that is no more, or has another from now on."""


@dataclass(frozen=True, slots=True)
class Work:
    """One statement's definition work: where it writes, how it computes, what it was told."""

    transaction: DefinitionWriter
    statements: Statements
    literals: Sequence[Any]

    def find(self, name: str) -> Definition | None:
        return self.transaction.catalog.find(name)

    def type(self, node: ast.TypeName) -> SqlType:
        return bind_type(node, Literals(self.literals, fixed=True), self.statements.names.find_type)

    def value(self, literal: ast.Literal) -> Any:
        return self.literals[literal.index]

    def require_read(self, table: Table) -> None:
        """Raise if the request may not read rows and the table has some.

        For whatever tells of rows by its success: a constraint that holds, a cast that does not
        fail. An empty table tells nothing.
        """
        if not self.statements.may_read and any(self.transaction.scan_values(table.id)):
            self.statements.check_read()

    def table_now(self, name: str) -> Table:
        """A table that is known to be there, as the last step has left it."""
        table = self.find(name)
        assert isinstance(table, Table)
        return table
