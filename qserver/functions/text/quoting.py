"""quote_ident, quote_literal, quote_nullable: names and values as SQL."""

from __future__ import annotations

import re
from typing import Any, Final

from qserver.functions.costs import linear
from qserver.functions.registry import Function
from qserver.functions.signatures import Generic
from qserver.values.text_output import text_function
from qserver.values.types import ANYELEMENT, TEXT, SqlType

_PLAIN_NAME: Final = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)

# Words that need quotes as names in PostgreSQL 15.
RESERVED: Final = frozenset(
    re.findall(
        r"\w+",
        """
    all analyse analyze and any array as asc asymmetric authorization between bigint binary
    bit boolean both case cast char character check coalesce collate collation column
    concurrently constraint create cross current_catalog current_date current_role
    current_schema current_time current_timestamp current_user dec decimal default
    deferrable desc distinct do else end except exists extract false fetch float for foreign
    freeze from full grant greatest group grouping having ilike in initially inner inout int
    integer intersect interval into is isnull join lateral leading least left like limit
    localtime localtimestamp national natural nchar none normalize not notnull null nullif
    numeric offset on only or order out outer overlaps overlay placing position precision
    primary real references returning right row select session_user setof similar smallint
    some substring symmetric table tablesample then time timestamp to trailing treat trim
    true union unique user using values varchar variadic verbose when where window with
    xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi
    xmlroot xmlserialize xmltable
    """,
    )
)


def quote_identifier(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) and name not in RESERVED else quoted(name)


def quoted(name: str) -> str:
    """Return a name in quotes, also where it needs none."""
    return '"' + name.replace('"', '""') + '"'


def quote_literal(text: str) -> str:
    quoted = "'" + text.replace("'", "''") + "'"
    return "E" + quoted.replace("\\", "\\\\") if "\\" in text else quoted


def quote_nullable(text: str | None) -> str:
    return "NULL" if text is None else quote_literal(text)


def _literal_of(types: tuple[SqlType, ...]) -> Function:
    show = text_function(types[0])
    return Function("quote_literal", types, TEXT, lambda value: quote_literal(show(value)))


def _nullable_of(types: tuple[SqlType, ...]) -> Function:
    show = text_function(types[0])

    def call(value: Any) -> str:
        return "NULL" if value is None else quote_literal(show(value))

    return Function("quote_nullable", types, TEXT, call, strict=False)


FUNCTIONS: Final = (
    Function("quote_ident", (TEXT,), TEXT, quote_identifier),
    Function("quote_literal", (TEXT,), TEXT, quote_literal, cost=linear(12)),
    Generic("quote_literal", (ANYELEMENT,), _literal_of),
    Function("quote_nullable", (TEXT,), TEXT, quote_nullable, strict=False),
    Generic("quote_nullable", (ANYELEMENT,), _nullable_of),
)
