"""Subqueries inside expressions: functions of the outer columns that they name.

A subquery becomes a function whose arguments are the outer columns that it depends on. It caches
its results, so it runs once for each distinct combination of them. A volatile subquery runs for
each row, unless it depends on no outer column.

A subquery may take as long as any statement, so its function is a generator, called with `yield
from`. Python does not allow that within a lambda or a comprehension, nor is it possible in a
function that yields something else; a statement with such a call (see `may_yield`) is printed again
with plain functions, which only check the deadline.

CTEs that the subquery reads and does not compute are arguments too. Each iteration of a recursion,
and each outer row of an enclosing subquery, recomputes them, which clears the cache.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from qserver.functions.context import CostlyCall
from qserver.functions.costs import BYTES_SMALL
from qserver.sql.codegen.charges import costly_call, may_be_long
from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.codegen.expressions import Printer
from qserver.sql.codegen.long_values import long_columns, types_made
from qserver.sql.codegen.nans import may_be_nan, one_nan, rows_told_apart, told_apart
from qserver.sql.codegen.pipeline import Pipeline
from qserver.sql.codegen.runtime import is_in, quantified, row_is_in, rows_found, single
from qserver.sql.expressions import ArrayQuery, Exists, InQuery, Quantified, ScalarQuery
from qserver.sql.plan import CommonTable, CommonTableScan, Plan
from qserver.sql.walk import everything, free_columns, is_volatile, output_sources
from qserver.values.sizes import is_sized, size_of
from qserver.values.steps import at_once

FUNCTION = "query"
"""The prefix of subquery functions."""

COUNTED = ("costly", "row_is_in", "quantified")
"""Runtime functions that yield within an expression."""

REMEMBERED_BYTES = 128
"""What an answer takes beside its bytes and those of its key."""

GENERATORS = ("run", FUNCTION, "both")
"""Functions that may pass on a yield: their callers know what None means."""

_IS_IN = CostlyCall("IN", is_in, lambda value, found: size_of(value) // BYTES_SMALL, False)


class Subqueries:
    """Prints subqueries as functions; `functions` are lines to place before the main loops."""

    def __init__(
        self, printer: Printer, make_operators: Callable[[], Pipeline], may_yield: bool
    ) -> None:
        self.may_yield = may_yield
        self.printer = printer
        self.source = printer.source
        self.make_operators = make_operators
        self.functions: list[str] = []

    def scalar(self, expression: ScalarQuery, rows: RowVariables) -> str:
        self.source.name("single", single)
        return self._call(expression.plan, rows, "rows", "single({rows})")

    def array(self, expression: ArrayQuery, rows: RowVariables) -> str:
        return self._call(expression.plan, rows, "rows", "tuple([row[0] for row in {rows}])")

    def exists(self, expression: Exists, rows: RowVariables) -> str:
        code = self._call(expression.plan, rows, "first", "False")
        return f"(not {code})" if expression.negated else code

    def in_query(self, expression: InQuery, rows: RowVariables) -> str:
        if len(expression.operands) == 1:
            self.source.name("is_in", is_in)
            found = self.values_found(expression, rows)
            (operand,) = expression.operands
            value = told_apart(self.source, operand.type, self.printer.value(operand, rows))
            if may_be_long(operand):
                code = self.printer.costly(_IS_IN, [value, found])
            else:
                code = f"is_in({value}, {found})"
        else:
            self.source.name("rows_found", rows_found)
            types = [each.type for each in expression.operands]
            alike = "{rows}"
            if any(map(may_be_nan, types)):
                self.source.name("one_nan", one_nan)
                alike = "list(map(one_nan, {rows}))"
            found = self._call(expression.plan, rows, "rows", f"rows_found({alike})")
            row = rows_told_apart(
                self.source, types, self.printer.values(expression.operands, rows)
            )
            code = self._steps(f"row_is_in(context, {row}, {found})", row_is_in)
        return self._negated(code) if expression.negated else code

    def values_found(self, expression: InQuery, rows: RowVariables) -> str:
        """Return the code for the values of the only column, as `is_in` takes them."""
        return self._call(expression.plan, rows, "set", "")

    def quantified(self, expression: Quantified, rows: RowVariables) -> str:
        found = self._call(expression.plan, rows, "rows", "{rows}")
        function = expression.comparison
        compare = self.source.known(function.call, "call")
        if any(map(is_sized, function.parameters)):
            self.source.name("partial", partial)
            compare = f"partial(compute, {self.source.known(costly_call(function), 'costly')})"
        operand = self.printer.value(expression.operand, rows)
        call = f"quantified(context, {compare}, {operand}, {found}, {expression.is_all})"
        return self._steps(call, quantified)

    def _steps(self, call: str, function: Callable[..., Any]) -> str:
        """Return the call of a runtime generator for its result."""
        self.source.name(function.__name__, function)
        if self.printer.may_yield:
            return f"(yield from {call})"
        self.source.name("at_once", at_once)
        return f"at_once({call})"

    def _negated(self, code: str) -> str:
        name = self.source.fresh("v")
        return f"(None if ({name} := {code}) is None else not {name})"

    def _call(self, node: Plan, rows: RowVariables, way: str, result: str) -> str:
        """Print the function of a subquery; return the code that calls it with outer columns."""
        outer = free_columns(node)
        name = self.source.fresh(FUNCTION)
        arguments = [self.source.fresh("a") for _ in outer]
        inside = RowVariables(
            columns={
                (column.source, column.position): argument
                for column, argument in zip(outer, arguments, strict=True)
            }
        )
        with self.source.set_aside() as lines:
            self._function(name, arguments, node, inside, way, result)
        self.functions += lines
        self.source.functions += 1
        values = [rows.column(column) for column in outer]
        call = f"{name}({', '.join([*values, *_tables_read(node)])})"
        return f"(yield from {call})" if self.may_yield else call

    def _function(
        self,
        name: str,
        arguments: list[str],
        node: Plan,
        inside: RowVariables,
        way: str,
        result: str,
    ) -> None:
        line = self.source.line
        tables = _tables_read(node)
        memory = self.source.fresh("memory")
        line(f"{memory} = {{}}")
        if tables:
            line(f"{memory}_of = {[None] * len(tables)}")
        key = f"({', '.join(arguments)}{',' if len(arguments) == 1 else ''})"
        with self.source.block(f"def {name}({', '.join([*arguments, *tables])}):"):
            for at, table in enumerate(tables):
                with self.source.block(f"if {memory}_of[{at}] is not {table}:"):
                    line(f"{memory}_of[{at}] = {table}")
                    line(f"{memory}.clear()")
            if not (arguments and is_volatile(node)):
                with self.source.block(f"if {key} in {memory}:"):
                    line(f"return {memory}[{key}]")
            long = [at for at, column in enumerate(free_columns(node)) if is_sized(column.type)]
            remembered = _Remembered(f"{memory}[{key}]", [arguments[at] for at in long])
            self._body(node, inside, way, result, remembered)
            if self.may_yield:
                line("yield")  # never reached: makes the function a generator

    def _body(
        self, node: Plan, inside: RowVariables, way: str, result: str, remembered: _Remembered
    ) -> None:
        line = self.source.line
        pipeline = self.make_operators()
        if way == "first":

            def found(_: RowVariables) -> None:
                self._remember(remembered, "True")

            pipeline.produce(node, inside, found)
            self._remember(remembered, "False")
            return
        kept = pipeline.keep(node, inside)
        if way == "set":
            (column_type,) = types_made(node, output_sources(node)[0])
            column = f"{{{told_apart(self.source, column_type, 'row[0]')} for row in {kept}}}"
            line(f"values = {column}")
            line("has_null = None in values")
            line("values.discard(None)")
            line(f"answer = (values, has_null, bool({kept}))")
        else:
            line(f"answer = {result.format(rows=kept)}")
        is_long = way == "rows" and bool(long_columns(node, output_sources(node)[0]))
        self._remember(remembered, "answer", is_long)
        assert len(output_sources(node)) == 1

    def _remember(self, remembered: _Remembered, answer: str, is_long: bool = False) -> None:
        """Print what keeps an answer, charges its memory, and returns it."""
        codes = [*remembered.long, *[answer] * is_long]
        self.source.name("size_of", size_of)
        sizes = "".join(f" + size_of({code})" for code in codes)
        self.source.line(f"context.hold_bytes({REMEMBERED_BYTES}{sizes})")
        self.source.line(f"{remembered.place} = {answer}")
        self.source.line(f"return {answer}")


@dataclass(frozen=True)
class _Remembered:
    """Where an answer is kept, and the variables of its key that may be long."""

    place: str
    long: list[str]


def may_yield(text: str) -> bool:
    """Tell whether all calls of subqueries are in places that allow `yield from`."""
    return _is_plain(text) or _may_yield_parsed(text)


def _is_plain(text: str) -> bool:
    """Tell whether no call is near a lambda or a comprehension: parsing takes a hundred times as
    long, and few statements need it. A statement of the text is a line."""
    around: list[tuple[int, bool]] = []
    for line in text.split("\n"):
        code = line.lstrip(" ")
        depth = len(line) - len(code)
        while around and around[-1][0] >= depth:
            around.pop()
        if code.startswith("def "):
            around.append((depth, _hands_on(code[4 : code.index("(")])))
        elif "yield from" not in code or not _CALL.search(code):
            continue
        elif " for " in code or "lambda" in code or not all(each for _, each in around):
            return False
    return True


def _may_yield_parsed(text: str) -> bool:
    waiting: list[tuple[ast.AST, bool]] = [(ast.parse(text), True)]
    while waiting:
        node, hands_on = waiting.pop()
        if isinstance(node, ast.FunctionDef):
            hands_on = hands_on and _hands_on(node.name)
        elif isinstance(node, _CLOSED):
            hands_on = False
        elif not hands_on and _calls_subquery(node):
            return False
        waiting += [(inner, hands_on) for inner in ast.iter_child_nodes(node)]
    return True


def _hands_on(name: str) -> bool:
    return name.rstrip("0123456789") in GENERATORS


_CALL = re.compile(rf"yield from[\s(]+(?:{'|'.join(COUNTED)}|{FUNCTION})")
_CLOSED = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _calls_subquery(node: ast.AST) -> bool:
    match node:
        case ast.YieldFrom(value=ast.Call(func=ast.Name(id=name))):
            return name in COUNTED or name.startswith(FUNCTION)
        case _:
            return False


def _tables_read(node: Plan) -> list[str]:
    """Return the names of CTEs that a plan reads and does not compute."""
    nodes = list(everything(node))
    made = {each.number for each in nodes if type(each) is CommonTable}
    read = {each.number for each in nodes if type(each) is CommonTableScan}
    return [f"table{number}" for number in sorted(read - made)]
