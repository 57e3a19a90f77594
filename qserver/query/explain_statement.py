"""EXPLAIN: finds the plan of the statement inside, runs it for ANALYZE, and shows it.

    EXPLAIN SELECT …, INSERT …          the plan that is made now
    EXPLAIN EXECUTE p (…)               the plan of the prepared statement, with these arguments
    EXPLAIN DECLARE c CURSOR FOR …      the plan of its query; no cursor is opened
    EXPLAIN CREATE TABLE t AS …         the plan of its query; ANALYZE makes the table

ANALYZE compiles the plan once more, so that it tells a `Profile` what each node does, and so a
statement that is only run pays nothing. Its effects are those of the statement.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from copy import copy
from functools import partial
from typing import Any, Protocol

from qserver.engine.work import Step
from qserver.limits import PLANNING_STEPS_MAX
from qserver.query.cursor import END, Cursor, Heading, StatementSteps
from qserver.query.explaining import (
    Counts,
    Explained,
    Options,
    columns_of_explain,
    options_of,
    shown,
    shown_without_plan,
)
from qserver.query.named_statements import plan_of_execute, statement_named
from qserver.query.plan_cache import CachedPlan
from qserver.query.slots import slots_in_steps
from qserver.query.statement_port import StatementPort
from qserver.sql import (
    Compiled,
    Given,
    NotShort,
    Profile,
    StepBudget,
    ast,
    compile_statement,
)


class ExplainPort(StatementPort, Protocol):
    def define(
        self, statement: ast.Statement, literals: Sequence[Any], text: str
    ) -> StatementSteps: ...
    def is_skipped(self, statement: ast.CreateTable, literals: Sequence[Any]) -> bool: ...
    def check_define(self, runs: bool = True) -> None: ...
    def plan_inside(
        self,
        statement: ast.Statement,
        literals: Sequence[Any],
        declared: Any = ...,
        given: Given = ...,
        anew: bool = ...,
    ) -> Generator[Any, Any, CachedPlan]: ...

    def use_plan(self, plan: CachedPlan) -> None:
        """Run the query of the definition by this plan."""


def explain_statement(
    run: ExplainPort, node: ast.Explain, literals: Sequence[Any], given: Given, text: str
) -> Cursor:
    options = options_of(node)
    steps = _Explaining(run, options, literals, given, text).steps(node.statement)
    return Cursor(steps, run.context, heading=Heading(*columns_of_explain(node)))


class _Explaining:
    def __init__(
        self,
        run: ExplainPort,
        options: Options,
        literals: Sequence[Any],
        given: Given,
        text: str,
    ) -> None:
        self._run = run
        self._options = options
        self._literals = literals
        self._given = given
        self._text = text
        self._clock = run.request.environment.clock

    def steps(self, statement: ast.Statement) -> StatementSteps:
        run = self._run
        if isinstance(statement, ast.CreateTable):
            return (yield from self._definition(statement))
        began = self._clock()
        if isinstance(statement, ast.Execute):
            named = statement_named(run.session, statement.name)
            plan, slots = yield from plan_of_execute(run, named, statement, self._literals)
        else:
            query = statement.query if isinstance(statement, ast.Declare) else statement
            about = query, self._literals, None, self._given, self._options.summary
            plan = yield from run.plan_inside(*about)
            slots = None
        seconds = max(self._clock() - began, 0.0)
        run.check_allowed(plan, self._options.analyze)
        if slots is None:
            slots = yield from slots_in_steps(plan, self._literals, self._given, run.context)
        if not self._options.analyze:
            yield shown(self._options, Explained(plan, slots, seconds))
            return 0
        profile, measured = yield from self._measured(plan)
        runs = run.making_way(plan.writes, run.run_plan(measured, slots))
        counts = yield from self._counted(profile, runs, plan.writes)
        yield shown(self._options, Explained(plan, slots, seconds, profile, counts))
        return counts.changed or 0

    # --- CREATE TABLE AS ---

    def _definition(self, statement: ast.CreateTable) -> StatementSteps:
        run, options = self._run, self._options
        run.check_define(options.analyze)
        if run.is_skipped(statement, self._literals):
            if options.format != "text":
                yield shown_without_plan(options, "CREATE TABLE AS")
            return 0
        assert isinstance(statement.query, ast.Query), "the grammar lets no other be explained"
        began = self._clock()
        literals = self._literals
        plan = yield from run.plan_inside(statement.query, literals, {}, None, options.summary)
        seconds = max(self._clock() - began, 0.0)
        if not options.analyze:
            run.check_allowed(plan, runs=False)
            yield shown(options, Explained(plan, self._literals, seconds))
            return 0
        profile, measured = yield from self._measured(plan)
        run.use_plan(measured)
        runs = run.define(statement, self._literals, self._text)
        counts = yield from self._counted(profile, runs, writes=True)
        yield shown(options, Explained(plan, self._literals, seconds, profile, counts))
        return counts.changed or 0

    # --- ANALYZE ---

    def _measured(self, plan: CachedPlan) -> Generator[Step, Any, tuple[Profile, CachedPlan]]:
        """Return the plan with a function that measures."""
        pages = self._run.context.pages
        loads = _no_loads if pages is None else lambda: pages.loads
        profile = Profile(plan.statement, self._clock, loads, self._options.timing)
        compiled = plan.compiled

        def compiled_again(budget: StepBudget) -> Compiled:
            about = plan.statement, compiled.tables, budget, compiled.literals, profile
            return compile_statement(*about)

        measured = copy(plan)
        try:
            measured.compiled = compiled_again(StepBudget.short(PLANNING_STEPS_MAX))
        except NotShort:
            measured.compiled = yield partial(self._run.planner.elsewhere, compiled_again)
        return profile, measured

    def _counted(
        self, profile: Profile, runs: StatementSteps, writes: bool
    ) -> Generator[Any, Any, Counts]:
        """Run to the end; what others do between two steps is not measured."""
        cursor, sent, seconds = Cursor(runs, self._run.context), None, 0.0
        while True:
            started = self._clock()
            profile.go_on()
            page = cursor.step(sent)
            profile.pause()
            seconds += max(self._clock() - started, 0.0)
            if page is END:
                break
            sent = None
            if type(page) is not list:
                sent = yield page
        return Counts(cursor.affected_rows if writes else None, profile.root.all_loads, seconds)


def _no_loads() -> int:
    return 0
