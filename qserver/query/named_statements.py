"""PREPARE, EXECUTE, DEALLOCATE, DISCARD: the prepared statements of a session.

    PREPARE p (int) AS …   ─► NamedStatement: text, declared types, what planning found
    EXECUTE p (1 + 1)      ─► the arguments are computed, and the text runs with them as parameters

Parse of PostgreSQL's protocol makes the same statements, so each way finds those of the other. The
plan is not kept here but in the cache of plans, under the text and its types.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial
from typing import Any, Final

from qserver.engine.work import Step
from qserver.errors import (
    ActiveTransaction,
    CannotCoerce,
    DatatypeMismatch,
    DuplicatePreparedStatement,
    FeatureNotSupported,
    InvalidStatementName,
    ProgramLimitExceeded,
    ProtocolViolation,
    SqlSyntaxError,
    WrongObjectType,
)
from qserver.lexing.fingerprint import Parameterized
from qserver.limits import NAMED_STATEMENTS_MAX
from qserver.query.cursor import END, Cursor, StatementSteps, rows_at_once
from qserver.query.named_statement import NamedStatement
from qserver.query.plan_cache import CachedPlan
from qserver.query.planning import Unplanned
from qserver.query.session import Session
from qserver.query.statement_port import StatementPort
from qserver.query.temporary import drop_all
from qserver.sql import Literals, NotShort, PartlyDeclared, Rows, ast, bind_type
from qserver.values.casts import assignment_function, cast_function
from qserver.values.types import TEXT, SqlType

_WORDS: Final = {"Insert": "INSERT", "Update": "UPDATE", "Delete": "DELETE", "Merge": "MERGE"}


def tag_of_plan(plan: CachedPlan) -> str:
    """Return the word of the tag of a planned statement."""
    return _WORDS.get(type(plan.statement).__name__, "SELECT")


def check_new(session: Session, name: str) -> None:
    if name in session.statements:
        raise DuplicatePreparedStatement(f'prepared statement "{name}" already exists')
    if len(session.statements) >= NAMED_STATEMENTS_MAX:
        raise ProgramLimitExceeded(
            f"a session has at most {NAMED_STATEMENTS_MAX} prepared statements",
            hint="Close those that are not needed.",
        )


def statement_named(session: Session | None, name: str) -> NamedStatement:
    found = None if session is None else session.statements.get(name)
    if found is None:
        raise InvalidStatementName(f'prepared statement "{name}" does not exist')
    return found


# --- PREPARE --------------------------------------------------------------------------------------


def prepare_statement(run: StatementPort, node: ast.Prepare, literals: Sequence[Any]) -> Cursor:
    session = run.own_session()
    session.check_lasts("PREPARE")
    return Cursor(_prepare(run, session, node, literals), run.context)


def _prepare(
    run: StatementPort, session: Session, node: ast.Prepare, literals: Sequence[Any]
) -> StatementSteps:
    check_new(session, node.name)
    fixed, find_type = Literals(literals, fixed=True), run.names.find_type
    declared = PartlyDeclared()
    for number, each in enumerate(node.types, 1):
        if each.parts != ("unknown",):
            declared[number] = bind_type(each, fixed, find_type).bare
    parameterized = yield from run.planner.parameterizing(node.text)
    parameterized = parameterized.with_declared(declared)
    plan = yield from _planned(run, node.text, parameterized)
    if plan.parameters is not None and plan.parameters.names:
        raise ProtocolViolation("parameters have numbers here: write $1 instead of :name")
    about = node.name, node.source, node.text, parameterized, plan, run.context.now
    session.statements.keep(NamedStatement(*about), run.context.pool)
    return 0


def _planned(
    run: StatementPort, text: str, parameterized: Parameterized
) -> Generator[Step, Any, CachedPlan]:
    """Return the plan of a statement, kept or made."""
    catalog, snapshot = run.transaction.catalog, run.transaction.snapshot
    plan = run.planner.find(parameterized, catalog, snapshot, None, run.scope)
    if plan is None:
        about = text, parameterized, catalog, snapshot
        asked = Unplanned(*about, scope=run.scope, database=run.database)
        try:
            made = run.planner.prepare_nowait(asked)
        except NotShort:
            made = yield partial(run.planner.prepare, asked)
        plan = made.plan
        assert plan is not None, "the grammar lets only planned statements be prepared"
    return plan


# --- EXECUTE --------------------------------------------------------------------------------------


def execute_statement(run: StatementPort, node: ast.Execute, literals: Sequence[Any]) -> Cursor:
    named = statement_named(run.session, node.name)
    cursor = Cursor(rows_at_once([]), run.context, commits=True)
    cursor.steps = _execute(run, cursor, named, node, literals)
    return cursor


def _execute(
    run: StatementPort,
    cursor: Cursor,
    named: NamedStatement,
    node: ast.Execute,
    literals: Sequence[Any],
) -> StatementSteps:
    plan, slots = yield from plan_of_execute(run, named, node, literals)
    cursor.heading, cursor.tag = plan, tag_of_plan(plan)
    run.check_allowed(plan)
    return (yield from run.making_way(plan.writes, run.run_plan(plan, slots)))


def plan_of_execute(
    run: StatementPort, named: NamedStatement, node: ast.Execute, literals: Sequence[Any]
) -> Generator[Any, Any, tuple[CachedPlan, Any]]:
    """Return the plan of EXECUTE, and what it runs with."""
    if named.parameterized is None or not isinstance(named.found, CachedPlan):
        raise FeatureNotSupported(f'EXECUTE cannot run "{node.name}", which has no plan')
    plan = yield from _planned(run, named.text, named.parameterized)
    if plan.columns != named.found.columns or plan.types != named.found.types:
        raise FeatureNotSupported("cached plan must not change result type")
    values = yield from _arguments(run, named, node, literals)
    slots: Any = named.parameterized.literals
    if plan.parameters is not None:
        slots = dict(enumerate(slots))
        slots.update({f"${number}": value for number, value in enumerate(values, 1)})
    return plan, slots


def plan_of_query(
    run: StatementPort, node: ast.Execute, literals: Sequence[Any]
) -> Generator[Any, Any, tuple[CachedPlan, Any]]:
    """Return the plan of an EXECUTE whose rows become a table."""
    named = statement_named(run.session, node.name)
    plan, slots = yield from plan_of_execute(run, named, node, literals)
    if tag_of_plan(plan) != "SELECT":
        raise WrongObjectType("prepared statement is not a SELECT")
    return plan, slots


def _arguments(
    run: StatementPort, named: NamedStatement, node: ast.Execute, literals: Sequence[Any]
) -> Generator[Any, Any, list[Any]]:
    """Compute the arguments, as values of the types of the parameters."""
    types, given = named.parameters, node.arguments
    if len(given) != len(types):
        raise SqlSyntaxError(
            f'wrong number of parameters for prepared statement "{node.name}"',
            detail=f"Expected {len(types)} parameters but got {len(given)}.",
        )
    if not given:
        return []
    targets = tuple([ast.Target(each, position=each.position) for each in given])
    plan = yield from run.plan_inside(ast.Query(ast.Select(targets)), literals)
    casts = [
        _cast(at, node, source, target)
        for at, (node, source, target) in enumerate(zip(given, plan.types, types, strict=True), 1)
    ]
    inner = Cursor(run.run_plan(plan, literals), run.context, heading=plan)
    rows: Rows = []
    while (page := inner.step()) is not END:
        if page is None:
            yield None
        else:
            rows += page
    (row,) = rows
    return [None if value is None else cast(value) for value, cast in zip(row, casts, strict=True)]


def _cast(at: int, node: ast.Expression, source: SqlType, target: SqlType) -> Any:
    is_null = isinstance(node, ast.Constant) and node.value is None
    if is_null or (isinstance(node, ast.Literal) and node.kind == "text"):
        return cast_function(TEXT, target)
    try:
        return assignment_function(source, target)
    except CannotCoerce:
        raise DatatypeMismatch(
            f"parameter ${at} of type {source.bare} cannot be coerced to the expected type"
            f" {target.bare}",
            hint="You will need to rewrite or cast the expression.",
            position=node.position + 1,
        ) from None


# --- DEALLOCATE, DISCARD --------------------------------------------------------------------------


def deallocate(run: StatementPort, node: ast.Deallocate, literals: Sequence[Any]) -> Cursor:
    return Cursor(_deallocate(run.session, node.name), run.context)


def _deallocate(session: Session | None, name: str | None) -> StatementSteps:
    yield from ()
    if name is None:
        if session is not None:
            session.statements.clear()
        return 0
    statement_named(session, name)
    assert session is not None
    session.statements.drop(name)
    return 0


def discard(run: StatementPort, node: ast.Discard, literals: Sequence[Any]) -> Cursor:
    return Cursor(_discard(run, node.what), run.context)


def _discard(run: StatementPort, what: str) -> StatementSteps:
    """Forget what a session has. Plans belong to all, and numbers are nobody's own."""
    yield from ()
    if what == "all":
        if run.is_in_block:
            raise ActiveTransaction("DISCARD ALL cannot run inside a transaction block")
        if run.session is not None:
            run.session.discard()
    if what in ("all", "temp"):
        drop_all(run.transaction)
    return 0
