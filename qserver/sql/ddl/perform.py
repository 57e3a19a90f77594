"""The table of functions that execute DDL statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from qserver.sql import ast
from qserver.sql.ddl.alter_table import alter_table
from qserver.sql.ddl.create_table import create_table
from qserver.sql.ddl.drop import drop, truncate
from qserver.sql.ddl.indexes import create_index
from qserver.sql.ddl.port import DdlPort, DdlSteps
from qserver.sql.ddl.references import refresh_references
from qserver.sql.ddl.sequences import create_sequence
from qserver.sql.ddl.types_and_schemas import comment_on, create_enum, create_schema
from qserver.sql.ddl.views import create_view
from qserver.sql.ddl.words import check_words

DEFINITIONS: Final[Mapping[type, Callable[[DdlPort, Any], DdlSteps]]] = {
    ast.CreateTable: create_table,
    ast.CreateIndex: create_index,
    ast.CreateView: create_view,
    ast.CreateSequence: create_sequence,
    ast.CreateEnum: create_enum,
    ast.CreateSchema: create_schema,
    ast.Drop: drop,
    ast.Truncate: truncate,
    ast.AlterTable: alter_table,
    ast.CommentOn: comment_on,
}


def perform(work: DdlPort, statement: ast.Statement) -> DdlSteps:
    check_words(statement)
    made = yield from DEFINITIONS[type(statement)](work, statement)
    if type(statement) not in _WITHOUT_REFERENCES:
        refresh_references(work)
    _tell_cascaded(work)
    return made


def _tell_cascaded(work: DdlPort) -> None:
    lines = [f"drop cascades to {each}" for each in work.cascaded]
    if len(lines) == 1:
        work.tell(lines[0])
    elif lines:
        work.tell(f"drop cascades to {len(lines)} other objects", detail="\n".join(lines))


_WITHOUT_REFERENCES: Final = frozenset(
    {
        ast.CreateTable,  # adds its own references, so creation does not scan all other tables
        ast.CreateView,
        ast.CreateSequence,
        ast.CreateEnum,
        ast.CreateSchema,
        ast.CommentOn,
    }
)
