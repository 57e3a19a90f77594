"""Programs of a vector tree: over the columns of any of its sources.

Tables have declared types. What projections and groups compute has the family of its step. An
average is a number whose digits after the point differ from row to row in row code: it may be
compared, and given out as it is, but no number that is given out may be computed from it.
"""

from __future__ import annotations

from qserver.sql.expressions import Case, Column, Expression
from qserver.sql.vectors.program import JoinedColumn, NotVectorized, Program
from qserver.sql.walk import has_subquery, is_volatile, sources_named
from qserver.values import vector_families as families
from qserver.values.schema import Table
from qserver.values.vector_families import ColumnVector, column_vector


class Computed:
    """The columns of a computed source: their families, None for one that has none."""

    def __init__(self, kinds: list[str | None], rounded: frozenset[int] = frozenset()) -> None:
        self.kinds = kinds
        self.rounded = rounded
        """Averages, and what is computed from them."""


Known = dict[int, Table | Computed]
"""The sources of a tree."""


class TreeProgram(Program):
    def __init__(self, known: Known, constants: list[Expression]) -> None:
        super().__init__(-1, constants)
        self._known_sources = known

    def _column(self, column: Column) -> int:
        wanted = tree_column(column, self._known_sources)
        return self._step(wanted.vector.family, "joined_column", (), wanted)

    def _is_constant(self, expression: Expression) -> bool:
        return not sources_named(expression)

    def is_rounded(self, number: int) -> bool:
        """Whether the digits of a step depend on those of an average."""
        step = self.steps[number]
        if self.families[number] != families.NUMERIC:
            return False
        if step.operation == "joined_column":
            known = self._known_sources[step.detail.source]
            return isinstance(known, Computed) and step.detail.vector.position in known.rounded
        return any(self.is_rounded(at) for at in step.inputs if at >= 0)

    @property
    def reads_averages(self) -> bool:
        return any(
            step.operation == "joined_column" and self.is_rounded(number)
            for number, step in enumerate(self.steps)
        )

    def exact(self, expression: Expression) -> int:
        """Add a value that may be given out, or be a key or an argument."""
        number = self.value(expression)
        if self.is_rounded(number) or self.steps[number].operation == "constant":
            raise NotVectorized
        return number

    def mixed(self, expression: Case) -> int:
        """Add a CASE whose results may have different digits after the point, for a sum."""
        if has_subquery(expression) or is_volatile(expression):
            raise NotVectorized
        number = self._case(expression, "mixed_case")
        if self.is_rounded(number):
            raise NotVectorized
        return number


def tree_column(column: Column, known: Known) -> JoinedColumn:
    maker = known.get(column.source)
    if maker is None:
        raise NotVectorized
    if isinstance(maker, Computed):
        if column.position >= len(maker.kinds):
            raise NotVectorized
        family = maker.kinds[column.position]
        if family is None:
            raise NotVectorized
        return JoinedColumn(column.source, ColumnVector(column.position, family))
    wanted = column_vector(column.position, column.type)
    if wanted is None:
        raise NotVectorized
    return JoinedColumn(column.source, wanted)
