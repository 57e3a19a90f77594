"""Prepares a statement: from its AST to a compiled function.

    AST ─ bind ─► bound ─ fold ─► constants marked ─ optimize ─► plan ─ compile ─► function

A first binding infers the types of parameters; a second takes them as declared, so that compiled
code gets values of those types, however they came.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from qserver.errors import StatementTooComplex
from qserver.functions.registry import Function
from qserver.sql import ast
from qserver.sql.binder import Bound, Literals, bind
from qserver.sql.binder.tables.table_expressions import ROW_ID_SLOT, TEMPORARY_ROW_ID_SLOT
from qserver.sql.codegen import compile_statement
from qserver.sql.execution import Compiled
from qserver.sql.expressions import Apply, Slot, Slots
from qserver.sql.folding import folded
from qserver.sql.optimizer import RULES, Rule, optimize
from qserver.sql.parameters import (
    Given,
    ParameterList,
    PartlyDeclared,
    parameter_list,
    type_of_given,
)
from qserver.sql.plan import Change, Delete, Scan, Select, Values
from qserver.sql.ports import CatalogPort
from qserver.sql.step_budget import StepBudget
from qserver.sql.vectors.loading import load_for
from qserver.sql.walk import everything, parts, rebuilt
from qserver.values.schema import Table
from qserver.values.types import BIGINT, SqlType

NODE_BYTES = 256
CHARACTER_BYTES = 4
PARAMETER_BYTES = 128
"""Approximate memory of a plan for each node of its tree, for each character of its source, and for
each parameter of a run, which has no node of its own."""

NEXT_ROW_ID = Function(
    "next_row_id",
    (),
    BIGINT,
    lambda context: context.next_row_id(),
    volatile=True,
    needs_context=True,
)
NEXT_TEMPORARY_ROW_ID = Function(
    "next_temporary_row_id",
    (),
    BIGINT,
    lambda context: context.next_temporary_row_id(),
    volatile=True,
    needs_context=True,
)
_ROW_IDS = {ROW_ID_SLOT: NEXT_ROW_ID, TEMPORARY_ROW_ID_SLOT: NEXT_TEMPORARY_ROW_ID}


@dataclass(frozen=True, slots=True, eq=False)
class CompiledPlan:
    """A statement's plan, its function, and what both depend on."""

    compiled: Compiled
    plan: Select | Change
    parameters: ParameterList | None
    in_fingerprint: frozenset[int]
    """The literals whose values the plan depends on."""
    undecided: frozenset[int | str]
    """Parameters whose values decided their types."""
    size: int
    """Approximate bytes in memory."""
    writes: bool
    grows: bool
    """Whether it may store rows that were not there."""
    watched: bool
    """Whether it changes tables with foreign keys, or with unique keys that may wait."""
    changed: tuple[Table, ...] = ()
    """The tables that it changes."""
    scanned: frozenset[int] = frozenset()
    """The tables whose rows it looks for, by their ids: the plan depends on their sizes."""


def runs_on_snapshot(statement: ast.Statement) -> bool:
    """Return whether the statement can run on a snapshot, without a transaction."""
    return isinstance(statement, ast.Query) and all(
        runs_on_snapshot(table.statement) for table in statement.common_tables
    )


def statement_inside(statement: ast.Statement) -> ast.Statement | None:
    """Return the planned statement inside EXPLAIN, CREATE VIEW or CREATE TABLE AS, if any."""
    inside = getattr(statement, "statement", None) or getattr(statement, "query", None)
    if isinstance(inside, ast.CreateTable | ast.Declare):  # EXPLAIN has it inside
        inside = inside.query
    return inside if isinstance(inside, ast.PLANNED) else None


def prepare(
    statement: ast.Statement,
    literals: Literals,
    catalog: CatalogPort,
    declared: Mapping[int | str, SqlType] | None = None,
    given: Given = None,
    rules: tuple[Rule, ...] = RULES,
    budget: StepBudget | None = None,
) -> CompiledPlan:
    """Bind, optimize and compile a statement.

    `declared` has the types of parameters, if they are known; otherwise, and for those that it
    leaves out if it is `PartlyDeclared`, they are inferred from their places, or from the `given`
    values.
    """
    try:
        bound = _bound(statement, literals, catalog, declared, given, budget)
        with_row_ids = rebuilt(bound.statement, _with_row_id)
        plan = optimize(folded(with_row_ids, budget), catalog.statistics, rules, budget)
        load_for(plan, budget)
        texts = _quoted_literals((bound.statement, *bound.unused))
        compiled = compile_statement(plan, bound.tables, budget, texts)
    except (RecursionError, SyntaxError):  # Python nests loops and calls only so deep
        raise StatementTooComplex(
            "the statement is nested too deeply",
            hint="Split it into several, or use fewer terms, joins or set operations.",
        ) from None
    nodes = list(everything(plan))
    writes = not runs_on_snapshot(statement) or any(map(_leaves_something, nodes))
    return CompiledPlan(
        compiled,
        plan,
        parameter_list(bound.parameters) if bound.parameters else None,
        bound.in_fingerprint,
        bound.undecided,
        NODE_BYTES * len(nodes)
        + CHARACTER_BYTES * len(compiled.source)
        + PARAMETER_BYTES * sum(map(_parameters_in_run, nodes)),
        writes,
        grows=writes and any(map(_stores, nodes)),
        watched=writes and any(map(_is_watched, bound.tables)),
        changed=tuple([node.table for node in nodes if isinstance(node, Change)]),
        scanned=frozenset([node.table.id for node in nodes if isinstance(node, Scan)]),
    )


def _leaves_something(node: Any) -> bool:
    return type(node) is Apply and node.function.writes


def _parameters_in_run(node: Any) -> int:
    if type(node) is Slots and isinstance(node.name, str):
        return node.count
    return len(node.slot) if type(node) is Values and isinstance(node.slot, range) else 0


def _stores(node: Any) -> bool:
    return isinstance(node, Change) and not isinstance(node, Delete)


def _quoted_literals(nodes: tuple[Any, ...]) -> tuple[Slot | Slots, ...]:
    """Return literals that must convert to their type even if no row reads them.

    So `coalesce(1, 'abc')` is refused. The slots of repeated VALUES are places in rows, which are
    converted one by one.
    """
    found: list[Slot | Slots] = []
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if type(node) is Slot or type(node) is Slots:
            if node.reader is not None:
                found.append(replace(node, convert=node.reader))
        elif type(node) is not Values or not node.repeated:
            waiting.extend(parts(node))
    return tuple(found)


def _is_watched(table: Table) -> bool:
    may_wait = any(index.deferral for index in table.indexes)
    return bool(table.foreign_keys or table.referenced_by or may_wait)


def _with_row_id(node: Any) -> Any:
    """Replace row ids: each row takes its own value, not one for the whole execution."""
    if type(node) is Slot and node.name in _ROW_IDS:
        return Apply(_ROW_IDS[node.name], (), BIGINT, nullable=False)
    return node


def _bound(
    statement: ast.Statement,
    literals: Literals,
    catalog: CatalogPort,
    declared: Mapping[int | str, SqlType] | None,
    given: Given,
    budget: StepBudget | None,
) -> Bound:
    if declared is not None and not isinstance(declared, PartlyDeclared):
        return bind(statement, literals, catalog, declared, budget=budget)
    found = bind(statement, literals, catalog, declared, partial(type_of_given, given), budget)
    if not found.parameters:
        return found
    known = found.parameters if declared is None else {**found.parameters, **declared}
    again = bind(statement, literals, catalog, known, budget=budget)
    return replace(again, undecided=found.undecided)
