"""Runs a request's statements in one transaction.

Every statement, whatever its kind, becomes a `Cursor`: columns, and steps that yield pages of rows
or None and return the number of changed rows.

    query, INSERT, UPDATE, DELETE    a plan, kept or made
    CREATE, ALTER, DROP …            `sql.ddl`, which calls back here for what it computes
    EXPLAIN, SHOW, SET               answered here
    PREPARE, DECLARE, FETCH …        by the session, see `named_statements` and `cursors`
    BEGIN, COMMIT …                  refused: a request is a transaction
    SAVEPOINT …                      by `savepoints`, or by the open transaction
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from qserver.durability.records import Definitions
from qserver.engine.work import Step
from qserver.errors import ActiveTransaction, ProtocolViolation, QserverError
from qserver.limits import PLANNING_STEPS_MAX
from qserver.query.administration import administer
from qserver.query.catalog.reader import CatalogReader
from qserver.query.catalog_names import CatalogNames
from qserver.query.channels import listen, notify
from qserver.query.cursor import Cursor, Heading, StatementSteps, rows_at_once
from qserver.query.cursors import close, declare, fetch
from qserver.query.deferred_keys import DeferredKeys
from qserver.query.explain_statement import explain_statement
from qserver.query.foreign_keys import check_deferred, check_foreign_key, enforce
from qserver.query.maintenance import grant, lock, maintain
from qserver.query.named_statements import (
    deallocate,
    discard,
    execute_statement,
    plan_of_query,
    prepare_statement,
)
from qserver.query.plan_cache import CachedPlan
from qserver.query.planning import Planner, Prepared, Unplanned, make_plan, slots_of
from qserver.query.prepared_statement import PreparedStatement
from qserver.query.request import Request, RequestContext
from qserver.query.session import NeedsSession, Session
from qserver.query.session_statements import set_transaction, set_variable, show
from qserver.query.set_constraints import set_constraints
from qserver.query.settings.values import Scope
from qserver.query.slots import run_heavy
from qserver.query.statement_port import Controls, Opening
from qserver.query.transaction_control import NeedsSavepoints, command_of
from qserver.query.zoned_reader import ZonedReader
from qserver.sql import (
    DdlPort,
    Given,
    Literals,
    NotShort,
    OutputColumn,
    Parsed,
    StepBudget,
    ast,
    is_heavy,
    is_skipped,
    parse,
    parse_expression,
    perform,
    require_lasting,
    statement_inside,
    view_text,
)
from qserver.storage.transaction import Journal, Transaction
from qserver.values.constraints import ForeignKey
from qserver.values.identifiers import PUBLIC
from qserver.values.notices import Notice
from qserver.values.relations import Sequence as SqlSequence
from qserver.values.schema import Table
from qserver.values.temporary import TEMPORARY, OnCommit, is_temporary
from qserver.values.types import TEXT, SqlType

NO_PARAMETERS: Final[Mapping[int | str, SqlType]] = {}

COST_OF_PREPARING = 16
"""The cost of a definition, or of a statement without a kept plan, in statements with one."""


class StatementRun:
    """Runs statements in a transaction, and computes for definitions."""

    __slots__ = (
        "_prepared",
        "_quota",
        "affected_besides",
        "allowed",
        "changes",
        "context",
        "controls",
        "cost",
        "deferred",
        "opened_read_only",
        "planner",
        "request",
        "session",
        "transaction",
    )

    def __init__(
        self,
        planner: Planner,
        transaction: Transaction,
        request: Request,
        controls: Controls | None = None,
    ) -> None:
        self.controls = controls
        self.request = request
        request.notices = None
        self.planner = planner
        self.transaction = transaction
        self.allowed = request.allowed
        self.session = request.session
        self.deferred: DeferredKeys | None = None
        """The foreign keys that have to be checked when the transaction ends."""
        self.opened_read_only = request.allowed.read_only
        """Whether the transaction was begun as one that only reads: then it keeps no footprint."""
        self._quota = request.environment.quota
        self.context = RequestContext(request, transaction)
        self._prepared: Prepared | None = None
        self.changes = False
        """Whether it has begun a statement that may change or define something."""
        self.cost = 0
        """The cost of its statements since other tasks last had a chance to run."""
        self.affected_besides = 0
        """Rows that changed and are not in `affected_rows` of a statement: by foreign keys."""

    def start(self, statement: PreparedStatement, prepared: Prepared | None = None) -> Cursor:
        """Begin a statement; raise here whatever is wrong with it as a whole.

        NotShort: the statement takes long to prepare, so the caller prepares it elsewhere and
        passes `prepared`.
        """
        text, given, plan = statement.sql, statement.given, statement.plan
        parameterized = statement.parameterized or self.planner.parameterize(text, given)
        catalog, snapshot = self.transaction.catalog, self.transaction.snapshot
        scope = None
        if self.session is not None:
            self._follow(self.session)
            scope, plan = self.session.scope, None
        if plan is None or plan.catalog is not catalog:
            about = parameterized, catalog, snapshot, given, scope
            plan = None if prepared else self.planner.find(*about)
        self.cost += 1
        if plan is None:
            self.cost += COST_OF_PREPARING
            if prepared is None:
                named = text, parameterized, catalog, snapshot, given
                asked = Unplanned(*named, scope=scope, database=self.database)
                prepared = self.planner.prepare_nowait(asked)
            plan = prepared.plan
            if plan is None:
                self._prepared = prepared
                cursor = self._start_other(prepared.parsed, given, text, parameterized.declared)
                cursor.sql = text
                counters = self.planner.statements
                is_other = isinstance(prepared.parsed.statement, ast.Prepare | ast.Deallocate)
                if counters is not None and isinstance(cursor.heading, Heading) and not is_other:
                    counter = counters.counter_of(parameterized.fingerprint)
                    cursor.heading = msgspec.structs.replace(cursor.heading, counter=counter)
                return cursor
        self.check_allowed(plan)
        if given and is_heavy(given):
            run = partial(self.run_plan, plan)
            steps = run_heavy(plan, parameterized.literals, given, self.context, run)
        else:
            steps = self.run_plan(plan, slots_of(plan, parameterized.literals, given))
        if self.session is not None:
            steps = self.making_way(plan.writes, steps)
        counts = self.request.counts
        return Cursor(steps, self.context, text, plan, commits=True, counts=counts)

    @property
    def is_in_block(self) -> bool:
        """Whether it is a part of a transaction that somebody has opened."""
        return self.request.is_step

    def making_way(self, changes: bool, steps: StatementSteps) -> StatementSteps:
        """Let portals keep their rows before steps that may change them."""
        if changes and self.session is not None and self.session.portals:
            return self._after_making_way(self.session, steps)
        return steps

    def _after_making_way(self, session: Session, steps: StatementSteps) -> StatementSteps:
        yield from session.make_way(self.request)
        return (yield from steps)

    def _follow(self, session: Session) -> None:
        """Do as the session's settings say, from this statement on."""
        settings = session.settings
        self.context.limit(settings.statement_timeout_ms)
        if settings.read_only != self.allowed.read_only:
            read_only = settings.read_only or self.opened_read_only
            self.allowed = msgspec.structs.replace(self.allowed, read_only=read_only)

    @property
    def scope(self) -> Scope | None:
        """What the session has set that plans depend on."""
        return None if self.session is None else self.session.scope

    @property
    def database(self) -> str:
        """The name by which the request knows the database."""
        return self.request.environment.server.database

    def check_allowed(self, plan: CachedPlan, runs: bool = True) -> None:
        if plan.writes:
            self.allowed.check_write(runs)
            if runs:
                if plan.grows:
                    self._quota.check()
                self.changes = self.transaction.changes_rows = True
        else:
            self.allowed.check_read()

    def _start_other(self, parsed: Parsed, given: Given, text: str, declared: Any) -> Cursor:
        if isinstance(parsed.statement, ast.Explain):
            return explain_statement(self, parsed.statement, parsed.literals, given, text)
        if isinstance(parsed.statement, ast.Declare):
            return declare(self, Opening(parsed, given, declared))
        if given:
            raise ProtocolViolation("a statement of this kind has no parameters")
        special = _SPECIAL.get(type(parsed.statement))
        if special is not None:
            return special(self, parsed.statement, parsed.literals)
        cursor = Cursor(rows_at_once([]), self.context)
        if isinstance(parsed.statement, ast.CreateTable) and parsed.statement.query is not None:
            cursor.tag = "CREATE TABLE AS"
        cursor.steps = self.define(parsed.statement, parsed.literals, text, cursor)
        return cursor

    def define(
        self,
        statement: ast.Statement,
        literals: Sequence[Any],
        text: str,
        cursor: Cursor | None = None,
    ) -> StatementSteps:
        """Return the steps of a definition; they may change the tag of the cursor."""
        self.allowed.check_define()
        if not isinstance(statement, ast.Drop | ast.Truncate):
            self._quota.check()
        self.changes = True
        work = DdlPort(self.transaction, self, literals, self.database)
        steps = self.making_way(True, perform(work, statement))
        return self._noted(text, steps, cursor, statement)

    def is_skipped(self, statement: ast.CreateTable, literals: Sequence[Any]) -> bool:
        return is_skipped(DdlPort(self.transaction, self, literals, self.database), statement)

    def _noted(
        self, text: str, steps: StatementSteps, cursor: Cursor | None, statement: Any
    ) -> StatementSteps:
        """Run the steps of a definition, and record its text if it changed anything."""
        transaction = self.transaction
        before = transaction.catalog_changes
        affected = yield from steps
        now = transaction.catalog_changes
        names = [
            name
            for name, definition in now.definitions.items()
            if name not in before.definitions or before.definitions[name] is not definition
        ]
        if names and cursor is not None and cursor.tag and statement.with_data:
            cursor.tag = "SELECT INTO"
        names = [name for name in names if not is_temporary(name)]
        for name in names:
            require_lasting(now.definitions[name])
        if names:
            moved = {new: old for new, old in now.rewritten.items() if new not in before.rewritten}
            transaction.note_for_log(Definitions(text, names, moved))
        return affected

    def _depend_on(self, plan: CachedPlan) -> None:
        """Add the names of a plan to the footprint."""
        transaction = self.transaction
        if transaction.catalog is transaction.snapshot.catalog:
            transaction.names_seen.update(plan.names)
        else:
            for name in plan.names:
                transaction.find_definition(name)

    def run_plan(self, plan: CachedPlan, slots: Any) -> StatementSteps:
        transaction = self.transaction
        self._depend_on(plan)
        reader: Any = transaction
        if plan.system_tables:
            request = self.request
            about = self.context, self.session, request.environment.server, request.allowed
            reader = CatalogReader(transaction, *about)
        if self.session is not None and self.session.settings.zone is not None:
            reader = ZonedReader(reader, self.session.settings.zone)
        steps = plan.compiled.run(reader, slots, self.context)
        return self._watched(steps) if plan.watched else steps

    def _watched(self, steps: StatementSteps) -> StatementSteps:
        """Run the steps of a statement, then enforce foreign keys."""
        journal: Journal = []
        self.transaction.journal = journal
        try:
            affected = yield from steps
        finally:
            self.transaction.journal = None
        cascaded = yield from enforce(self, journal, self._deferred_keys())
        self.affected_besides += cascaded
        return affected

    def _deferred_keys(self) -> DeferredKeys:
        if self.deferred is None:
            self.deferred = DeferredKeys() if self.session is None else self.session.deferred
        return self.deferred

    def check_deferred(self) -> Generator[None, None, None]:
        """Check the foreign keys that have waited for the end of the transaction."""
        yield from check_deferred(self, self._deferred_keys(), at_end=True)

    def before_commit(self) -> Generator[Step, Any, None]:
        """Do what has waited for the end of the transaction."""
        if self.deferred is not None:
            yield from self.check_deferred()
        if self.session is not None and self.session.temporary is not None:
            yield from self.act_on_commit()

    def act_on_commit(self) -> Generator[Step, Any, None]:
        """Drop or empty temporary tables ON COMMIT, by the statements that a user would send."""
        catalog, dropped, emptied = self.transaction.catalog, [], []
        numbers = catalog.temporary
        for oid, action in () if numbers is None else list(numbers.on_commit.items()):
            table = catalog.with_oid(oid)
            if isinstance(table, Table) and table.oid == oid:
                if action == "drop":
                    dropped.append(table.path)
                elif self.transaction.count(table.id):
                    emptied.append(table.path)
        work = DdlPort(self.transaction, self, (), self.database)
        if dropped:
            yield from perform(work, ast.Drop("table", tuple(dropped), cascade=True))
        if emptied:
            yield from perform(work, ast.Truncate(tuple(emptied)))

    def run_with(
        self,
        name: tuple[str, ...],
        statement: ast.Statement,
        values: Sequence[tuple[SqlType, Any]],
    ) -> StatementSteps:
        """Run a statement of the engine's own, as part of another, with values as parameters."""
        types = tuple([sql_type for sql_type, _ in values])
        transaction = self.transaction
        plan = self.planner.plan_of(
            name, statement, types, transaction.catalog, transaction.snapshot
        )
        self._depend_on(plan)
        slots: dict[int | str, Any] = {
            f"${number}": value for number, (_, value) in enumerate(values, 1)
        }
        return plan.compiled.run(transaction, slots, self.context)

    # --- definitions, and what they compute with ---

    @property
    def names(self) -> CatalogNames:
        about = self.transaction.catalog, self.transaction.snapshot, self.scope
        return CatalogNames(*about, database=self.database)

    @property
    def path(self) -> tuple[str, ...]:
        """The schemas in which names without one are looked for."""
        return (PUBLIC,) if self.session is None else self.session.path

    @property
    def creation_path(self) -> tuple[str, ...]:
        """The schemas of which the first that exists gets new names."""
        return (PUBLIC,) if self.session is None else self.session.settings.path

    def open_temporary(self) -> None:
        pool = self.request.environment.pool
        self.own_session().open_temporary(self.transaction, pool)

    def on_commit(self, table: Table, action: OnCommit) -> None:
        numbers = self.transaction.catalog.temporary
        assert numbers is not None, "it is temporary"
        numbers.on_commit[table.oid] = action

    @property
    def may_read(self) -> bool:
        return self.allowed.read

    def check_read(self) -> None:
        self.allowed.check_read()

    def check_define(self, runs: bool = True) -> None:
        self.allowed.check_define(runs)

    def check_notify(self) -> None:
        """Refuse to tell listeners something where nothing may be changed."""
        self.allowed.check_write()
        self.changes = self.transaction.changes_rows = True

    def plan_inside(
        self,
        statement: ast.Statement,
        literals: Sequence[Any],
        declared: Mapping[int | str, SqlType] | None = NO_PARAMETERS,
        given: Given = None,
        anew: bool = False,
    ) -> Generator[Step, Any, CachedPlan]:
        """Return a plan for what a definition computes, made elsewhere if it takes long.

        `anew`: it is not the one that was made when the definition was prepared.
        """
        plan = yield from self._made(statement, literals, declared, given, anew)
        self._depend_on(plan)
        return plan

    def use_plan(self, plan: CachedPlan) -> None:
        """Run the query of the definition by this plan."""
        assert self._prepared is not None, "the definition has been prepared"
        self._prepared = msgspec.structs.replace(self._prepared, inner=plan)

    def _made(
        self,
        statement: ast.Statement,
        literals: Sequence[Any],
        declared: Mapping[int | str, SqlType] | None,
        given: Given,
        anew: bool,
    ) -> Generator[Step, Any, CachedPlan]:
        catalog, snapshot = self.transaction.catalog, self.transaction.snapshot
        made = self._prepared
        if not anew and made is not None and statement is statement_inside(made.parsed.statement):
            if isinstance(made.inner, QserverError):
                raise made.inner
            assert made.inner is not None
            if made.inner.holds_in(catalog):
                return made.inner
        fixed = Literals(literals, fixed=True)
        budget = StepBudget.short(PLANNING_STEPS_MAX)
        options = self.planner.rules, budget, self.scope, None, self.database
        try:
            return make_plan(statement, fixed, catalog, snapshot, declared, given, *options)
        except NotShort:
            fixed = Literals(literals, fixed=True)
            about = statement, fixed, catalog, snapshot, declared, given, self.scope, self.database
            plan: CachedPlan = yield partial(self.planner.make_long, *about)
        return plan

    def describe(
        self, query: ast.Query | ast.Execute, literals: Sequence[Any]
    ) -> Generator[Step, Any, tuple[tuple[OutputColumn, ...], tuple[str, ...]]]:
        plan, _ = yield from self._query_plan(query, literals)
        return plan.compiled.columns, tuple(plan.names)

    def columns_of(
        self, query: ast.Query, literals: Sequence[Any]
    ) -> Generator[Step, Any, tuple[OutputColumn, ...]]:
        plan = yield from self.plan_inside(query, literals)
        return plan.compiled.columns

    def check(self, statement: ast.Statement) -> Generator[Step, Any, None]:
        yield from self.plan_inside(statement, ())

    def run(
        self, statement: ast.Statement, literals: Sequence[Any]
    ) -> Generator[Step, Any, StatementSteps]:
        plan = yield from self.plan_inside(statement, literals)
        return plan.compiled.run(self.transaction, literals, self.context)

    def run_query(
        self, query: ast.Query | ast.Execute, literals: Sequence[Any]
    ) -> Generator[Step, Any, StatementSteps]:
        plan, slots = yield from self._query_plan(query, literals)
        self.check_allowed(plan)
        return self.run_plan(plan, slots)

    def _query_plan(
        self, query: ast.Query | ast.Execute, literals: Sequence[Any]
    ) -> Generator[Step, Any, tuple[CachedPlan, Any]]:
        """Return the plan of a query, or of the EXECUTE of one, and what it runs with."""
        if isinstance(query, ast.Execute):
            return (yield from plan_of_query(self, query, literals))
        return (yield from self.plan_inside(query, literals)), literals

    def view_text(self, text: str) -> Generator[Step, Any, str]:
        names = self.names
        try:
            return view_text(text, names, StepBudget.short(PLANNING_STEPS_MAX))
        except NotShort:
            written: str = yield partial(
                self.planner.elsewhere, lambda budget: view_text(text, names, budget)
            )
        return written

    def parse_query(self, text: str) -> ast.Query:
        statement = parse(text).statement
        assert isinstance(statement, ast.Query), "a view is a query"
        return statement

    def parse_expression(self, text: str) -> tuple[ast.Expression, Sequence[Any]]:
        parsed = parse_expression(text)
        return parsed.expression, parsed.literals

    def check_foreign_key(self, table: Table, key: ForeignKey) -> Generator[None, None, int]:
        return check_foreign_key(self.transaction, table, key)

    def count_written(self, entries: int, width: int, long_bytes: int) -> None:
        self.context.write_rows(entries, width, long_bytes)

    def give_notice(self, notice: Notice) -> None:
        self.context.give_notice(notice)

    def warn_outside_block(self, what: str) -> None:
        if not self.is_in_block:
            text = f"{what} can only be used in transaction blocks"
            self.give_notice(Notice("WARNING", "25P01", text))

    def next_row_id(self, schema: str) -> int:
        context = self.context
        return context.next_temporary_row_id() if schema == TEMPORARY else context.next_row_id()

    def sequence_state(self, sequence: SqlSequence) -> tuple[int, bool]:
        return self.context.sequences.state_of(sequence)

    def begin_sequence(self, sequence: SqlSequence, value: int, called: bool) -> None:
        self.context.sequences.put_state(sequence, (value, called))

    def end_sequence(self, sequence: SqlSequence) -> None:
        self.context.sequences.drop_state(sequence)

    def drop_sequence(self, sequence: SqlSequence) -> None:
        self.context.sequences.leave_position(sequence)

    # --- the rest ---

    def own_session(self) -> Session:
        if self.session is None:
            raise NeedsSession
        return self.session

    def show(self, node: ast.Show, literals: Sequence[Any]) -> Cursor:
        columns, rows = show(self.session, node)
        heading = Heading(columns, (TEXT,) * len(columns))
        return Cursor(rows_at_once(rows), self.context, heading=heading)

    def set_variable(self, node: ast.SetVariable, literals: Sequence[Any]) -> Cursor:
        set_variable(self.own_session(), node)
        if node.local:
            self.warn_outside_block("SET LOCAL")
        return Cursor(rows_at_once([]), self.context)

    def control(self, node: ast.TransactionControl, literals: Sequence[Any]) -> Cursor:
        if node.kind == "set transaction":
            set_transaction(self.own_session(), node, self.opened_read_only)
            if node.words[:1] != ("session",):
                self.warn_outside_block("SET TRANSACTION")
            return Cursor(rows_at_once([]), self.context)
        if self.controls is None:
            if command_of(node)[1] is not None:
                raise NeedsSavepoints
            raise ActiveTransaction(
                f"{node.kind.upper()} is not supported: every request is a transaction",
                hint="Send the statements of a transaction together, in one request, or open"
                " a transaction with POST /v1/transaction/open.",
            )
        return Cursor(self.controls(node), self.context)


_SPECIAL: Final[Mapping[type, Callable[[StatementRun, Any, Sequence[Any]], Cursor]]] = {
    ast.Show: StatementRun.show,
    ast.SetConstraints: set_constraints,
    ast.SetVariable: StatementRun.set_variable,
    ast.TransactionControl: StatementRun.control,
    ast.Prepare: prepare_statement,
    ast.Execute: execute_statement,
    ast.Deallocate: deallocate,
    ast.Discard: discard,
    ast.Fetch: fetch,
    ast.Close: close,
    ast.Lock: lock,
    ast.Maintain: maintain,
    ast.Administer: administer,
    ast.Grant: grant,
    ast.Listen: listen,
    ast.Notify: notify,
}
