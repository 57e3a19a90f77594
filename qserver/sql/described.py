"""Checks a statement that is stored to be run later, and fixes its meaning.

    SELECT * FROM t WHERE a = :x   ──►   SELECT "t"."a", "t"."b" FROM t WHERE a = :x
                                         parameters x, only reads

A star becomes its present columns: a column that is added later is not shown. The new text is
planned again and must give the same columns. So it is with the query of a view, except that a star
which cannot be replaced stays one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from qserver.errors import FeatureNotSupported, ProtocolViolation, QserverError
from qserver.sql import ast
from qserver.sql.ast.nodes import nodes_of
from qserver.sql.binder import Literals, bind
from qserver.sql.ddl.view_columns import PART
from qserver.sql.expressions import Apply
from qserver.sql.optimizer import Rule
from qserver.sql.parser import Parsed, parse
from qserver.sql.plan import OutputColumn, Select
from qserver.sql.ports import CatalogPort
from qserver.sql.prepare import CompiledPlan, prepare
from qserver.sql.step_budget import StepBudget
from qserver.sql.stored_texts import type_schemas, with_schemas
from qserver.sql.walk import everything
from qserver.values.types import SqlType

_STAR: Final = re.compile(rf"(?:{PART}\s*\.\s*){{0,2}}\*")
_TABLE: Final = re.compile(r"table\b", re.IGNORECASE)
"""`TABLE t` is `SELECT * FROM t`."""
_SEQUENCES: Final = ("nextval", "setval")


class Described(msgspec.Struct, frozen=True):
    """A statement with its stars expanded, its parameters' names, and what it does."""

    sql: str
    parameters: tuple[str, ...]
    writes: bool


def describe(
    sql: str, catalog: CatalogPort, rules: tuple[Rule, ...], budget: StepBudget
) -> Described:
    """Parse and prepare a statement for later."""

    def planned(parsed: Parsed) -> CompiledPlan:
        fixed = Literals(parsed.literals, fixed=True)
        return prepare(parsed.statement, fixed, catalog, rules=rules, budget=budget)

    parsed = _parsed(sql, budget)
    made = planned(parsed)
    stars: dict[int, str] = {}
    fixed = Literals(parsed.literals, fixed=True)
    bind(parsed.statement, fixed, catalog, None, budget=budget, stars=stars)
    text = _without_stars(sql, stars)
    _require_no_star(parsed.statement, stars)
    if text != sql:
        try:
            columns = planned(_parsed(text, budget)).compiled.columns
        except QserverError:
            raise _not_fixed() from None
        if _names_and_types(columns) != _names_and_types(made.compiled.columns):
            raise _not_fixed()
    writes = made.writes or _draws(made.plan)
    return Described(text, tuple(map(str, parsed.parameters)), writes)


def _names_and_types(columns: Sequence[OutputColumn]) -> list[tuple[str, SqlType]]:
    return [(each.name, each.type) for each in columns]


def _parsed(sql: str, budget: StepBudget) -> Parsed:
    parsed = parse(sql, repeat=False, budget=budget)
    if not isinstance(parsed.statement, ast.PLANNED):
        raise FeatureNotSupported(
            "only SELECT, VALUES, INSERT, UPDATE, DELETE and MERGE can be kept for later"
        )
    if any(isinstance(name, int) for name in parsed.parameters):
        raise ProtocolViolation(
            "a statement that is kept has parameters with names",
            hint="Write :name instead of ? or $1.",
        )
    return parsed


def view_text(text: str, catalog: CatalogPort, budget: StepBudget) -> str:
    """Return a view's query with its stars written out, or as it is where that cannot be.

    Relations that search_path has found get their schemas: the text must mean the same without it.
    """
    stars: dict[int, str] = {}
    schemas: dict[int, str] = {}

    def columns(of: str, names: CatalogPort) -> list[tuple[str, SqlType]]:
        parsed = parse(of, repeat=False, budget=budget)
        fixed = Literals(parsed.literals, fixed=True)
        bound = bind(
            parsed.statement, fixed, names, None, budget=budget, stars=stars, schemas=schemas
        )
        assert isinstance(bound.statement, Select), "a view is a query"
        return _names_and_types(bound.statement.columns)

    before = columns(text, catalog)
    if catalog.has_path:
        whole = parse(text, repeat=False, budget=budget)
        text = with_schemas(text, {**schemas, **type_schemas(whole.statement, catalog)})
        stars.clear()
        before = columns(text, catalog.stored)
    try:
        new = _without_stars(text, stars)
        return new if columns(new, catalog.stored) == before else text
    except QserverError:
        return text


def _without_stars(sql: str, stars: dict[int, str]) -> str:
    for position in sorted(stars, reverse=True):
        now, found = stars[position], _STAR.match(sql, position)
        if found is None:
            now, found = f"SELECT {now} FROM", _TABLE.match(sql, position)
        if found is None:
            raise _not_fixed(position)
        sql = f"{sql[:position]}{now}{sql[found.end() :]}"
    return sql


def _require_no_star(statement: ast.Statement, stars: dict[int, str]) -> None:
    for node in nodes_of(statement):
        is_star = isinstance(node, ast.Star) or (isinstance(node, ast.Field) and node.name == "*")
        if is_star and node.position not in stars:
            raise _not_fixed(node.position)


def _not_fixed(position: int | None = None) -> FeatureNotSupported:
    return FeatureNotSupported(
        "the columns that * stands for cannot be fixed here",
        hint="Name the columns instead.",
        position=None if position is None else position + 1,
    )


def _draws(statement: Any) -> bool:
    """Whether a query changes a sequence."""
    return any(
        isinstance(node, Apply) and node.function.name in _SEQUENCES
        for node in everything(statement)
    )
