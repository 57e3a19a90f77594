"""Types as clients are told of them: those that the database defines have their oids.

A type of a column knows an enum by its name, because the oid is no part of what a value can be.
Who sends and takes values by oids looks it up here, in the catalog of the statement.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from qserver.storage.catalog import Catalog
from qserver.values.enumeration import Enumeration
from qserver.values.numbering import row_type_oid
from qserver.values.relations import View
from qserver.values.schema import Table
from qserver.values.types import Kind, SqlType, array_of, record_of


def announced_types(types: Iterable[SqlType], catalog: Catalog) -> tuple[SqlType, ...]:
    return tuple([_announced(each, catalog) for each in types])


def _announced(sql_type: SqlType, catalog: Catalog) -> SqlType:
    if sql_type.element is not None:
        element = _announced(sql_type.element, catalog)
        return sql_type if element is sql_type.element else replace(sql_type, element=element)
    if sql_type.enum is not None:
        found = catalog.find(sql_type.enum.key)
        return replace(sql_type, oid=found.oid) if isinstance(found, Enumeration) else sql_type
    if sql_type.columns:
        columns = tuple([(name, _announced(each, catalog)) for name, each in sql_type.columns])
        return sql_type if columns == sql_type.columns else replace(sql_type, columns=columns)
    return sql_type


def types_with_oids(oids: Iterable[int], catalog: Catalog) -> dict[int, SqlType]:
    """Return the types of a database that a client names by their oids, as far as there are."""
    found = [(oid, _type_with_oid(oid, catalog)) for oid in oids]
    return {oid: sql_type for oid, sql_type in found if sql_type is not None}


def _type_with_oid(oid: int, catalog: Catalog) -> SqlType | None:
    found = catalog.with_oid(oid)
    if isinstance(found, Enumeration):
        own, number = SqlType(Kind.ENUM, enum=found.in_column), found.oid
    elif isinstance(found, Table):
        columns = [(name, found.columns[at].type) for name, at in found.positions.items()]
        number = row_type_oid(found)
        own = record_of(tuple(columns), number)
    elif isinstance(found, View):
        number = row_type_oid(found)
        own = record_of(found.columns, number)
    else:
        return None
    return {number: own, number + 1: array_of(own)}.get(oid)
