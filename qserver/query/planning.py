"""Makes a plan from a statement: binds, optimizes, compiles and keeps it.

    text ─► fingerprint and literals ─► cached? ─► AST ─► bound ─► optimized ─► compiled ─► cached

All of this is a pure function of text, catalog and rows. `prepare_nowait` prepares a statement that
takes few steps in place. For one that takes more it raises `NotShort`, and `prepare` has it done
elsewhere (`World.compute`), for as long as a client waits for it; what rows tell is read here all
the same: see `data_statistics`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from qserver.durability.pauses import in_steps
from qserver.engine.work import Step
from qserver.engine.world import Compute, compute_here
from qserver.engine.yielding import yield_to_others
from qserver.errors import (
    NotInPrerequisiteState,
    ProtocolViolation,
    QserverError,
)
from qserver.lexing.fingerprint import Parameterized, parameterize, parameterize_plain_rows
from qserver.limits import PLANNING_STEPS_MAX, PLANS_KEPT_MAX
from qserver.query.catalog_names import CatalogNames
from qserver.query.data_statistics import DataStatistics
from qserver.query.plan_cache import CachedPlan, KeptPlans, PlanCache
from qserver.query.settings.values import Scope
from qserver.query.statement_statistics import DatabaseStatements
from qserver.sql import (
    RULES,
    Described,
    Given,
    Literals,
    NotShort,
    Parsed,
    Rule,
    RunRefused,
    StepBudget,
    ast,
    describe,
    parse,
    prepare,
    runs_on_snapshot,
    statement_inside,
)
from qserver.storage.catalog import Catalog
from qserver.storage.snapshot import Snapshot
from qserver.values.schema import Table
from qserver.values.steps import Made
from qserver.values.types import SqlType
from qserver.values.zones import InSessionZone

TEXT_REMEMBERED_LENGTH_MAX = 1024
"""Longer texts are not worth their memory."""

TEXT_SHORT_LENGTH_MAX = 64 * 1024
"""Longer texts are not parameterized while others wait."""

TEXT_OF_ROWS_LENGTH_MAX = 256 * 1024
"""Unless they are little but rows of plain values, up to this length: that takes a millisecond."""

STEPS_BETWEEN_LOOKS = 256
"""Steps between two checks whether a client still waits for the plan."""


class Unplanned(msgspec.Struct, frozen=True):
    """A statement that has no plan yet, and the catalog to plan it by."""

    sql: str
    parameterized: Parameterized
    catalog: Catalog
    snapshot: Snapshot
    given: Given = None
    to_read: bool = False
    """Plan it only if it can run on a snapshot, otherwise just parse it."""
    scope: Scope | None = None
    """What a session has set that the plan depends on."""
    statistics: DataStatistics | None = None
    """Those to plan by; None: the planner may read what it wants to know."""
    database: str | None = None
    """The name that may stand before a schema; None: any may."""


class Prepared(msgspec.Struct, frozen=True):
    """A parsed statement, and its plan if its kind has one.

    `inner` is the plan of the query inside a definition or EXPLAIN, or that query's error: the
    definition checks other things before it raises that.
    """

    parsed: Parsed
    plan: CachedPlan | None = None
    inner: CachedPlan | QserverError | None = None


class Planner:
    """Makes plans, and keeps those that may be wanted again.

    With fewer `rules` every statement answers the same, only more slowly: tests hold it to that.
    """

    def __init__(
        self,
        rules: tuple[Rule, ...] = RULES,
        compute: Compute = compute_here,
        plans: KeptPlans | None = None,
        statements: DatabaseStatements | None = None,
    ) -> None:
        """`statements` counts the runs of what is planned."""
        self.rules = rules
        self.statements = statements
        self.cache = PlanCache(all_plans=plans)
        self._compute = compute
        self._parsed: tuple[str, Parsed] | None = None
        self._parameterized: dict[str, Parameterized] = {}

    def parameterize(self, sql: str, given: Given) -> Parameterized:
        """Return fingerprint and literals of a text; raise NotShort for a long one.

        A text with parameters is probably sent again and again just as it is, so it is remembered.
        `parameterize_long` takes long texts.
        """
        if given:
            remembered = self._parameterized.get(sql)
            if remembered is not None:
                return remembered
        if len(sql) > TEXT_SHORT_LENGTH_MAX:
            plain = parameterize_plain_rows(sql) if len(sql) <= TEXT_OF_ROWS_LENGTH_MAX else None
            if plain is None:
                raise NotShort
            return plain
        parameterized = parameterize(sql)
        if given and len(sql) <= TEXT_REMEMBERED_LENGTH_MAX:
            if len(self._parameterized) >= PLANS_KEPT_MAX:
                self._parameterized.clear()
            self._parameterized[sql] = parameterized
        return parameterized

    def parameterizing(self, sql: str, given: Given = None) -> Generator[Step, Any, Parameterized]:
        """Parameterize a text of any length."""
        try:
            return self.parameterize(sql, given)
        except NotShort:
            found: Parameterized = yield partial(self.parameterize_long, sql)
        return found

    async def parameterize_long(self, sql: str) -> Parameterized:
        """Parameterize a long text; other tasks run meanwhile."""
        parameterized: Parameterized = await self._compute(lambda check: parameterize(sql))
        return parameterized

    def find(
        self,
        parameterized: Parameterized,
        catalog: Catalog,
        snapshot: Snapshot,
        given: Given = None,
        scope: Scope | None = None,
    ) -> CachedPlan | None:
        return self.cache.find(
            name_of_plans(parameterized, scope),
            parameterized.literals,
            catalog,
            snapshot,
            given,
        )

    def prepare_nowait(self, asked: Unplanned) -> Prepared:
        """Prepare a statement that came as text; raise NotShort if others would wait too long."""
        parsed = self._remembered(asked.sql)
        if parsed is None and 2 * len(asked.parameterized.fingerprint) > PLANNING_STEPS_MAX:
            raise NotShort  # do not begin: a character takes two steps and more
        return self._keep(asked, self._prepared(asked, parsed, self._short_budget()))

    async def elsewhere(self, work: Callable[[StepBudget], Any]) -> Any:
        """Return the result of pure work that counts its steps; other tasks run meanwhile."""
        return await self._compute(
            lambda check: work(StepBudget.watched(STEPS_BETWEEN_LOOKS, check))
        )

    async def describe(self, sql: str, snapshot: Snapshot) -> Described:
        """Check a statement that is kept to be run later; other tasks run meanwhile."""
        names = CatalogNames(snapshot.catalog, snapshot)
        described: Described = await self.elsewhere(
            lambda budget: describe(sql, names, self.rules, budget)
        )
        return described

    async def prepare(self, asked: Unplanned) -> Prepared:
        """Prepare a statement that takes long; other tasks run meanwhile."""
        statistics = DataStatistics(asked.snapshot.trees, may_read=False)
        asked = msgspec.structs.replace(asked, statistics=statistics)
        parsed = self._remembered(asked.sql)

        def work(budget: StepBudget) -> Prepared:
            nonlocal parsed
            made = self._prepared(asked, parsed, budget)
            parsed = made.parsed
            return made

        return self._keep(asked, await self._informed(statistics, work))

    def _remembered(self, sql: str) -> Parsed | None:
        """Return the last parsed text if it is this one: a transaction may run again."""
        return self._parsed[1] if self._parsed is not None and self._parsed[0] == sql else None

    def _short_budget(self) -> StepBudget:
        return StepBudget.short(PLANNING_STEPS_MAX)

    def _prepared(self, asked: Unplanned, parsed: Parsed | None, budget: StepBudget) -> Prepared:
        """Parse a statement if necessary, and plan it. Changes nothing: may run in a thread."""
        if parsed is None:
            parsed = parse(asked.sql, runs=True, budget=budget)
        if asked.scope is not None:
            with InSessionZone(None):  # literals of definitions are read in UTC
                return self._planned_or_again(asked, parsed, budget)
        return self._planned_or_again(asked, parsed, budget)

    def _planned_or_again(self, asked: Unplanned, parsed: Parsed, budget: StepBudget) -> Prepared:
        if not parsed.runs:
            return self._planned(asked, parsed, budget)
        try:
            return self._planned(asked, parsed, budget)
        except (RunRefused, QserverError):  # an error is that of the statement without runs
            return self._planned(asked, parse(asked.sql, budget=budget), budget)

    def _planned(self, asked: Unplanned, parsed: Parsed, budget: StepBudget) -> Prepared:
        statement, rules = parsed.statement, self.rules
        catalog, snapshot, given = asked.catalog, asked.snapshot, asked.given
        options = rules, budget, asked.scope, asked.statistics, asked.database
        if asked.to_read and not runs_on_snapshot(statement):
            return Prepared(parsed)
        if isinstance(statement, ast.PLANNED):
            literals = Literals(asked.parameterized.literals)
            stated = asked.parameterized.declared
            plan = make_plan(statement, literals, catalog, snapshot, stated, given, *options)
            return Prepared(parsed, plan)
        about = statement_inside(statement)
        if about is None:
            return Prepared(parsed)
        fixed = Literals(parsed.literals, fixed=True)
        takes_parameters = isinstance(statement, ast.Explain | ast.Declare)
        declared = asked.parameterized.declared if takes_parameters else {}
        try:
            plan = make_plan(about, fixed, catalog, snapshot, declared, given, *options)
        except QserverError as error:
            return Prepared(parsed, None, error)
        return Prepared(parsed, None, plan)

    def _keep(self, asked: Unplanned, made: Prepared) -> Prepared:
        self._parsed = asked.sql, made.parsed
        if made.plan is not None and not made.plan.names_database:
            self._parsed = None  # the plan will be found
            parameterized = asked.parameterized
            if self.statements is not None:
                made.plan.counter = self.statements.planned(parameterized.fingerprint)
            name = name_of_plans(parameterized, asked.scope)
            self.cache.keep(name, parameterized.literals, made.plan, asked.given)
        return made

    async def make_long(
        self,
        statement: ast.Statement,
        literals: Literals,
        catalog: Catalog,
        snapshot: Snapshot,
        declared: Mapping[int | str, SqlType] | None,
        given: Given,
        scope: Scope | None = None,
        database: str | None = None,
    ) -> CachedPlan:
        """Make a plan for part of a definition that takes long to plan; do not keep it."""
        statistics = DataStatistics(snapshot.trees, may_read=False)
        about = statement, literals, catalog, snapshot, declared, given, self.rules
        named = partial(make_plan, scope=scope, statistics=statistics, database=database)
        work = partial(named, *about)
        return await self._informed(statistics, lambda budget: work(budget=budget))

    async def _informed(
        self, statistics: DataStatistics, work: Callable[[StepBudget], Made]
    ) -> Made:
        """Have work done elsewhere, again as long as it wants to know what only pages tell."""
        while True:
            made: Made = await self.elsewhere(work)
            if not await in_steps(statistics.read(), yield_to_others):
                return made

    def plan_of(
        self,
        name: tuple[str, ...],
        statement: ast.Statement,
        types: Sequence[SqlType],
        catalog: Catalog,
        snapshot: Snapshot,
    ) -> CachedPlan:
        """Return a plan for a statement of the engine's own, kept under a name."""
        plan = self.cache.find(name, (), catalog, snapshot)
        if plan is None:
            declared: dict[int | str, SqlType] = dict(enumerate(types, 1))
            plan = make_plan(statement, Literals(()), catalog, snapshot, declared, rules=self.rules)
            self.cache.keep(name, (), plan)
        return plan


def name_of_plans(parameterized: Parameterized, scope: Scope | None) -> tuple[Any, ...]:
    """Return the name under which plans are kept: what a session has set is part of it."""
    if scope is None:
        return parameterized.fingerprint, parameterized.kinds
    return parameterized.fingerprint, parameterized.kinds, scope


def slots_of(plan: CachedPlan, literals: Sequence[Any], given: Given) -> Any:
    """Return what compiled code gets of one execution: literals by index, parameters by name."""
    if plan.parameters is not None:
        return plan.parameters.slots(literals, given)
    if given:
        raise ProtocolViolation("the statement has no parameters, but some were given")
    return literals


def make_plan(
    statement: ast.Statement,
    literals: Literals,
    catalog: Catalog,
    snapshot: Snapshot,
    declared: Mapping[int | str, SqlType] | None = None,
    given: Given = None,
    rules: tuple[Rule, ...] = RULES,
    budget: StepBudget | None = None,
    scope: Scope | None = None,
    statistics: DataStatistics | None = None,
    database: str | None = None,
) -> CachedPlan:
    """Compile a statement, and note what the plan depends on; see `prepare` of `sql`."""
    statistics = statistics or DataStatistics(snapshot.trees, budget)
    statistics.literals = literals if literals.fixed else None
    names = CatalogNames(catalog, snapshot, scope, statistics, database)
    made = prepare(statement, literals, names, declared, given, rules, budget)
    if made.writes and names.system_tables:
        _refuse_system_tables(made.changed)
    sizes = {
        table.id: snapshot.count(table.id)
        for table in made.compiled.tables
        if not made.writes or table.id in made.scanned
    }
    return CachedPlan(
        made,
        catalog,
        names.found,
        sizes,
        system_tables=names.system_tables,
        names_database=names.names_database,
    )


def _refuse_system_tables(tables: Sequence[Table]) -> None:
    for table in tables:
        if table.id < 0:
            raise NotInPrerequisiteState(f'cannot change "{table.name}": it shows what is defined')
