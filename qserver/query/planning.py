"""Makes a plan from a statement: binds, optimizes, compiles and keeps it.

    text ─► fingerprint and literals ─► cached? ─► AST ─► bound ─► optimized ─► compiled ─► cached

A first binding infers the types of parameters; a second takes them as declared, so that compiled
code gets values of those types, however they came.

All of this is a pure function of text and catalog. `prepare_nowait` prepares a statement that takes
few steps in place. For one that takes more it raises `NotShort`, and `prepare` has it done
elsewhere (`World.compute`), for as long as a client waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import msgspec

from qserver.engine.world import Check, Compute, compute_here
from qserver.errors import (
    NotInPrerequisiteState,
    ProtocolViolation,
    QserverError,
    StatementTooComplex,
)
from qserver.limits import PLANNING_STEPS_MAX, PLANS_KEPT_MAX
from qserver.query.catalog_names import CatalogNames
from qserver.query.plan_cache import CachedPlan, KeptPlans, PlanCache
from qserver.sql import ast
from qserver.sql.binder import Bound, Literals, bind
from qserver.sql.binder.parsed import parsed_expression
from qserver.sql.binder.table_expressions import ROW_ID_SLOT
from qserver.sql.codegen import compile_statement
from qserver.sql.expressions import Apply, Slot
from qserver.sql.fingerprint import Parameterized, parameterize, parameterize_plain_rows
from qserver.sql.folding import folded
from qserver.sql.functions.registry import Function
from qserver.sql.optimizer import RULES, Rule, optimize
from qserver.sql.parameters import Given, parameter_list, types_of_values
from qserver.sql.parser import Parsed, parse
from qserver.sql.plan import Change, Delete, Values
from qserver.sql.step_budget import NotShort, StepBudget
from qserver.sql.vectors.loading import load_for
from qserver.sql.walk import everything, parts, rebuilt
from qserver.storage.catalog import Catalog
from qserver.storage.snapshot import Snapshot
from qserver.values.types import BIGINT, SqlType

TEXT_REMEMBERED_LENGTH_MAX = 1024
"""Longer texts are not worth their memory."""

TEXT_SHORT_LENGTH_MAX = 64 * 1024
"""Longer texts are not parameterized while others wait."""

TEXT_OF_ROWS_LENGTH_MAX = 256 * 1024
"""Unless they are little but rows of plain values, up to this length: that takes a millisecond."""

STEPS_BETWEEN_LOOKS = 256
"""Steps between two checks whether a client still waits for the plan."""

NODE_BYTES = 256
CHARACTER_BYTES = 4
"""Approximate memory of a plan for each node of its tree, and for each character of its source."""

NEXT_ROW_ID = Function(
    "next_row_id",
    (),
    BIGINT,
    lambda context: context.next_row_id(),
    volatile=True,
    needs_context=True,
)


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
    ) -> None:
        self.rules = rules
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
    ) -> CachedPlan | None:
        return self.cache.find(
            (parameterized.fingerprint, parameterized.kinds),
            parameterized.literals,
            catalog,
            snapshot,
            given,
        )

    def prepare_nowait(
        self,
        sql: str,
        parameterized: Parameterized,
        catalog: Catalog,
        snapshot: Snapshot,
        given: Given = None,
        *,
        to_read: bool = False,
    ) -> Prepared:
        """Prepare a statement that came as text; raise NotShort if others would wait too long.

        `to_read`: plan only a statement that can run on a snapshot, just parse any other.
        """
        parsed = self._remembered(sql)
        if parsed is None and 2 * len(parameterized.fingerprint) > PLANNING_STEPS_MAX:
            raise NotShort  # do not begin: a character takes two steps and more
        budget = self._short_budget()
        made = self._prepared(sql, parsed, parameterized, catalog, snapshot, given, budget, to_read)
        return self._keep(sql, parameterized, given, made)

    async def elsewhere(self, work: Callable[[StepBudget], Any]) -> Any:
        """Return the result of pure work that counts its steps; other tasks run meanwhile."""
        return await self._compute(
            lambda check: work(StepBudget.watched(STEPS_BETWEEN_LOOKS, check))
        )

    async def prepare(
        self,
        sql: str,
        parameterized: Parameterized,
        catalog: Catalog,
        snapshot: Snapshot,
        given: Given = None,
        *,
        to_read: bool = False,
    ) -> Prepared:
        """Prepare a statement that takes long; other tasks run meanwhile."""
        parsed = self._remembered(sql)

        def work(check: Check) -> Prepared:
            budget = StepBudget.watched(STEPS_BETWEEN_LOOKS, check)
            return self._prepared(
                sql, parsed, parameterized, catalog, snapshot, given, budget, to_read
            )

        return self._keep(sql, parameterized, given, await self._compute(work))

    def _remembered(self, sql: str) -> Parsed | None:
        """Return the last parsed text if it is this one: a transaction may run again."""
        return self._parsed[1] if self._parsed is not None and self._parsed[0] == sql else None

    def _short_budget(self) -> StepBudget:
        return StepBudget.short(PLANNING_STEPS_MAX)

    def _prepared(
        self,
        sql: str,
        parsed: Parsed | None,
        parameterized: Parameterized,
        catalog: Catalog,
        snapshot: Snapshot,
        given: Given,
        budget: StepBudget,
        to_read: bool,
    ) -> Prepared:
        """Parse a statement if necessary, and plan it. Changes nothing: may run in a thread."""
        if parsed is None:
            parsed = parse(sql, budget=budget)
        statement, rules = parsed.statement, self.rules
        if to_read and not only_reads(statement):
            return Prepared(parsed)
        if isinstance(statement, _PLANNED):
            literals = Literals(parameterized.literals)
            plan = make_plan(statement, literals, catalog, snapshot, None, given, rules, budget)
            return Prepared(parsed, plan)
        about = statement_inside(statement)
        if about is None:
            return Prepared(parsed)
        fixed = Literals(parsed.literals, fixed=True)
        is_explained = isinstance(statement, ast.Explain)
        declared: Mapping[int | str, SqlType] | None = None if is_explained else {}
        try:
            plan = make_plan(about, fixed, catalog, snapshot, declared, given, rules, budget)
        except QserverError as error:
            return Prepared(parsed, None, error)
        return Prepared(parsed, None, plan)

    def _keep(
        self, sql: str, parameterized: Parameterized, given: Given, made: Prepared
    ) -> Prepared:
        self._parsed = sql, made.parsed
        if made.plan is not None:
            self._parsed = None  # the plan will be found
            self.cache.keep(
                (parameterized.fingerprint, parameterized.kinds),
                parameterized.literals,
                made.plan,
                given,
            )
        return made

    async def make_long(
        self,
        statement: ast.Statement,
        literals: Literals,
        catalog: Catalog,
        snapshot: Snapshot,
        declared: Mapping[int | str, SqlType] | None,
        given: Given,
    ) -> CachedPlan:
        """Make a plan for part of a definition that takes long to plan; do not keep it."""

        def work(check: Check) -> CachedPlan:
            budget = StepBudget.watched(STEPS_BETWEEN_LOOKS, check)
            rules = self.rules
            return make_plan(statement, literals, catalog, snapshot, declared, given, rules, budget)

        plan: CachedPlan = await self._compute(work)
        return plan

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


def slots_of(plan: CachedPlan, literals: Sequence[Any], given: Given) -> Any:
    """Return what compiled code gets of one execution: literals by index, parameters by name."""
    if plan.parameters is not None:
        return plan.parameters.slots(literals, given)
    if given:
        raise ProtocolViolation("the statement has no parameters, but some were given")
    return literals


def locate(error: QserverError, sql: str) -> None:
    """Set the position of an error in the text.

    A kept plan knows only the number of a literal, and the parser of a DEFAULT or CHECK text knows
    only the place in that text.
    """
    if error.position is not None:
        return
    if error.definition is not None:
        text, place = error.definition
        for node in nodes_of(parse(sql).statement):
            if isinstance(node, ast.Constraint | ast.AlterAction) and node.text == text:
                assert node.expression is not None, "the text is its"
                alone, _ = parsed_expression(text)
                error.position = node.expression.position - alone.position + place
                return
    elif error.literal is not None:
        index = _index_of_literal(error.literal, error.item, parameterize(sql).literals)
        for node in nodes_of(parse(sql, repeat=False).statement):
            if isinstance(node, ast.Literal) and node.index == index:
                error.position = node.position + 1
                return


def nodes_of(statement: ast.Statement) -> Iterator[Any]:
    """Yield all nodes of a statement's AST, in the order of the text."""
    waiting: list[Any] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            waiting.extend(reversed(node))
        elif is_dataclass(node):
            yield node
            waiting.extend(getattr(node, each.name) for each in reversed(fields(node)))


def _index_of_literal(number: int, item: int, literals: Sequence[Any]) -> int:
    """Return the index of a literal in a text where no row of VALUES stands for others.

    NULL, TRUE and FALSE are values of a row, but no literals.
    """
    slot = next((at for at, each in enumerate(literals) if isinstance(each, list)), None)
    if slot is None or number < slot:
        return number
    values = [value for row in literals[slot] for value in row]
    before = values[:item] if number == slot else values
    count = sum(1 for value in before if value is not None and not isinstance(value, bool))
    return slot + count if number == slot else number - 1 + count


def only_reads(statement: ast.Statement) -> bool:
    """Return whether the statement can run on a snapshot, without a transaction."""
    return isinstance(statement, ast.Query) and all(
        only_reads(table.statement) for table in statement.common_tables
    )


_PLANNED = (ast.Query, ast.Insert, ast.Update, ast.Delete, ast.Merge)


def statement_inside(statement: ast.Statement) -> ast.Statement | None:
    """Return the planned statement inside EXPLAIN, CREATE VIEW or CREATE TABLE AS, if any."""
    inside = getattr(statement, "statement", None) or getattr(statement, "query", None)
    return inside if isinstance(inside, _PLANNED) else None


def make_plan(
    statement: ast.Statement,
    literals: Literals,
    catalog: Catalog,
    snapshot: Snapshot,
    declared: Mapping[int | str, SqlType] | None = None,
    given: Given = None,
    rules: tuple[Rule, ...] = RULES,
    budget: StepBudget | None = None,
) -> CachedPlan:
    """Bind, optimize and compile a statement.

    `declared` has the types of parameters, if they are known; otherwise they are inferred from
    their places, or from the `given` values.
    """
    names = CatalogNames(catalog, snapshot)
    try:
        bound = _bound(statement, literals, names, declared, given, budget)
        with_row_ids = rebuilt(bound.statement, _with_row_id)
        optimized = optimize(folded(with_row_ids, budget), names.row_count, rules, budget)
        load_for(optimized, budget)
        texts = _quoted_literals((bound.statement, *bound.unused))
        compiled = compile_statement(optimized, bound.tables, budget, texts)
    except (RecursionError, SyntaxError):  # Python nests loops and calls only so deep
        raise StatementTooComplex(
            "the statement is nested too deeply",
            hint="Split it into several, or use fewer terms, joins or set operations.",
        ) from None
    changes = not only_reads(statement)
    nodes = sum(1 for _ in everything(optimized))
    if changes and names.system_tables:
        _refuse_system_tables(optimized)
    return CachedPlan(
        compiled,
        optimized,
        catalog,
        names.found,
        system_tables=names.system_tables,
        parameters=parameter_list(bound.parameters) if bound.parameters else None,
        in_fingerprint=bound.in_fingerprint,
        undecided=bound.undecided,
        sizes={table.id: snapshot.count(table.id) for table in bound.tables},
        size=NODE_BYTES * nodes + CHARACTER_BYTES * len(compiled.source),
        writes=changes,
        grows=changes and any(map(_stores, everything(optimized))),
        watched=changes
        and any(table.foreign_keys or table.referenced_by for table in bound.tables),
    )


def _stores(node: Any) -> bool:
    return isinstance(node, Change) and not isinstance(node, Delete)


def _quoted_literals(nodes: tuple[Any, ...]) -> tuple[Slot, ...]:
    """Return literals that must convert to their type even if no row reads them.

    So `coalesce(1, 'abc')` is refused. The slots of repeated VALUES are places in rows, which are
    converted one by one.
    """
    found: list[Slot] = []
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if type(node) is Slot:
            if node.reader is not None:
                found.append(replace(node, convert=node.reader))
        elif type(node) is not Values or not node.repeated:
            waiting.extend(parts(node))
    return tuple(found)


def _refuse_system_tables(statement: Any) -> None:
    for node in everything(statement):
        if isinstance(node, Change) and node.table.id < 0:
            raise NotInPrerequisiteState(
                f'cannot change "{node.table.name}": it shows what is defined'
            )


def _with_row_id(node: Any) -> Any:
    """Replace row ids: each row takes its own value, not one for the whole execution."""
    if type(node) is Slot and node.name == ROW_ID_SLOT:
        return Apply(NEXT_ROW_ID, (), BIGINT, nullable=False)
    return node


def _bound(
    statement: ast.Statement,
    literals: Literals,
    names: CatalogNames,
    declared: Mapping[int | str, SqlType] | None,
    given: Given,
    budget: StepBudget | None,
) -> Bound:
    if declared is not None:
        return bind(statement, literals, names, declared, budget=budget)
    found = bind(statement, literals, names, None, types_of_values(given), budget)
    if not found.parameters:
        return found
    again = bind(statement, literals, names, found.parameters, budget=budget)
    return replace(again, undecided=found.undecided)
