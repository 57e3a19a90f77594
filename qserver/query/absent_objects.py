"""DROP of objects of the kinds that nobody can make here: there is none, but PostgreSQL's own.

Migrations send DROP FUNCTION IF EXISTS and the like before they make something. The answers are
those of PostgreSQL for an object that is not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from qserver.errors import (
    AmbiguousFunction,
    DependentObjectsStillExist,
    QserverError,
    UndefinedFunction,
    UndefinedObject,
    UndefinedSchema,
    UndefinedTable,
    WrongObjectType,
)
from qserver.query.catalog.data import recorded_by
from qserver.query.statement_port import StatementPort
from qserver.sql import absent_kinds, ast, type_of_text
from qserver.values.notices import Notice
from qserver.values.relations import View
from qserver.values.types import Kind

_RECORDED: Final[Mapping[str, tuple[str, str]]] = {
    "collation": ("pg_collation", "collname"),
    "conversion": ("pg_conversion", "conname"),
    "text search configuration": ("pg_ts_config", "cfgname"),
    "text search dictionary": ("pg_ts_dict", "dictname"),
    "language": ("pg_language", "lanname"),
    "access method": ("pg_am", "amname"),
    "tablespace": ("pg_tablespace", "spcname"),
    **dict.fromkeys(absent_kinds.ROUTINES, ("pg_proc", "proname")),
}
"""Where PostgreSQL's own objects of a kind are, and in which column their name is."""
_RELATIONS: Final = frozenset({"materialized view", "foreign table"})


class _Missing(NamedTuple):
    """What is wrong, and what IF EXISTS says instead."""

    error: QserverError
    skipped: str


def drop_absent(run: StatementPort, node: ast.Administer) -> None:
    for name in node.names:
        if node.what in absent_kinds.OF_TABLES:
            missing = _of_table(run, node.what, name, node.words)
        else:
            missing = _missing(run, node.what, name)
        if not node.missing_ok:
            raise missing.error
        run.context.give_notice(Notice("NOTICE", "00000", f"{missing.skipped}, skipping"))


def _of_table(run: StatementPort, what: str, name: str, table: tuple[str, ...]) -> _Missing:
    if len(table) > 1 and not run.names.has_schema(table[-2]):
        return _same(UndefinedSchema(f'schema "{table[-2]}" does not exist'))
    found = run.names.find_table(table) or run.names.find_view(table)
    if found is None:
        return _same(UndefinedTable(f'relation "{".".join(table)}" does not exist'))
    if (what, name) == ("rule", "_RETURN") and isinstance(found, View):
        raise DependentObjectsStillExist(
            f"cannot drop rule _RETURN on view {found.name} because view {found.name} requires it",
            hint=f"You can drop view {found.name} instead.",
        )
    place = "relation" if what == "rule" else "table"
    return _Missing(
        UndefinedObject(f'{what} "{name}" for {place} "{table[-1]}" does not exist'),
        f'{what} "{name}" for relation "{table[-1]}" does not exist',
    )


def _missing(run: StatementPort, what: str, name: str) -> _Missing:
    path, parenthesis, arguments = name.partition("(")
    *schemas, last = path.split(".")
    if schemas and not run.names.has_schema(schemas[-1]):
        return _same(UndefinedSchema(f'schema "{schemas[-1]}" does not exist'))
    if schemas in ([], ["pg_catalog"]) and _is_recorded(run, what, last, name):
        raise DependentObjectsStillExist(
            f"cannot drop {what} {name} because it is required by the database system"
        )
    if what in absent_kinds.ROUTINES:
        return _routine(what, path, arguments if parenthesis else None)
    kind = "type" if what == "domain" else what
    if what in _RELATIONS and run.names.find((*schemas, last)) is not None:
        raise WrongObjectType(f'"{last}" is not a {what}')
    if what == "domain" and run.names.find_type((*schemas, last)) is not None:
        raise WrongObjectType(f'"{last}" is not a domain')
    error = UndefinedTable if what in _RELATIONS else UndefinedObject
    skipped = f'{kind} "{path}" does not exist'
    encoded = f'{kind} "{path}" for encoding "UTF8" does not exist'
    return _Missing(error(encoded if what == "collation" else skipped), skipped)


def _is_recorded(run: StatementPort, what: str, last: str, name: str) -> bool:
    """Tell whether PostgreSQL has an object of its own with the name, and the arguments."""
    if what in absent_kinds.ROUTINES and "(" in name:
        return run.context.objects.find(Kind.REGPROCEDURE, name) is not None
    if what not in _RECORDED:
        return False
    found = recorded_by(*_RECORDED[what]).get(last, ())
    if what in absent_kinds.ROUTINES and len(found) > 1:
        raise AmbiguousFunction(
            f'{what} name "{last}" is not unique',
            hint=f"Specify the argument list to select the {what} unambiguously.",
        )
    return bool(found)


def _routine(what: str, path: str, arguments: str | None) -> _Missing:
    words = (arguments or "").removesuffix(")").split(", ")
    shown = ",".join(_type_text(word) for word in words if word)
    text = f"{what} {path}({shown}) does not exist"
    if arguments is None:
        return _Missing(UndefinedFunction(f'could not find a {what} named "{path}"'), text)
    return _same(UndefinedFunction(text))


def _same(error: QserverError) -> _Missing:
    return _Missing(error, error.message)


def _type_text(word: str) -> str:
    try:
        return str(type_of_text(word, lambda name: None))
    except QserverError:
        return word
