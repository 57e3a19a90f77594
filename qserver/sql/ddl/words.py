"""Options of DDL that PostgreSQL knows and qserver does not implement: ignored or refused.

An option that would change the meaning of a statement is implemented or refused, never ignored.
Options that only tune PostgreSQL's storage are accepted, if PostgreSQL knows them, and ignored;
docs/sql.md lists them and says why they are harmless.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from qserver.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidParameterValue,
    InvalidTableDefinition,
    UndefinedObject,
)
from qserver.sql import ast
from qserver.sql.binder.expressions.scalars import COLLATIONS
from qserver.values.temporary import TEMPORARY
from qserver.values.types import TEXT_KINDS, Kind, SqlType

_TABLE_OPTIONS: Final = frozenset(
    {"fillfactor", "parallel_workers", "toast_tuple_target", "user_catalog_table", "oids"}
)
_TABLE_PREFIXES: Final = ("autovacuum_", "vacuum_", "toast.", "log_autovacuum_")
_INDEX_OPTIONS: Final = frozenset(
    {
        "fillfactor",
        "deduplicate_items",
        "fastupdate",
        "gin_pending_list_limit",
        "buffering",
        "pages_per_range",
        "autosummarize",
    }
)
_VIEW_OPTIONS: Final = frozenset({"check_option", "security_barrier", "security_invoker"})
CHECK_OPTIONS: Final = ("local", "cascaded")

OptionWords = Sequence[tuple[str, str]]


def check_words(statement: ast.Statement) -> None:
    """Refuse options that cannot be ignored."""
    match statement:
        case ast.CreateTable():
            _check_table_options(statement)
            for column in statement.columns:
                _check_column(column)
            for constraint in statement.constraints:
                check_attributes(constraint)
        case ast.CreateView():
            check_view_options(statement.options)
        case ast.CreateIndex():
            _check_known(statement.options, _INDEX_OPTIONS)
            _check_method(statement)
        case ast.AlterTable():
            for action in statement.actions:
                _check_action(statement, action)
        case _:
            pass


def _check_action(node: ast.AlterTable, action: ast.AlterAction) -> None:
    if action.column is not None:
        _check_column(action.column)
    if action.constraint is not None:
        check_attributes(action.constraint)
    if action.collation is not None:
        check_collation(action.collation)
    if action.kind in ("set options", "reset options") and node.what == "index":
        _check_known(action.words, _INDEX_OPTIONS)


def _check_column(column: ast.ColumnDefinition) -> None:
    if column.collation is not None:
        check_collation(column.collation)
    for constraint in column.constraints:
        check_attributes(constraint)


def check_collation(name: str) -> None:
    if name.removeprefix("pg_catalog.") not in COLLATIONS:
        raise UndefinedObject(f'collation "{name}" for encoding "UTF8" does not exist')


def kept_collation(name: str | None, sql_type: SqlType) -> str | None:
    """Return the collation that a column keeps: none is that of the database."""
    if name is None:
        return None
    sized = sql_type.element or sql_type
    if sized.kind not in (*TEXT_KINDS, Kind.NAME):
        raise DatatypeMismatch(f"collations are not supported by type {sql_type.bare}")
    last = name.removeprefix("pg_catalog.")
    return None if last == "default" else {"c": "C", "posix": "POSIX"}.get(last, last)


def check_attributes(constraint: ast.Constraint) -> None:
    """Refuse INITIALLY DEFERRED of a primary key, which holds after each statement."""
    if constraint.foreign_key is not None and constraint.foreign_key.match == "partial":
        raise FeatureNotSupported("MATCH PARTIAL not yet implemented")
    if "initially deferred" in constraint.attributes and constraint.kind == "primary key":
        raise FeatureNotSupported(
            "PRIMARY KEY INITIALLY DEFERRED is not supported: it holds at the end of each"
            " statement",
            hint="Leave it out, because a statement may exchange the values of several rows, or"
            " make it UNIQUE and NOT NULL.",
        )


# --- WITH (…) ------------------------------------------------------------------------------------


def _check_table_options(node: ast.CreateTable) -> None:
    for name, value in node.options:
        if name == "on commit" and not (node.temporary or node.name[:-1] == (TEMPORARY,)):
            raise InvalidTableDefinition("ON COMMIT can only be used on temporary tables")
        if name == "oids" and value.lower() not in ("false", "off", "0", "no"):
            raise FeatureNotSupported("tables declared WITH OIDS are not supported")
    check_table_options([each for each in node.options if each[0] != "on commit"])


def check_table_options(options: OptionWords) -> None:
    rest = [each for each in options if not each[0].startswith(_TABLE_PREFIXES)]
    _check_known(rest, _TABLE_OPTIONS)


def check_view_options(options: OptionWords) -> str | None:
    """Return the CHECK OPTION among the options, if any."""
    _check_known(options, _VIEW_OPTIONS)
    found = None
    for name, value in options:
        if name == "check_option":
            found = value.lower()
            if found not in CHECK_OPTIONS:
                raise InvalidParameterValue(
                    f'invalid value for enum option "check_option": {value}',
                    detail='Valid values are "local" and "cascaded".',
                )
    return found


def _check_known(options: OptionWords, known: frozenset[str]) -> None:
    for name in _unknown(options, known):
        raise InvalidParameterValue(f'unrecognized parameter "{name}"')


def _unknown(options: OptionWords, known: frozenset[str]) -> Iterator[str]:
    return (name for name, _ in options if name not in known)


# --- index methods -------------------------------------------------------------------------------

_ONE_COLUMN: Final = frozenset({"hash", "spgist"})
_WITHOUT_INCLUDE: Final = frozenset({"hash", "gin", "brin"})


def _check_method(node: ast.CreateIndex) -> None:
    """Refuse what PostgreSQL refuses for index methods other than btree."""
    what = None
    if node.method != "btree" and node.unique:
        what = "unique indexes"
    elif node.method in _ONE_COLUMN and len(node.items) > 1:
        what = "multicolumn indexes"
    elif node.method in _WITHOUT_INCLUDE and node.including:
        what = "included columns"
    if what is not None:
        raise FeatureNotSupported(f'access method "{node.method}" does not support {what}')
