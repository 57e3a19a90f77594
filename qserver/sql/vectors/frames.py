"""Computes programs over the rows of a scan, each perhaps with rows that were joined to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias

from qserver.sql.vectors import operations, text_operations, time_operations
from qserver.sql.vectors.batches import VectorBatch
from qserver.sql.vectors.members import Members
from qserver.sql.vectors.operations import Refused
from qserver.sql.vectors.program import NULL, JoinedColumn, Program
from qserver.values.vector_families import ColumnVector
from qserver.values.vectors import Array, Vector

Operation = Callable[..., Vector]
ConstantValue: TypeAlias = Vector | Members | str | None
"""A text, or None for what must be left to row code."""
JoinedColumns: TypeAlias = Mapping[JoinedColumn, Vector]


class Frame:
    """The rows that a program computes: all of a batch, or some of them.

    `joined` has the columns of each joined source, and its row for each row of the frame.
    """

    __slots__ = ("batch", "chosen", "constants", "joined", "length")

    def __init__(
        self,
        batch: VectorBatch,
        constants: list[ConstantValue],
        chosen: Array | None = None,
        joined: Mapping[int, tuple[JoinedColumns, Array]] = MappingProxyType({}),
    ) -> None:
        self.batch = batch
        self.constants = constants
        self.chosen = chosen
        self.joined = joined
        self.length = batch.length if chosen is None else len(chosen)

    def column(self, wanted: ColumnVector) -> Vector:
        vector = self.batch.column(wanted)
        return vector if self.chosen is None else vector.chosen(self.chosen)

    def joined_column(self, wanted: JoinedColumn) -> Vector:
        columns, rows = self.joined[wanted.source]
        return columns[wanted].chosen(rows)

    def some(self, rows: Array) -> Frame:
        """Return some of the rows, each perhaps several times."""
        chosen = rows if self.chosen is None else self.chosen[rows]
        joined = {each: (columns, at[rows]) for each, (columns, at) in self.joined.items()}
        return Frame(self.batch, self.constants, chosen, joined)

    def with_joined(self, sources: tuple[int, ...], columns: JoinedColumns, rows: Array) -> Frame:
        """Return each row with a row of other sources."""
        others = dict.fromkeys(sources, (columns, rows))
        return Frame(self.batch, self.constants, self.chosen, {**self.joined, **others})


class ProgramRows(Protocol):
    """What a program computes: a `Frame`, or the rows of a vector tree."""

    @property
    def constants(self) -> list[ConstantValue]: ...
    def column(self, wanted: ColumnVector) -> Vector: ...
    def joined_column(self, wanted: JoinedColumn) -> Vector: ...


def computed(program: Program, frame: ProgramRows) -> list[Any]:
    """Return the vectors of all steps."""
    found: list[Any] = []
    for operation, inputs, detail in program.steps:
        if operation == "column":
            found.append(frame.column(detail))
        elif operation == "joined_column":
            found.append(frame.joined_column(detail))
        elif operation == "constant":
            value = frame.constants[detail[0]]
            if value is None:
                raise Refused
            found.append(value)
        else:
            given = [None if at == NULL else found[at] for at in inputs]
            found.append(OPERATIONS[operation](detail, *given))
    return found


OPERATIONS: Final[dict[str, Operation]] = {
    each.__name__: each
    for each in (
        *(operations.compare, operations.in_list, operations.is_distinct),
        *(operations.conjunction, operations.disjunction, operations.negation),
        *(operations.is_null, operations.is_truth, operations.case, operations.coalesce),
        operations.mixed_case,
        *(operations.add, operations.subtract, operations.multiply, operations.negative),
        *(operations.absolute, operations.fit, operations.quotient, operations.remainder),
        *(operations.add_floats, operations.subtract_floats, operations.multiply_floats),
        *(operations.divide_floats, operations.negative_floats, operations.absolute_floats),
        *(operations.to_float, operations.to_numeric),
        *(text_operations.compare_text, text_operations.compare_texts, text_operations.by_word),
        *(time_operations.date_to_timestamp, time_operations.extract),
    )
}
