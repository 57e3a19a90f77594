"""Builds type names, and typed literals: DATE '2024-01-01', INTERVAL '1' YEAR."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from qserver.sql.ast import Call, Cast, Literal, Operator, TypeName
from qserver.sql.ast_builder.expressions import Children, as_tuple, parts
from qserver.sql.ast_builder.places import unexpected
from qserver.sql.terminals import Terminal

# The fields that may follow TO: years and months never mix with the rest.
_LAST_FIELDS = {"year": ("month",), "day": ("hour", "minute", "second")}
_LAST_FIELDS |= {"hour": ("minute", "second"), "minute": ("second",)}


class Types:
    """Methods for the rules under "types"."""

    modifiers = as_tuple

    def type(self, children: Children) -> TypeName:
        name, dimensions = children
        assert isinstance(name, TypeName)
        return name if dimensions is None else replace(name, array_dimensions=dimensions)

    def array_bounds(self, children: Children) -> int:
        return len([each for each in children if each is True]) or 1

    def bound(self, children: Children) -> bool:
        return True

    def generic_type(self, children: Children) -> TypeName:
        name, arguments = children
        made = _named(parts(name), arguments or (), name[0].start)
        return replace(made, quoted=True) if _is_quoted_char(name) else made

    def two_word_type(self, children: Children) -> TypeName:
        first, second, arguments = children
        return TypeName(f"{first.value} {second.value}", arguments or (), position=first.start)

    def datetime_type(self, children: Children) -> TypeName:
        word, arguments, zone = children
        name = word.value if zone is None else f"{word.value} {zone.value} time zone"
        return TypeName(name, arguments or (), position=word.start)

    def interval_type(self, children: Children) -> TypeName:
        word, fields = children
        return _interval(word, fields)

    def interval_precision(self, children: Children) -> TypeName:
        word, arguments = children
        return TypeName("interval", arguments, position=word.start)

    def interval_fields(self, children: Children) -> tuple[str, tuple[Literal, ...]]:
        first, last, arguments = children
        end = first if last is None else last
        if last is not None and last.value not in _LAST_FIELDS.get(first.value, ()):
            raise unexpected(last)
        if arguments and end.value != "second":
            raise unexpected(end)
        name = first.value if last is None else f"{first.value} to {last.value}"
        return name, arguments or ()

    def modifier(self, children: Children) -> Literal:
        sign, number = children
        literal = number.value
        assert isinstance(literal, Literal)
        return replace(literal, negative=True) if sign and sign.value == "-" else literal

    # --- typed literals ---------------------------------------------------------------------------

    def typed_literal(self, children: Children) -> Cast:
        name, string = children
        if not isinstance(name, TypeName):
            name = _named(parts(name), (), name[0].start)
        return Cast(string.value, name, position=name.position)

    def typed_literal_call(self, children: Children) -> Cast:
        """Build `numeric(5, 2) '1.5'`, which begins like a call."""
        call, string = children
        assert isinstance(call, Call)
        arguments: list[Literal] = []
        for argument in call.arguments:
            match argument:
                case Literal():
                    arguments.append(argument)
                case Operator(symbol="-", left=None, right=Literal() as number):
                    arguments.append(replace(number, negative=True))
                case _:
                    raise unexpected(string)
        if not arguments or call.order_by or call.distinct or call.variadic:
            raise unexpected(string)
        name = _named(call.name, tuple(arguments), call.position)
        return Cast(string.value, name, position=call.position)

    def interval_literal(self, children: Children) -> Cast:
        word, string, fields = children
        return Cast(string.value, _interval(word, fields), position=word.start)

    def interval_literal_precision(self, children: Children) -> Cast:
        word, arguments, string = children
        name = TypeName("interval", arguments, position=word.start)
        return Cast(string.value, name, position=word.start)


def _is_quoted_char(name: Children) -> bool:
    """Is it "char", which is another type than char?"""
    first = name[0]
    return len(name) == 1 and first.value == "char" and first.source.text[first.start] == '"'


def _named(name: tuple[str, ...], arguments: tuple[Literal, ...], position: int) -> TypeName:
    return TypeName(name[-1], arguments, schemas=name[:-1], position=position)


def _interval(word: Terminal, fields: Any) -> TypeName:
    if fields is None:
        return TypeName("interval", position=word.start)
    name, arguments = fields
    return TypeName(f"interval {name}", arguments, position=word.start)
