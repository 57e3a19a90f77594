"""Which function performs which statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from qserver.sql import syntax
from qserver.sql.definitions.alter_table import alter_table
from qserver.sql.definitions.create_table import create_table
from qserver.sql.definitions.drop import drop, truncate
from qserver.sql.definitions.indexes import create_index
from qserver.sql.definitions.others import comment_on, create_enum, create_schema
from qserver.sql.definitions.port import Steps, Work
from qserver.sql.definitions.references import refresh_references
from qserver.sql.definitions.sequences import create_sequence
from qserver.sql.definitions.views import create_view
from qserver.sql.definitions.words import check_words

DEFINITIONS: Final[Mapping[type, Callable[[Work, Any], Steps]]] = {
    syntax.CreateTable: create_table,
    syntax.CreateIndex: create_index,
    syntax.CreateView: create_view,
    syntax.CreateSequence: create_sequence,
    syntax.CreateEnum: create_enum,
    syntax.CreateSchema: create_schema,
    syntax.Drop: drop,
    syntax.Truncate: truncate,
    syntax.AlterTable: alter_table,
    syntax.CommentOn: comment_on,
}


def perform(work: Work, statement: syntax.Statement) -> Steps:
    """Make the changes that a definition asks for."""
    check_words(statement)
    made = yield from DEFINITIONS[type(statement)](work, statement)
    if type(statement) not in _WITHOUT_REFERENCES:
        refresh_references(work)
    return made


_WITHOUT_REFERENCES: Final = frozenset(
    {
        syntax.CreateTable,  # it adds its own, so that a thousand tables do not look at each other
        syntax.CreateView,
        syntax.CreateSequence,
        syntax.CreateEnum,
        syntax.CreateSchema,
        syntax.CommentOn,
    }
)
