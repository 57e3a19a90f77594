"""The lines of a compiled function that compute constants, before any row is read.

set0_all = {1, 2, slot0}             the items of IN, and without NULL
fixed0 = call_3(slot1, slot2)        a constant part of an expression
fixed1 = None
if fixed0 is not False:              one that counts only if the first does not decide alone
    fixed1 = divide(slot3, slot4)
"""

from __future__ import annotations

from typing import Any, Final

from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.codegen.port import ExpressionPrinter
from qserver.sql.expressions import Constant, Expression, Folded, Slot
from qserver.sql.folding import is_cast_literal
from qserver.sql.walk import everything

CONSTANTS_MOST: Final = 64
"""The most constants that are variables; further ones are computed where they are used."""


class Constants:
    """Prints constants; `lines` are in the order in which they need each other."""

    def __init__(self, printer: ExpressionPrinter) -> None:
        self.lines: list[str] = []
        self.printing = False
        """Whether a constant is being printed: its literals are cast in place, if it counts."""
        self._printer = printer
        self._names: dict[int, tuple[str, Folded]] = {}
        self._sets: dict[str, str] = {}

    def set_of(self, code: str) -> str:
        """Return the name of a set of these items."""
        name = self._sets.get(code)
        if name is None:
            name = self._sets[code] = self._printer.source.fresh("set")
            self.lines += [f"    {name}_all = {{{code}}}", f"    {name} = {name}_all - {{None}}"]
        return name

    def compute(self, expression: Expression) -> None:
        """Print the constants in an expression that is not printed itself."""
        for each in everything(expression):
            if type(each) is Folded:
                self.named(each)

    def is_cast_in_place(self, slot: Slot) -> bool:
        return self.printing and isinstance(slot.name, int) and is_cast_literal(slot)

    def is_ready(self, expression: Expression) -> bool:
        """Can it be used by a line before the one that is being printed?"""
        return not (isinstance(expression, Slot) and self.is_cast_in_place(expression))

    def named(self, folded: Folded) -> str:
        """Return the name of a constant."""
        if id(folded) not in self._names:
            if len(self._names) >= CONSTANTS_MOST:
                return self._printer.value(folded.expression, RowVariables())
            self._names[id(folded)] = self._print(folded), folded
        return self._names[id(folded)][0]

    def _print(self, folded: Folded) -> str:
        guards: list[str] = []
        for guard in folded.guards:
            if isinstance(guard.expression, Constant):
                return "None"
            code = self._printer.value(guard.expression, RowVariables())
            guards.append(f"{code} {guard.test}")
        name = self._printer.source.fresh("fixed")
        line = f"{name} = {self._code(folded.expression)}"
        if guards:
            self.lines += [f"    {name} = None", f"    if {' and '.join(guards)}:"]
            self.lines.append(f"        {line}")
        else:
            self.lines.append(f"    {line}")
        return name

    def _code(self, expression: Any) -> str:
        self.printing = True
        try:
            return self._printer.value(expression, RowVariables())
        finally:
            self.printing = False
