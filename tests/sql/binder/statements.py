"""From text to bound statement, for tests."""

from __future__ import annotations

from collections.abc import Mapping

from qserver.sql.binder import Bound, Literals, bind
from qserver.sql.parser import parse
from qserver.values.types import SqlType
from tests.sql.binder.catalogs import TestCatalog


def bind_text(
    catalog: TestCatalog,
    sql: str,
    parameters: Mapping[int | str, SqlType | None] | None = None,
) -> Bound:
    parsed = parse(sql)
    return bind(parsed.statement, Literals(parsed.literals), catalog, parameters)


def define_text(catalog: TestCatalog, sql: str) -> bool:
    """Carry out a definition; False if the statement is none that the catalog knows."""
    parsed = parse(sql)
    return catalog.define(parsed.statement, Literals(parsed.literals, fixed=True))
