"""Builds function calls; special syntax with keywords becomes ordinary calls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from qserver.errors import SqlSyntaxError
from qserver.sql.ast import (
    Call,
    Cast,
    Expression,
    Name,
    NamedArgument,
    TypeName,
    Window,
    Word,
)
from qserver.sql.ast_builder.expressions import Children, as_list, parts
from qserver.sql.ast_builder.precedence import operand
from qserver.sql.terminals import Terminal

_NORMAL_FORMS = ("nfc", "nfd", "nfkc", "nfkd")
_TRIMS = {"both": "btrim", "leading": "ltrim", "trailing": "rtrim"}


@dataclass(frozen=True, slots=True)
class Variadic:
    """An argument with VARIADIC, until the call is built."""

    expression: Expression
    position: int


def number(digits: str, position: int) -> Cast:
    """Build a number that is not in the text: it has no slot, so it is spelled as a word."""
    word = Word(digits, position=position)
    return Cast(word, TypeName("int4", position=position), position=position)


class Functions:
    """Methods for the rules under "functions"."""

    arguments = as_list

    def named_argument(self, children: Children) -> NamedArgument:
        name, _, value = children
        return NamedArgument(name.value, value, position=name.start)

    def variadic(self, children: Children) -> Variadic:
        word, expression = children
        return Variadic(expression, word.start)

    def call_nothing(self, children: Children) -> Call:
        return _call(children[0], ())

    def call_star(self, children: Children) -> Call:
        return replace(_call(children[0], ()), star=True)

    def call(self, children: Children) -> Call:
        name, quantifier, arguments, order_by = children
        call = _call(name, arguments)
        if call.name == ("normalize",) and len(call.arguments) == 2:
            call = replace(call, arguments=(call.arguments[0], _normal_form(call.arguments[1])))
        distinct = quantifier is not None and quantifier.type == "DISTINCT"
        if distinct or order_by:
            return replace(call, distinct=distinct, order_by=order_by or ())
        return call

    def function(self, children: Children) -> Call:
        call, within_group, condition, over = children
        assert isinstance(call, Call)
        if within_group:
            _check_within_group(call)
            call = replace(call, within_group=within_group)
        if condition is not None or over is not None:
            call = replace(call, filter=condition, over=over)
        return call

    def over(self, children: Children) -> Window:
        word, window = children
        if isinstance(window, Terminal):
            return Window(window.value, copied=False, position=window.start)
        assert isinstance(window, Window)
        return replace(window, position=word.start)

    # --- calls with keywords ----------------------------------------------------------------------

    def special_call(self, children: Children) -> Call:
        word, arguments = children
        return _call(word, arguments)

    def extract(self, children: Children) -> Call:
        word, field, value = children
        what = field.value
        if field.type != "STRING":
            what = Word(field.value, position=field.start)
        return _call(word, (what, value))

    def position(self, children: Children) -> Call:
        word, searched, text = children
        return _call(word, (operand(searched), operand(text)))

    def substring_from(self, children: Children) -> Call:
        word, text, start, length = children
        return _call(word, (text, start) if length is None else (text, start, length))

    def substring_for(self, children: Children) -> Call:
        word, text, length, start = children
        if start is None:
            start = number("1", word.start)
        return _call(word, (text, start, length))

    def substring_similar(self, children: Children) -> Call:
        word, text, _, pattern, _, escape = children
        return _call(word, (text, operand(pattern), escape))

    def overlay(self, children: Children) -> Call:
        word, text, replacement, start, length = children
        arguments = (text, replacement, start)
        return _call(word, arguments if length is None else (*arguments, length))

    def trim(self, children: Children) -> Call:
        word, side, arguments = children
        name = _TRIMS["both" if side is None else side.value]
        return Call((name,), tuple(arguments), position=word.start)

    def trim_from(self, children: Children) -> Call:
        word, side, characters, arguments = children
        if characters is not None:
            arguments = (*arguments, characters)
        return self.trim([word, side, arguments])

    def cast(self, children: Children) -> Cast:
        word, value, type_name = children
        return Cast(value, type_name, position=word.start)

    def system_value(self, children: Children) -> Call:
        word, precision = children
        return _call(word, () if precision is None else (precision.value,))

    def collation_for(self, children: Children) -> Call:
        word, value = children
        return Call(("pg_collation_for",), (value,), position=word.start)


def _normal_form(argument: Any) -> Any:
    """Treat NFC and the other forms as words, as in EXTRACT, not as columns."""
    if isinstance(argument, Name) and argument.parts[-1] in _NORMAL_FORMS:
        return Word(argument.parts[-1], position=argument.position)
    return argument


def _call(name: Any, arguments: Any) -> Call:
    """Build a call; the name is a terminal or a list of them."""
    terminals = name if isinstance(name, list) else [name]
    values: list[Any] = []
    variadic = False
    for argument in arguments:
        if variadic:
            raise SqlSyntaxError(
                "VARIADIC must be in front of the last argument", position=argument.position + 1
            )
        if isinstance(argument, Variadic):
            variadic = True
            argument = argument.expression
        values.append(argument)
    return Call(parts(terminals), tuple(values), variadic=variadic, position=terminals[0].start)


def _check_within_group(call: Call) -> None:
    problem = ""
    if call.order_by:
        problem = "cannot use multiple ORDER BY clauses with WITHIN GROUP"
    elif call.distinct:
        problem = "cannot use DISTINCT with WITHIN GROUP"
    elif call.variadic:
        problem = "cannot use VARIADIC with WITHIN GROUP"
    if problem:
        raise SqlSyntaxError(problem, position=call.position + 1)
