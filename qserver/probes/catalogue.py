"""Lists limits, statements, types and functions by name.

Limits come from `limits.py` with the sentence after each, functions from the compiler's own
registry, so neither list can be incomplete. Statements and types are listed by hand, and each
statement names the probe that runs it.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Final

import msgspec

from qserver import limits
from qserver.functions.all_functions import AGGREGATES, FUNCTIONS, TABLE_FUNCTIONS
from qserver.functions.registry import Aggregate, Function, TableFunction
from qserver.functions.signatures import Signature, is_variadic
from qserver.probes.matrix import PATH


class Limit(msgspec.Struct, frozen=True):
    name: str
    value: float | int
    description: str


class SqlStatement(msgspec.Struct, frozen=True):
    name: str
    probe: str
    """The path of its probe."""


class TypeEntry(msgspec.Struct, frozen=True):
    name: str
    aliases: tuple[str, ...]
    description: str


class FunctionEntry(msgspec.Struct, frozen=True):
    name: str
    kind: str
    """scalar, aggregate, window or table."""
    signatures: list[str]


class Catalogue(msgspec.Struct, frozen=True):
    limits: list[Limit]
    statements: list[SqlStatement]
    types: list[TypeEntry]
    functions: list[FunctionEntry]


STATEMENTS: Final[Mapping[str, str]] = {
    "SELECT": "select",
    "VALUES": "values",
    "TABLE": "values",
    "WITH": "with",
    "SELECT INTO": "select_into",
    "INSERT": "insert",
    "INSERT ON CONFLICT": "upsert",
    "UPDATE": "update",
    "DELETE": "delete",
    "MERGE": "merge",
    "TRUNCATE": "truncate",
    "CREATE TABLE": "create_table",
    "CREATE TABLE AS": "select_into",
    "CREATE INDEX": "create_index",
    "CREATE VIEW": "create_view",
    "CREATE SEQUENCE": "create_sequence",
    "CREATE TYPE": "create_type",
    "CREATE SCHEMA": "create_schema",
    "ALTER TABLE": "alter_table",
    "ALTER TYPE": "create_type",
    "DROP TABLE": "create_table",
    "DROP INDEX": "create_index",
    "DROP SEQUENCE": "create_sequence",
    "DROP TYPE": "create_type",
    "DROP SCHEMA": "create_schema",
    "COMMENT ON": "comment",
    "EXPLAIN": "explain",
    "SHOW": "settings",
    "SET": "settings",
}

TYPES: Final = (
    TypeEntry("boolean", ("bool",), "true or false"),
    TypeEntry("smallint", ("int2",), "16 bits"),
    TypeEntry("integer", ("int", "int4"), "32 bits"),
    TypeEntry("bigint", ("int8",), "64 bits"),
    TypeEntry("numeric", ("decimal", "dec"), "exact, with up to 131072 digits before the point"),
    TypeEntry("real", ("float4",), "32-bit floating point"),
    TypeEntry("double precision", ("float8", "float"), "64-bit floating point"),
    TypeEntry("text", (), "any Unicode text without the character 0"),
    TypeEntry("character varying", ("varchar",), "text of up to n characters"),
    TypeEntry("character", ("char", "bpchar"), "text of n characters, padded with blanks"),
    TypeEntry("date", (), "days of the years 1 to 9999"),
    TypeEntry("timestamp without time zone", ("timestamp",), "to the microsecond"),
    TypeEntry("timestamp with time zone", ("timestamptz",), "a moment, shown in UTC"),
    TypeEntry("time without time zone", ("time",), "of a day, to the microsecond"),
    TypeEntry("time with time zone", ("timetz",), "of a day, with an offset"),
    TypeEntry("interval", (), "months, days and microseconds"),
    TypeEntry("uuid", (), "128 bits"),
    TypeEntry("bytea", (), "bytes"),
    TypeEntry("json", (), "a JSON value, kept as it was written"),
    TypeEntry("jsonb", (), "a JSON value that can be compared, searched and changed"),
    TypeEntry("jsonpath", (), "a path into a JSON value, which finds parts of it"),
    TypeEntry("enum", (), "one of the labels of CREATE TYPE … AS ENUM"),
    TypeEntry("array", (), "of any of these, up to 6 dimensions: integer[]"),
    TypeEntry("record", (), "a row within a query"),
)

WINDOW_FUNCTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "row_number": ("row_number() → bigint",),
    "rank": ("rank() → bigint",),
    "dense_rank": ("dense_rank() → bigint",),
    "percent_rank": ("percent_rank() → double precision",),
    "cume_dist": ("cume_dist() → double precision",),
    "ntile": ("ntile(integer) → integer",),
    "lag": ("lag(anycompatible [, integer [, anycompatible]]) → anycompatible",),
    "lead": ("lead(anycompatible [, integer [, anycompatible]]) → anycompatible",),
    "first_value": ("first_value(anyelement) → anyelement",),
    "last_value": ("last_value(anyelement) → anyelement",),
    "nth_value": ("nth_value(anyelement, integer) → anyelement",),
}


@cache
def catalogue() -> Catalogue:
    """The whole catalogue; constant while the program runs."""
    return Catalogue(
        list(_limits()),
        [SqlStatement(name, PATH + probe) for name, probe in STATEMENTS.items()],
        list(TYPES),
        list(_functions()),
    )


def _limits() -> Iterator[Limit]:
    """Each assignment of `limits.py` in capitals, with the sentence after it."""
    body = ast.parse(inspect.getsource(limits)).body
    for statement, following in pairwise(body):
        if isinstance(statement, ast.Assign):
            sentence = _sentence(following)
            for name in _names(statement.targets):
                yield Limit(name, getattr(limits, name), sentence)


def _names(targets: Sequence[ast.expr]) -> Iterator[str]:
    for target in targets:
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                yield node.id


def _sentence(statement: ast.stmt) -> str:
    assert isinstance(statement, ast.Expr), "every limit is followed by a sentence"
    return " ".join(str(ast.literal_eval(statement.value)).split())


def _functions() -> Iterator[FunctionEntry]:
    registries: tuple[tuple[str, Mapping[str, tuple[Any, ...]]], ...] = (
        ("scalar", FUNCTIONS),
        ("aggregate", AGGREGATES),
        ("table", TABLE_FUNCTIONS),
    )
    for kind, registry in registries:
        for name in sorted(registry):
            yield FunctionEntry(name, kind, [_written(each) for each in registry[name]])
    for name, signatures in WINDOW_FUNCTIONS.items():
        yield FunctionEntry(name, "window", list(signatures))


def _written(signature: Signature) -> str:
    """`round(numeric, integer) → numeric`; the result type of a generic one depends on the call."""
    parameters = [str(each) for each in signature.parameters]
    if is_variadic(signature):
        parameters[-1] = f"{parameters[-1]} …"
    call = f"{signature.name}({', '.join(parameters)})"
    match signature:
        case Function() | Aggregate():
            return f"{call} → {signature.returns}"
        case TableFunction():
            columns = ", ".join(f"{name} {sql_type}" for name, sql_type in signature.columns)
            return f"{call} → setof ({columns})"
        case _:
            return call
