"""Compiles an expression to steps over vectors: `k % 10 > slot0` becomes

    0  column    k                   each step names the steps that it reads;
    1  constant  10                  equal steps are one, so a shared term is computed once
    2  remainder 0 1
    3  constant  slot0
    4  compare   2 3   ">"

Every step computes all rows of a chunk, also those that a CASE or AND would skip: its bounds must
prove that none of them raises. An expression without a column of the scanned or joined tables is a
constant, which row code computes once.

`NotVectorized` means that an expression has no steps. It is raised only during planning.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from qserver.functions.numbers.integer_math import bounds
from qserver.sql.expressions import (
    And,
    Apply,
    Array,
    Case,
    Cast,
    Coalesce,
    Column,
    Constant,
    Expression,
    InList,
    IsDistinct,
    IsNull,
    IsTruth,
    Not,
    Or,
    Slot,
)
from qserver.sql.walk import everything, free_sources, has_subquery, is_volatile
from qserver.values import vector_families as families
from qserver.values.casts import unchanged
from qserver.values.types import INTEGER_KINDS, Kind, array_of
from qserver.values.vector_families import ColumnVector, column_vector, family_of

ARITHMETIC: Final = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}

BY_WORD: Final = frozenset(
    {
        *("~~", "!~~", "~~*", "!~~*", "starts_with", "substring", "substr", "left", "right"),
        *("lower", "upper", "length", "char_length", "character_length"),
    }
)
"""Functions of a text that are called for each word: they take a microsecond for a short one. An
operator is known by its symbol."""

NODES_MAX: Final = 256
"""Larger expressions are computed row by row."""

NULL: Final = -1
"""The input of a CASE or COALESCE that is NULL."""


class NotVectorized(Exception):
    """The expression must be computed row by row."""


class Step(NamedTuple):
    operation: str
    inputs: tuple[int, ...] = ()
    detail: Any = None


class JoinedColumn(NamedTuple):
    """A column of a source that is joined to the scan."""

    source: int
    vector: ColumnVector


class Program:
    """The steps of some expressions over the source of a scan, and over sources joined to it.

    `joined` tells for each joined source whether it is a table. `constants` may be shared with
    others.
    """

    def __init__(
        self,
        source: int,
        constants: list[Expression],
        joined: Mapping[int, bool] = MappingProxyType({}),
    ) -> None:
        self.source = source
        self.joined = joined
        self.constants = constants
        self.steps: list[Step] = []
        self.families: list[str] = []
        self._number_of: dict[Step, int] = {}

    def value(self, expression: Expression) -> int:
        """Add the steps of an expression, and return the number of the last."""
        if sum(1 for _ in islice(everything(expression), NODES_MAX + 1)) > NODES_MAX:
            raise NotVectorized
        if has_subquery(expression) or is_volatile(expression):
            raise NotVectorized
        return self._add(expression)

    def truth(self, expression: Expression) -> int:
        """Add the steps of a condition, which may be NULL."""
        number = self.value(expression)
        if self.families[number] != families.BOOLEAN:
            raise NotVectorized
        return number

    def _add(self, expression: Expression) -> int:
        if self._is_constant(expression):
            if expression.type.element is not None:
                raise NotVectorized  # only an IN has its items as an array
            return self._constant(expression)
        match expression:
            case Column():
                return self._column(expression)
            case Apply():
                return self._apply(expression)
            case Cast():
                return self._cast(expression)
            case And() | Or():
                inputs = tuple(map(self._truth, expression.operands))
                name = "conjunction" if isinstance(expression, And) else "disjunction"
                return self._step(families.BOOLEAN, name, inputs)
            case Not():
                return self._step(families.BOOLEAN, "negation", (self._truth(expression.operand),))
            case IsNull():
                inputs = (self._add(expression.operand),)
                return self._step(families.BOOLEAN, "is_null", inputs, expression.negated)
            case IsTruth():
                inputs = (self._truth(expression.operand),)
                detail = expression.truth, expression.negated
                return self._step(families.BOOLEAN, "is_truth", inputs, detail)
            case IsDistinct():
                return self._is_distinct(expression)
            case InList():
                return self._in_list(expression)
            case Case():
                return self._case(expression)
            case Coalesce():
                return self._choice("coalesce", expression.operands, ())
        raise NotVectorized

    def _truth(self, expression: Expression) -> int:
        number = self._add(expression)
        if self.families[number] != families.BOOLEAN:
            raise NotVectorized
        return number

    def _step(
        self, family: str, operation: str, inputs: tuple[int, ...] = (), detail: Any = None
    ) -> int:
        step = Step(operation, inputs, detail)
        number = self._number_of.setdefault(step, len(self.steps))
        if number == len(self.steps):
            self.steps.append(step)
            self.families.append(family)
        return number

    # --- leaves ---

    def _column(self, column: Column) -> int:
        if column.source != self.source:
            found = joined_column(column, self.joined)
            return self._step(found.vector.family, "joined_column", (), found)
        wanted = column_vector(column.position, column.type)
        if wanted is None:
            raise NotVectorized
        return self._step(wanted.family, "column", (), wanted)

    def _is_constant(self, expression: Expression) -> bool:
        named = free_sources(expression)
        return self.source not in named and named.isdisjoint(self.joined)

    def _constant(self, expression: Expression) -> int:
        """Add a constant: one value, or the items of an IN as an array of them."""
        family = family_of(expression.type.element or expression.type)
        if family is None:
            raise NotVectorized
        same = [
            at
            for at, known in enumerate(self.constants)
            if known is expression or (type(known) in (Slot, Array) and known == expression)
        ]
        if not same:
            same = [len(self.constants)]
            self.constants.append(expression)
        return self._step(family, "constant", (), (same[0], family))

    # --- functions ---

    def _apply(self, expression: Apply) -> int:
        function = expression.function
        if not function.strict or function.gives_null or function.takes_context:
            raise NotVectorized
        if function.name == "extract":
            return self._extract(expression)
        inputs = tuple(map(self._add, expression.arguments))
        if (function.symbol or function.name) in BY_WORD and function.parameters[
            0
        ].kind is Kind.TEXT:
            return self._by_word(expression, inputs)
        kinds = {self.families[number] for number in inputs}
        if len(kinds) != 1:
            raise NotVectorized
        (family,) = kinds
        if function.comparison is not None and len(inputs) == 2:
            return self._compare(function.comparison, inputs, family)
        return self._arithmetic(expression, inputs, family)

    def _compare(self, symbol: str, inputs: tuple[int, ...], family: str) -> int:
        if family == families.TEXT:
            is_constant = [self.steps[number].operation == "constant" for number in inputs]
            if is_constant == [True, False]:
                symbol, inputs = _MIRRORED[symbol], inputs[::-1]
            elif is_constant == [False, False]:
                return self._step(families.BOOLEAN, "compare_texts", inputs, symbol)
            return self._step(families.BOOLEAN, "compare_text", inputs, symbol)
        return self._step(families.BOOLEAN, "compare", inputs, symbol)

    def _by_word(self, expression: Apply, inputs: tuple[int, ...]) -> int:
        """Add a call with one text of the row; all else are constants."""
        varying = [at for at in inputs if self.steps[at].operation != "constant"]
        constants = [each for each in expression.arguments if self._is_constant(each)]
        if len(varying) != 1 or self.families[varying[0]] != families.TEXT:
            raise NotVectorized
        if not all(each.type.kind in (Kind.TEXT, *INTEGER_KINDS) for each in constants):
            raise NotVectorized
        family = family_of(expression.function.returns)
        assert family is not None, "a text, a number or a truth"
        detail = expression.function, inputs.index(varying[0])
        return self._step(family, "by_word", inputs, detail)

    def _extract(self, expression: Apply) -> int:
        field, operand = expression.arguments
        number = self._add(operand)
        source = self.families[number]
        if source not in (families.DATE, families.TIMESTAMP) or not self._is_constant(field):
            raise NotVectorized
        if self.steps[number].operation == "constant":
            raise NotVectorized
        inputs = self._constant(field), number
        return self._step(families.NUMERIC, "extract", inputs, source == families.DATE)

    def _arithmetic(self, expression: Apply, inputs: tuple[int, ...], family: str) -> int:
        name, returns = expression.function.name, expression.function.returns
        if family_of(returns) != family or returns.kind is Kind.REAL:
            raise NotVectorized
        detail = bounds(returns) if returns.kind in INTEGER_KINDS else None
        if len(inputs) == 1:
            operation = {"-": "negative", "+": "same", "@": "absolute", "abs": "absolute"}.get(name)
        elif name in ("%", "mod"):
            operation = "remainder" if family == families.INTEGER else None
        else:
            operation = ARITHMETIC.get(name)
            if name == "/" and family == families.NUMERIC:
                operation = None  # the digits of a quotient depend on its operands
        if operation is None or family not in (families.INTEGER, families.NUMERIC, families.FLOAT):
            raise NotVectorized
        if family == families.FLOAT:
            operation = f"{operation}_floats"
        elif operation == "divide":
            operation = "quotient"
        if operation == "same" or operation == "same_floats":
            return inputs[0]
        return self._step(family, operation, inputs, detail)

    def _cast(self, expression: Cast) -> int:
        number = self._add(expression.operand)
        source, target = self.families[number], family_of(expression.type)
        if target is None:
            raise NotVectorized
        if expression.function is unchanged and source == target:
            return number
        if expression.type.precision is not None or expression.type.kind is Kind.REAL:
            raise NotVectorized
        match source, target:
            case families.INTEGER, families.INTEGER:
                return self._step(target, "fit", (number,), bounds(expression.type))
            case families.INTEGER, families.NUMERIC:
                return self._step(target, "to_numeric", (number,))
            case families.NUMERIC, families.NUMERIC:
                return number
            case families.DATE, families.TIMESTAMP:
                return self._step(target, "date_to_timestamp", (number,))
            case ((families.INTEGER | families.NUMERIC), families.FLOAT):
                return self._step(target, "to_float", (number,))
        raise NotVectorized

    # --- the rest ---

    def _is_distinct(self, expression: IsDistinct) -> int:
        inputs = self._add(expression.left), self._add(expression.right)
        kinds = {self.families[number] for number in inputs}
        if len(kinds) != 1 or families.TEXT in kinds:
            raise NotVectorized
        return self._step(families.BOOLEAN, "is_distinct", inputs, expression.negated)

    def _in_list(self, expression: InList) -> int:
        operand = self._add(expression.operand)
        element = expression.items[0].type
        if not all(map(self._is_constant, expression.items)):
            raise NotVectorized
        if family_of(element) != self.families[operand]:
            raise NotVectorized
        items = self._constant(Array(expression.items, array_of(element)))
        found = self._step(families.BOOLEAN, "in_list", (operand, items))
        return self._step(families.BOOLEAN, "negation", (found,)) if expression.negated else found

    def _case(self, expression: Case, operation: str = "case") -> int:
        conditions = tuple(self._truth(condition) for condition, _ in expression.whens)
        results = (*(result for _, result in expression.whens), expression.otherwise)
        return self._choice(operation, results, conditions)

    def _choice(
        self, name: str, results: tuple[Expression, ...], conditions: tuple[int, ...]
    ) -> int:
        inputs = tuple(NULL if _is_null(each) else self._add(each) for each in results)
        kinds = {self.families[number] for number in inputs if number != NULL}
        if len(kinds) != 1 or families.TEXT in kinds:
            raise NotVectorized
        (family,) = kinds
        return self._step(family, name, (*conditions, *inputs), len(conditions))


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Constant) and expression.value is None


_MIRRORED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def columns_of(*programs: Program) -> tuple[ColumnVector, ...]:
    """Return the columns that programs read."""
    found = [step.detail for each in programs for step in each.steps if step.operation == "column"]
    return tuple(dict.fromkeys(found))


def joined_column(column: Column, joined: Mapping[int, bool]) -> JoinedColumn:
    wanted = column_vector(column.position, column.type)
    if wanted is None or (wanted.family == families.NUMERIC and not joined[column.source]):
        raise NotVectorized  # only in a table have all numbers of a column the same digits
    return JoinedColumn(column.source, wanted)


def joined_columns(*programs: Program) -> frozenset[JoinedColumn]:
    """Return the columns of joined sources that programs read."""
    steps = [step for each in programs for step in each.steps]
    return frozenset(step.detail for step in steps if step.operation == "joined_column")
