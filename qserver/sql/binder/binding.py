"""The state of one binding, shared by a whole statement.

Sources and CTEs are numbered through the whole statement, including subqueries and views.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from qserver.errors import ProgramLimitExceeded, StatementTooComplex, UndefinedParameter
from qserver.functions.objects import names_objects
from qserver.limits import COPIED_NODES_MAX, EXPRESSION_DEPTH_MAX, SOURCES_MAX
from qserver.sql.binder.expressions.operands import Operand, Unknown
from qserver.sql.expressions import Column, Slot
from qserver.sql.ports import CatalogPort
from qserver.sql.step_budget import StepBudget
from qserver.values.relations import View
from qserver.values.schema import Table
from qserver.values.types import TEXT, SqlType

if TYPE_CHECKING:
    from qserver.sql import ast
    from qserver.sql.binder.expressions.prepared import Prepared
    from qserver.sql.binder.names.scope import Scope
    from qserver.sql.plan import Change, CommonTable

ExpressionBinder = Callable[["Scope", Any], Operand]

QuotedLiteral = tuple[int, int, Callable[[str], Any]]
"""Its index, its position in the text, and its reader."""


class RowsNeedMarks(Exception):
    """A whole row of a query may be missing: the statement is bound again, with `marks_rows`.

    Few statements ask for such a row, and a column more would stand in the way of plans.
    """


class Binding:
    """The state of one call of `bind`.

    `expression_binders`, `prepare_query` and `bind_change` are injected, so that modules of
    expressions do not import those of queries, which import them.
    """

    __slots__ = (
        "_positions",
        "bind_change",
        "budget",
        "catalog",
        "common_tables",
        "copied_nodes",
        "declared",
        "depth",
        "expression_binders",
        "inferred",
        "marks_rows",
        "prepare_query",
        "quoted",
        "schemas",
        "sources",
        "stars",
        "suggested",
        "tables",
        "top_tables",
        "undecided",
        "unused",
        "views",
        "views_open",
    )

    def __init__(
        self,
        catalog: CatalogPort,
        parameters: Mapping[int | str, SqlType | None] | None,
        expression_binders: Mapping[type, ExpressionBinder],
        prepare_query: Callable[..., Prepared],
        bind_change: Callable[..., Change],
        suggested: Callable[[int | str], SqlType | None],
        budget: StepBudget | None = None,
        stars: dict[int, str] | None = None,
        marks_rows: bool = False,
        schemas: dict[int, str] | None = None,
    ) -> None:
        self.catalog = catalog
        self.declared = parameters
        self.suggested = suggested
        """Returns the type of the value given for a parameter, if the value determines it."""
        self.undecided: set[int | str] = set()
        """Parameters whose type only their value decides."""
        self.inferred: dict[int | str, SqlType] = {}
        self.expression_binders = expression_binders
        self.prepare_query = prepare_query
        self.bind_change = bind_change
        self.sources = 0
        self.copied_nodes = 0
        self.common_tables = 0
        self.top_tables: tuple[ast.CommonTable, ...] = ()
        """The CTEs of the statement itself, which alone may change rows."""
        self.tables: dict[int, Table] = {}
        self.views: dict[str, View] = {}
        self.views_open: list[str] = []
        self.unused: list[CommonTable] = []
        """CTEs that nothing names; their literals are read all the same."""
        self.quoted: list[QuotedLiteral] = []
        """Quoted literals in the order in which they got types."""
        self.stars = stars
        """If given, gets the text of the columns that each star of the statement stands for, by the
        star's position."""
        self.schemas = schemas
        """If given, gets the schema of each relation that is named without one, by the position of
        the name, if that is not public."""
        self.marks_rows = marks_rows
        """Whether rows of queries in FROM get a column that tells them from missing rows."""
        self.depth = 0
        self.budget = budget or StepBudget.boundless()
        self._positions: dict[int, tuple[Column, int]] = {}

    def new_source(self) -> int:
        """Return a new source number, from 1. Views over views can make many from a short text."""
        self.sources += 1
        if self.sources > SOURCES_MAX:
            raise ProgramLimitExceeded(
                "too many range table entries",
                detail=f"The limit is {SOURCES_MAX}, those of views and subqueries included.",
            )
        self.budget.spend(4)
        return self.sources

    def copy_node(self) -> None:
        """Count a node of an expression that is used once more."""
        self.copied_nodes += 1
        if self.copied_nodes > COPIED_NODES_MAX:
            raise StatementTooComplex(
                "the statement is too complex",
                detail="Expressions that it uses more than once have more than"
                f" {COPIED_NODES_MAX} parts.",
                hint="Compute them in a subquery, as columns.",
            )

    def new_common_table(self) -> int:
        self.common_tables += 1
        return self.common_tables

    def use_table(self, table: Table) -> None:
        self.tables[table.id] = table

    def note_schema(self, name: tuple[str, ...], schema: str, position: int) -> None:
        """Note where search_path has found a relation that the statement names."""
        if self.schemas is not None and len(name) == 1 and not self.views_open:
            self.schemas[position] = schema

    @contextmanager
    def in_definition(self) -> Iterator[None]:
        """Bind a text of a definition: the session's search_path does not matter there."""
        outside, self.catalog = self.catalog, self.catalog.stored
        try:
            yield
        finally:
            self.catalog = outside

    # --- depth ---

    def enter(self) -> None:
        self.depth += 1
        if self.depth > EXPRESSION_DEPTH_MAX:
            raise too_deep()
        self.budget.spend()

    def leave(self) -> None:
        self.depth -= 1

    # --- positions of columns ---

    def remember(self, column: Column, position: int) -> None:
        """Record where a column was named. Columns hold no position: equal ones must be equal."""
        self._positions[id(column)] = column, position

    def position_of(self, column: Column) -> int:
        """Return where this object was named; -1 if it has no place in the text."""
        return self._positions.get(id(column), (column, -1))[1]

    # --- parameters ---

    def parameter(self, name: int | str, position: int) -> Operand:
        """Return a slot if the caller or an earlier use determines the type; else an Unknown."""
        label = f"${name}" if isinstance(name, int) else f":{name}"
        declared = None
        if self.declared is not None:
            if name not in self.declared:
                raise UndefinedParameter(f"there is no parameter {label}", position=position + 1)
            declared = self.declared[name]
        if declared is not None:
            # The name of an object is given as a text, which the run reads.
            self.inferred[name] = TEXT if names_objects(declared) else declared
            return Slot(label, declared, None, nullable=True)
        if name in self.inferred:
            return Slot(label, self.inferred[name], None, nullable=True)
        return Unknown(label, position)

    def parameters_alike(self, names: range) -> bool:
        """Tell whether these parameters have one type, or none yet."""
        self.budget.spend(len(names) // 8)
        known = self.inferred if self.declared is None else self.declared
        sql_type = known.get(names[0])
        if any(known.get(name) is not sql_type for name in names):
            return False
        if sql_type is not None:
            self.inferred.update(dict.fromkeys(names, sql_type))
            return True
        return self.inferred.keys().isdisjoint(names)

    def suggestion(self, label: str) -> SqlType | None:
        """Return the type of a parameter's value, if the context does not determine it."""
        name = _name(label)
        self.undecided.add(name)
        return self.suggested(name)

    def infer(self, label: str, sql_type: SqlType, count: int = 1) -> Slot:
        """Give a parameter, and those of a run behind it, the type of its first use."""
        name = _name(label)
        inferred = self.inferred.setdefault(name, sql_type.bare)
        if count > 1:
            assert isinstance(name, int), "a run has numbers"
            self.inferred.update(dict.fromkeys(range(name, name + count), inferred))
        return Slot(label, inferred, None, nullable=True)


def _name(label: str) -> int | str:
    return int(label[1:]) if label.startswith("$") else label[1:]


def too_deep() -> StatementTooComplex:
    return StatementTooComplex(
        "stack depth limit exceeded",
        hint=f"Expressions may stand inside each other {EXPRESSION_DEPTH_MAX} deep.",
    )
