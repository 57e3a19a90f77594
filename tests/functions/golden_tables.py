"""Golden tables: one call or operator per line, with typed literals, and PostgreSQL's answer.

    '1'::integer / '3.0'::numeric => '0.33333333333333333333'
    format('%'::text) => error 22023: unterminated format() type specifier
    split_part('a'::text, null::text, '1'::integer) => null

They are answered without a statement: by the resolver, casts, and the function itself. So a line
also tells whether the right function was chosen and what type its result has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from qserver.errors import QserverError
from qserver.functions.resolve import resolve_function, resolve_operator
from qserver.values.text_output import text_function
from qserver.values.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    NUMERIC,
    REAL,
    SMALLINT,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    SqlType,
    char,
)
from tests.functions.typed_calls import Argument, value_of

FOLDER: Final = Path(__file__).parent / "golden"

TYPES: Final[dict[str, SqlType]] = {
    str(each): each
    for each in (
        *(BOOLEAN, SMALLINT, INTEGER, BIGINT, NUMERIC, REAL, DOUBLE),
        *(TEXT, VARCHAR, char(3), char(4), char(5), BYTEA, DATE, TIMESTAMP, TIMESTAMPTZ),
    )
}
_LITERAL: Final = re.compile(
    r"(?:'(?P<text>(?:[^']|'')*)'|null)::(?P<type>[a-z]+(?: [a-z]+)*(?:\([0-9]+\))?)"
)


@dataclass(frozen=True, slots=True)
class Line:
    expression: str
    answer: str


def lines_of(path: Path) -> Iterator[Line]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("# "):
            expression, answer = line.rsplit(" => ", 1)
            yield Line(expression, answer)


def answer_to(expression: str) -> str:
    """What we say, in the words of the tables."""
    arguments: list[Argument] = []

    def take(match: re.Match[str]) -> str:
        text = match["text"]
        arguments.append((TYPES[match["type"]], None if text is None else text.replace("''", "'")))
        return ""

    # What is left without the literals is `name(, )` or a symbol between blanks.
    rest = _LITERAL.sub(take, expression)
    name = rest.split("(", 1)[0].strip()
    try:
        result = _called(name, arguments)
    except QserverError as error:
        return f"error {error.code}: {error.message}"
    return "null" if result is None else f"'{result}'"


def _called(name: str, arguments: list[Argument]) -> str | None:
    types = [sql_type for sql_type, _ in arguments]
    if name.isidentifier():
        resolved = resolve_function(name, types)
    else:
        resolved = resolve_operator(name, types[0] if len(types) == 2 else None, types[-1])
    values = [
        value_of(argument, wanted)
        for argument, wanted in zip(arguments, resolved.parameters, strict=True)
    ]
    if resolved.function.strict and None in values:
        return None
    result = resolved.function.call(*values)
    if result is None:
        assert resolved.function.gives_null, f"{name} says that it gives no NULL"
        return None
    return text_function(resolved.returns)(result)
