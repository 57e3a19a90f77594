"""Prints expressions as Python source.

Every expression prints in three forms, which avoids most NULL handling:

    value      a Python expression of the value, None for NULL
    truth      one that is true exactly when the SQL condition is true       (WHERE, ON, WHEN …)
    falsity    one that is true exactly when the condition is false          (below NOT)

No NULL check is printed for an expression that is not nullable. An operand that is used twice, for
the NULL check and for its value, goes into a variable unless it is a plain name or subscript.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from qserver.functions.arrays.functions import array_of_arrays
from qserver.functions.context import CostlyCall
from qserver.functions.costs import BYTES_SMALL
from qserver.functions.datetime.moments import MomentReader
from qserver.functions.registry import Function
from qserver.limits import SOURCE_LENGTH_MAX
from qserver.sql.codegen.apart import LINES_MOST, Apart, is_long, sliced
from qserver.sql.codegen.charges import (
    comparison_of,
    cost_of_cast,
    cost_of_slot,
    costly_call,
    costly_cast,
    measured,
    size_code,
)
from qserver.sql.codegen.constants import Constants
from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.codegen.in_lists import in_list
from qserver.sql.codegen.logic import is_fixed, logic_value
from qserver.sql.codegen.port import SubqueryPrinter
from qserver.sql.codegen.runtime import elements_of
from qserver.sql.codegen.source import SIMPLE, Source, brackets_of, too_long
from qserver.sql.expressions import (
    And,
    Apply,
    Array,
    ArrayQuery,
    Case,
    Cast,
    Coalesce,
    Column,
    Constant,
    Elements,
    Exists,
    Expression,
    Folded,
    InList,
    InQuery,
    IsDistinct,
    IsNull,
    IsTruth,
    Not,
    Or,
    Quantified,
    ScalarQuery,
    Slot,
    Slots,
)
from qserver.sql.folding import is_surely_null
from qserver.sql.step_budget import StepBudget
from qserver.sql.walk import everything
from qserver.values.casts import unchanged
from qserver.values.sizes import size_of
from qserver.values.types import Kind

_FIELD = re.compile(r"\{(\w+)\}")
_ROW = re.compile(r"\b[rato]\d+\b")
_KEPT = re.compile(r"\((o\d+) :=")
"""Operands that `logic` keeps: they go to functions like rows, unless they are made in there."""

SLOTS_NAMED_MOST = 256
"""The most slots that are local variables; further slots are in a list."""

BRACKETS_MOST = 50
"""How deep brackets may nest in printed code; Python allows 200."""


class Printer:
    """Prints expressions and records which slots they use."""

    def __init__(self, source: Source, budget: StepBudget) -> None:
        self.source = source
        self._spend = budget.spend
        self.slots: dict[str, Slot | Slots] = {}
        self._names_of_slots: dict[int | str, list[tuple[Slot, str]]] = {}
        self.made: list[Slot] = []
        """Slots beyond SLOTS_NAMED_MOST: items of a list instead of variables."""
        self.constants = Constants(self)
        self.apart = Apart(source)
        self.functions: list[str] = []
        self.row_of_literals: str | None = None
        """The variable with the current row of literals, inside of a parameterized VALUES list."""
        self.subqueries: SubqueryPrinter | None = None
        self.may_yield = True
        """Whether an expression may yield; in a lambda it may not."""

    @contextmanager
    def without_yielding(self) -> Iterator[None]:
        """Print code for a lambda inside this context."""
        before, self.may_yield = self.may_yield, False
        try:
            yield
        finally:
            self.may_yield = before

    # --- the three forms ---

    def value(self, expression: Expression, rows: RowVariables) -> str:
        self._spend()
        printer = _VALUES.get(type(expression))
        if printer is not None:
            return self._not_too_deep(printer(self, expression, rows))
        if not expression.nullable:
            return f"bool({self.truth(expression, rows)})"
        return self._not_too_deep(logic_value(self, expression, rows))

    def truth(self, expression: Expression, rows: RowVariables) -> str:
        printer = _TRUTHS.get(type(expression), Printer.value)
        return self._not_too_deep(printer(self, expression, rows))

    def falsity(self, expression: Expression, rows: RowVariables) -> str:
        printer = _FALSITIES.get(type(expression))
        if printer is not None:
            return self._not_too_deep(printer(self, expression, rows))
        if expression.nullable:
            return f"({self.value(expression, rows)} is False)"
        return f"(not {self.truth(expression, rows)})"

    def _not_too_deep(self, code: str) -> str:
        """Return the code, or a call of a function with it: Python limits nested brackets.

        Code that is too long is refused here, before it becomes part of what is longer still.
        """
        if len(code) > SOURCE_LENGTH_MAX:
            raise too_long(len(code))
        if len(code) < 4 * BRACKETS_MOST or brackets_of(code) < BRACKETS_MOST:
            return code
        name = self.source.fresh("deep")
        rows = ", ".join(sorted({*_ROW.findall(code)} - {*_KEPT.findall(code)}))
        functions = self.constants.lines if self.constants.printing else self.functions
        functions += [f"    def {name}({rows}):", f"        return {code}"]
        self.source.lengthen(len(code))
        return f"{name}({rows})"

    def values(self, expressions: tuple[Expression, ...], rows: RowVariables) -> str:
        """Return a tuple of expressions."""
        whole = rows.whole_row(tuple(map(_without_cast, expressions)))
        if whole is not None:
            return whole
        items = self.items(expressions, rows)
        return f"({items},)" if len(expressions) == 1 or "*" in items else f"({items})"

    def together(self, codes: list[str]) -> str:
        return f"({self.apart.items(codes) if is_long(codes) else ', '.join(codes)},)"

    def items(self, expressions: Sequence[Expression], rows: RowVariables) -> str:
        """Return expressions separated by commas. Consecutive slots become a slice."""
        codes = [self.value(each, rows) for each in expressions]
        if self.made:
            codes = sliced(codes)
        return self.apart.items(codes) if is_long(codes) else ", ".join(codes)

    # --- leaves ---

    def constant(self, expression: Constant, rows: RowVariables) -> str:
        value = expression.value
        if value is None or value is True or value is False:
            return repr(value)
        if type(value) is int:
            return repr(value) if value >= 0 else f"({value!r})"
        return self.source.known(value, "constant")

    def slot(self, expression: Slot, rows: RowVariables) -> str:
        if expression.name == "row_id":  # each new row of a table without a key gets its own
            return "context.next_row_id()"
        if expression.name == "temporary_row_id":
            return "context.next_temporary_row_id()"
        if self.row_of_literals is not None and isinstance(expression.name, int):
            return self._literal_of_row(expression)
        if self.constants.is_cast_in_place(expression):
            return self.converted(expression, f"slots[{expression.name!r}]")
        names = self._names_of_slots.setdefault(expression.name, [])
        for slot, name in names:
            if slot == expression:
                return name
        if len(self.slots) < SLOTS_NAMED_MOST:
            name = self.source.fresh("slot")
            self.slots[name] = expression
        else:
            name = f"made[{len(self.made)}]"
            self.made.append(expression)
        names.append((expression, name))
        return name

    def run(self, expression: Slots, rows: RowVariables) -> str:
        """Unpack a run of slots into the items of a list."""
        for name, slot in self.slots.items():
            if slot == expression:
                return f"*{name}"
        name = self.source.fresh("slots")
        self.slots[name] = expression
        return f"*{name}"

    def converted(self, slot: Slot, code: str) -> str:
        """Return the code of a converted literal; literals such as 'now' need the time."""
        convert = slot.convert
        assert convert is not None
        name = self.source.known(convert, "convert")
        if isinstance(convert, MomentReader):
            return f"{name}.at({code}, context)"
        cost = cost_of_slot(slot)
        if cost is None:
            return f"{name}({code})"
        short = f"type({code}) is not str or len({code}) < {BYTES_SMALL}"
        if slot.type.element is not None:
            self.source.name("size_of", size_of)
            short = f"size_of({code}) < {BYTES_SMALL}"
        slow = self.costly(costly_cast(convert, cost, slot.type), [code])
        return f"({name}({code}) if {short} else {slow})"

    def _literal_of_row(self, expression: Slot) -> str:
        code = f"{self.row_of_literals}[{expression.name}]"
        if expression.convert is None:
            return code
        converted = self.converted(expression, code)
        return f"(None if {code} is None else {converted})" if expression.nullable else converted

    def column(self, expression: Column, rows: RowVariables) -> str:
        return rows.column(expression)

    def folded(self, expression: Folded, rows: RowVariables) -> str:
        """Return the name of a constant that is computed before any row."""
        if self.row_of_literals is not None or self.constants.printing:
            return self.value(expression.expression, rows)
        return self.constants.named(expression)

    # --- functions ---

    def apply(self, expression: Apply, rows: RowVariables) -> str:
        if self._is_surely_null(expression):
            return "None"
        checks, result = self._call(expression, rows)
        if not checks:
            return result
        return f"(None if {' or '.join(checks)} else {result})"

    def apply_truth(self, expression: Apply, rows: RowVariables) -> str:
        if self._is_surely_null(expression):
            return "False"
        checks, result = self._call(expression, rows, "is not None")
        return (
            " and ".join([*checks, result])
            if not checks
            else f"({' and '.join([*checks, result])})"
        )

    def apply_falsity(self, expression: Apply, rows: RowVariables) -> str:
        if self._is_surely_null(expression):
            return "False"
        checks, result = self._call(expression, rows, "is not None")
        wrong = f"({result} is False)" if expression.function.gives_null else f"not {result}"
        return f"({' and '.join([*checks, wrong])})"

    def _is_surely_null(self, expression: Apply) -> bool:
        """Tell whether it is NULL; only its constants are computed then."""
        if self.constants.printing or not is_surely_null(expression):
            return False
        self.constants.compute(expression)
        return True

    def _call(
        self, apply: Apply, rows: RowVariables, check: str = "is None"
    ) -> tuple[list[str], str]:
        """Return the NULL checks of the arguments, and the call, which uses their variables.

        All arguments are computed, even if one is NULL: what fails in another is an error. Only a
        constant that is NULL decides alone.
        """
        constants: list[str] = []
        checks: list[str] = []
        computed: list[str] = []
        codes: list[str] = []
        before: list[str] = []
        sized = measured(apply)
        function, arguments = apply.function, apply.arguments
        can_be_null = function.strict and any(each.nullable for each in arguments)
        for position, argument in enumerate(arguments):
            code = self.value(argument, rows)
            if SIMPLE.fullmatch(code):
                if function.strict and argument.nullable:
                    decides = is_fixed(argument) and not self.constants.printing
                    (constants if decides else checks).append(f"{code} {check}")
            elif can_be_null:
                name = self.source.fresh("v")
                computed.append(f"(({name} := {code}) {check})")
                code = name
            elif sized or _used_often(function, position):  # a counted call is printed twice
                name = self.source.fresh("v")
                before.append(f"({name} := {code})")
                code = name
            codes.append(code)
        if computed:
            checks.insert(0, (" | " if check == "is None" else " & ").join(computed))
        checks = constants + checks
        if function.strict and "None" in codes:  # Python warns of a call like None[1]
            return checks, "None"
        result = self.call(function, codes)
        if sized:
            result = self._counted(apply, sized, codes, result)
        if before:
            result = f"({', '.join(before)}, {result})[{len(before)}]"
        return checks, result

    def _counted(self, apply: Apply, sized: tuple[int, ...], codes: list[str], quick: str) -> str:
        """Return a call that is direct if its arguments are short and costly otherwise."""
        slow = self.costly(costly_call(apply.function), codes)
        length, strict = apply.function.length, apply.function.strict
        if sized == (-1,):
            sizes = [] if length is None else [self.fill(length, codes)]
        else:
            sizes = [self._size(apply.arguments[at], codes[at], strict) for at in sized]
        return f"({quick} if {' + '.join(sizes)} < {BYTES_SMALL} else {slow})" if sizes else slow

    def _size(self, argument: Expression, code: str, strict: bool = True) -> str:
        size = size_code(argument, code)
        if "size_of(" in size:
            self.source.name("size_of", size_of)
        return size if strict or not argument.nullable else f"(0 if {code} is None else {size})"

    def costly(self, each: CostlyCall, codes: list[str]) -> str:
        """Return a call through the context, which charges it."""
        self.source.functions += 1
        given = ", ".join([self.source.known(each, "costly"), *codes])
        return f"(yield from costly({given}))" if self.may_yield else f"compute({given})"

    def by_size(self, each: CostlyCall, quick: str, code: str) -> str:
        """Return a call that is direct if the value is short, and costly otherwise."""
        self.source.name("size_of", size_of)
        kept = code if SIMPLE.fullmatch(code) else self.source.fresh("v")
        first = code if kept == code else f"({kept} := {code})"
        slow = self.costly(each, [kept])
        return f"({quick}({kept}) if size_of({first}) < {BYTES_SMALL} else {slow})"

    def call(self, function: Function, codes: list[str]) -> str:
        """Return a function applied to printed arguments that are not NULL."""
        for name, value in function.names.items():
            self.source.name(name, value)
        if function.inline is None:
            name = self.source.known(function.call, "call")
            given = ["context", *codes] if function.takes_context else codes
            return f"{name}({', '.join(given)})"
        return self.fill(function.inline, codes)

    def fill(self, template: str, codes: list[str], states: list[str] | None = None) -> str:
        """Fill a template with its arguments, states and fresh names."""
        fresh: dict[str, str] = {}

        def field(match: re.Match[str]) -> str:
            word = match[1]
            if word.isdigit():
                return codes[int(word)]
            if states is not None and word[0] == "s" and word[1:].isdigit():
                return states[int(word[1:])]
            if word not in fresh:
                fresh[word] = self.source.fresh("v")
            return fresh[word]

        return _FIELD.sub(field, template)

    def cast(self, expression: Cast, rows: RowVariables) -> str:
        bare = _without_cast(expression)
        if bare is not expression:
            return self.value(bare, rows)
        name = self.source.known(expression.function, "cast")
        code = self.value(expression.operand, rows)
        cost = cost_of_cast(expression)
        nullable = expression.operand.nullable
        kept = code if SIMPLE.fullmatch(code) else self.source.fresh("v")
        first = code if kept == code else f"({kept} := {code})"
        if cost is None:
            result = f"{name}({kept if nullable else code})"
        else:
            size = self._size(expression.operand, kept if nullable else first)
            if expression.type.kind in (Kind.JSON, Kind.JSONB, Kind.ARRAY):
                size = f"8 * {size}"  # short texts have many parts
            slow = self.costly(costly_cast(expression.function, cost, expression.type), [kept])
            result = f"({name}({kept}) if {size} < {BYTES_SMALL} else {slow})"
        return f"(None if {first} is None else {result})" if nullable else result

    # --- logic ---

    def and_truth(self, expression: And, rows: RowVariables) -> str:
        return self._chain(self._each(self.truth, expression.operands, rows), " and ")

    def and_falsity(self, expression: And, rows: RowVariables) -> str:
        return self._chain(self._each(self.falsity, expression.operands, rows), " or ")

    def or_truth(self, expression: Or, rows: RowVariables) -> str:
        return self._chain(self._each(self.truth, expression.operands, rows), " or ")

    def or_falsity(self, expression: Or, rows: RowVariables) -> str:
        return self._chain(self._each(self.falsity, expression.operands, rows), " and ")

    def _each(
        self,
        way: Callable[[Expression, RowVariables], str],
        operands: Sequence[Expression],
        rows: RowVariables,
    ) -> list[str]:
        """Print the operands. Long lists move to functions of `apart`, which cannot yield."""
        if len(operands) <= LINES_MOST:
            return [way(each, rows) for each in operands]
        with self.without_yielding():
            return [way(each, rows) for each in operands]

    def _chain(self, codes: list[str], word: str) -> str:
        return f"({self.apart.chain(codes, word) if is_long(codes) else word.join(codes)})"

    def not_truth(self, expression: Not, rows: RowVariables) -> str:
        return self.falsity(expression.operand, rows)

    def not_falsity(self, expression: Not, rows: RowVariables) -> str:
        return self.truth(expression.operand, rows)

    def is_null(self, expression: IsNull, rows: RowVariables) -> str:
        if not expression.operand.nullable and not _may_fail(expression.operand):
            return repr(expression.negated)
        what = "is not None" if expression.negated else "is None"
        return f"({self.value(expression.operand, rows)} {what})"

    def is_truth(self, expression: IsTruth, rows: RowVariables) -> str:
        way = self.truth if expression.truth else self.falsity
        code = way(expression.operand, rows)
        return f"(not {code})" if expression.negated else f"bool({code})"

    def is_distinct(self, expression: IsDistinct, rows: RowVariables) -> str:
        left, first = self._kept(expression.left, rows)
        right, second = self._kept(expression.right, rows)
        compared = comparison_of(expression)
        same = self.call(expression.equal, [first, second])
        if sized := measured(compared):
            same = self._counted(compared, sized, [first, second], same)
        same = f"bool({same})"
        pairs = ((first, expression.left), (second, expression.right))
        nullable = [name for name, operand in pairs if operand.nullable]
        if len(nullable) == 2:
            same = f"({first} is {second} if {first} is None or {second} is None else {same})"
        elif nullable:
            same = f"({nullable[0]} is not None and {same})"
        before = [code for code in (left, right) if code]
        code = same if expression.negated else f"(not {same})"
        return f"({', '.join(before)}, {code})[{len(before)}]" if before else code

    def _kept(self, expression: Expression, rows: RowVariables) -> tuple[str, str]:
        """Return code that assigns the value to a variable, or "", and the name to use."""
        code = self.value(expression, rows)
        if SIMPLE.fullmatch(code):
            return "", code
        name = self.source.fresh("v")
        return f"({name} := {code})", name

    def case(self, expression: Case, rows: RowVariables) -> str:
        conditions = self._each(self.truth, [each for each, _ in expression.whens], rows)
        results = self._each(self.value, [each for _, each in expression.whens], rows)
        whens = list(zip(conditions, results, strict=True))
        return self._first(whens, self.value(expression.otherwise, rows))

    def coalesce(self, expression: Coalesce, rows: RowVariables) -> str:
        choices = []
        *first, last = expression.operands
        for operand in first:
            if not operand.nullable:
                last = operand  # later operands are never evaluated, except for their constants
                self.constants.compute(expression)
                break
            code = self.value(operand, rows)
            if SIMPLE.fullmatch(code):
                choices.append((f"{code} is not None", code))
            else:
                name = self.source.fresh("v")
                choices.append((f"({name} := {code}) is not None", name))
        return self._first(choices, self.value(last, rows))

    def _first(self, choices: list[tuple[str, str]], otherwise: str) -> str:
        """Return the value of the first choice whose condition is true."""
        may_yield = any("yield" in condition or "yield" in value for condition, value in choices)
        if len(choices) > LINES_MOST and not may_yield:
            return self.apart.first(choices, otherwise)
        codes = [f"{value} if {condition} else " for condition, value in choices]
        return f"({''.join(codes)}{otherwise})"

    # --- IN (list) ---

    def in_list_truth(self, expression: InList, rows: RowVariables) -> str:
        return in_list(self, self.constants, expression, rows, truth=True)

    def in_list_falsity(self, expression: InList, rows: RowVariables) -> str:
        return in_list(self, self.constants, expression, rows, truth=False)

    # --- the rest ---

    def elements(self, expression: Elements, rows: RowVariables) -> str:
        """Unpack the elements of an array into the items of a list."""
        self.source.name("elements_of", elements_of)
        return f"*elements_of({self.value(expression.array, rows)})"

    def array(self, expression: Array, rows: RowVariables) -> str:
        values = self.values(expression.items, rows)
        if not any(item.type.kind is Kind.ARRAY for item in expression.items):
            return values
        self.source.name("array_of_arrays", array_of_arrays)
        return f"array_of_arrays({values})"

    def scalar_query(self, expression: ScalarQuery, rows: RowVariables) -> str:
        assert self.subqueries is not None
        return self.subqueries.scalar(expression, rows)

    def array_query(self, expression: ArrayQuery, rows: RowVariables) -> str:
        assert self.subqueries is not None
        return self.subqueries.array(expression, rows)

    def exists(self, expression: Exists, rows: RowVariables) -> str:
        assert self.subqueries is not None
        return self.subqueries.exists(expression, rows)

    def in_query(self, expression: InQuery, rows: RowVariables) -> str:
        assert self.subqueries is not None
        return self.subqueries.in_query(expression, rows)

    def values_found(self, expression: InQuery, rows: RowVariables) -> str:
        assert self.subqueries is not None
        return self.subqueries.values_found(expression, rows)

    def quantified(self, expression: Quantified, rows: RowVariables) -> str:
        assert self.subqueries is not None
        return self.subqueries.quantified(expression, rows)


def _may_fail(expression: Expression) -> bool:
    """Is something computed for it that may raise an error?"""
    return any(type(each) in (Apply, Cast, ScalarQuery) for each in everything(expression))


def _without_cast(expression: Expression) -> Expression:
    """Return the expression without casts that leave values as they are, as to a wider integer."""
    while isinstance(expression, Cast) and expression.function is unchanged:
        expression = expression.operand
    return expression


def _used_often(function: Function, position: int) -> bool:
    inline = function.inline or ""
    return function.length is not None or inline.count(f"{{{position}}}") > 1


_VALUES: dict[type, Callable[[Printer, Any, RowVariables], str]] = {
    Constant: Printer.constant,
    Slot: Printer.slot,
    Slots: Printer.run,
    Column: Printer.column,
    Folded: Printer.folded,
    Apply: Printer.apply,
    Cast: Printer.cast,
    IsNull: Printer.is_null,
    IsTruth: Printer.is_truth,
    IsDistinct: Printer.is_distinct,
    Case: Printer.case,
    Coalesce: Printer.coalesce,
    Array: Printer.array,
    Elements: Printer.elements,
    ScalarQuery: Printer.scalar_query,
    ArrayQuery: Printer.array_query,
    Exists: Printer.exists,
    InQuery: Printer.in_query,
    Quantified: Printer.quantified,
}
_TRUTHS: dict[type, Callable[[Printer, Any, RowVariables], str]] = {
    Apply: Printer.apply_truth,
    And: Printer.and_truth,
    Or: Printer.or_truth,
    Not: Printer.not_truth,
    InList: Printer.in_list_truth,
}
_FALSITIES: dict[type, Callable[[Printer, Any, RowVariables], str]] = {
    Apply: Printer.apply_falsity,
    And: Printer.and_falsity,
    Or: Printer.or_falsity,
    Not: Printer.not_falsity,
    InList: Printer.in_list_falsity,
}
