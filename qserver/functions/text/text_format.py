"""format('%s is %-10s of %2$I', …): PostgreSQL's format strings.

    %[position$][-][width or * or *position$]type      type: s text, I identifier, L literal, or %

Without a position, the argument after the last used one is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from qserver.errors import InvalidParameterValue, NullValueNotAllowed, NumericValueOutOfRange
from qserver.functions.costs import template_cost
from qserver.functions.registry import Function
from qserver.functions.signatures import Generic
from qserver.functions.text.quoting import quote_literal
from qserver.functions.text.strings import checked_length
from qserver.values.casts import cast_function
from qserver.values.digits import clipped_integer
from qserver.values.identifiers import quote_identifier
from qserver.values.text_output import shown_function
from qserver.values.types import ANY, INTEGER, TEXT, SqlType

_SPECIFIER: Final = re.compile(
    r"%(?:(?P<position>[0-9]+)\$)?(?P<left>-*)"
    r"(?:\*(?:(?P<width_position>[0-9]+)\$|(?P<width_next>))|(?P<width>[0-9]+))?(?P<type>.?)",
    re.DOTALL | re.ASCII,
)

NUMBER_MAX: Final = 2**31 - 1

_integer: Final = cast_function(TEXT, INTEGER)


def _format(types: tuple[SqlType, ...]) -> Function:
    printers = tuple(map(shown_function, types[1:]))

    def format_text(template: str | None, *values: Any) -> str | None:
        return None if template is None else _Formatter(printers, values).fill(template)

    return Function(
        "format",
        types,
        TEXT,
        format_text,
        strict=False,
        gives_null=True,
        cost=template_cost,
        explodes=True,
    )


class _Formatter:
    """One call of format: its arguments, and the last one used."""

    def __init__(self, printers: tuple[Callable[[Any], str], ...], values: tuple[Any, ...]) -> None:
        self.printers = printers
        self.values = values
        self.last = 0
        self.length = 0

    def fill(self, template: str) -> str:
        result = _SPECIFIER.sub(self._one, template)
        checked_length(len(result))
        return result

    def _one(self, match: re.Match[str]) -> str:
        kind = match["type"]
        if match[0] == "%%":
            return "%"
        if not kind:
            raise InvalidParameterValue(
                "unterminated format() type specifier", hint='For a single "%" use "%%".'
            )
        if kind not in "sIL":
            raise InvalidParameterValue(
                f'unrecognized format() type specifier "{kind}"', hint='For a single "%" use "%%".'
            )
        width = self._width(match)
        text = self._argument(match["position"])
        if kind == "I":
            if text is None:
                raise NullValueNotAllowed("null values cannot be formatted as an SQL identifier")
            text = quote_identifier(text)
        elif kind == "L":
            text = "NULL" if text is None else quote_literal(text)
        else:
            text = text or ""
        self.length += max(abs(width), len(text))
        checked_length(self.length)
        return text.ljust(abs(width)) if match["left"] or width < 0 else text.rjust(width)

    def _width(self, match: re.Match[str]) -> int:
        if match["width"]:
            return _number(match["width"])
        if match["width_position"] is None and match["width_next"] is None:
            return 0
        text = self._argument(match["width_position"])
        return 0 if text is None else int(_integer(text))

    def _argument(self, position: str | None) -> str | None:
        number = self.last + 1 if position is None else _number(position)
        if number == 0:
            raise InvalidParameterValue(
                "format specifies argument 0, but arguments are numbered from 1"
            )
        if number > len(self.values):
            raise InvalidParameterValue("too few arguments for format()")
        self.last = number
        value = self.values[number - 1]
        return None if value is None else self.printers[number - 1](value)


def _number(digits: str) -> int:
    """Read a position or a width of the template."""
    number = clipped_integer(digits)
    if number > NUMBER_MAX:
        raise NumericValueOutOfRange("number is out of range")
    return number


FUNCTIONS: Final = (
    Generic("format", (TEXT,), _format),
    Generic("format", (TEXT, ANY), _format, variadic=True),
)
