"""The ways to run one text: with fewer rules, on other keys, by another path through the engine.

A way is a coroutine from a text to its `Answer`. All of them must agree for every query, whatever
it is, so a relation may run its texts in any way.

`right_join_normalization` is never off: compiled code has no right joins.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from decimal import Overflow
from traceback import format_exception
from typing import TypeAlias

import trio

from qserver.engine.mailbox import Reply
from qserver.engine.work import begin, finish
from qserver.errors import QserverError
from qserver.functions.numbers.numeric_math import overflow_error
from qserver.query.cursor import END, Cursor
from qserver.query.planning import Planner, make_plan
from qserver.query.prepared_statement import PreparedStatement
from qserver.query.sequence_values import NeedsSequenceValues
from qserver.query.sql_database import RunOptions, SqlDatabase, Statement
from qserver.query.statements import StatementRun
from qserver.sql.binder import Literals
from qserver.sql.optimizer import RULES, Rule
from qserver.sql.optimizer.right_join_normalization import right_join_normalization
from qserver.sql.parser import Parsed, parse
from qserver.sql.statistics import Sizes
from qserver.sql.step_budget import StepBudget
from qserver.values.schema import Table
from qserver.values.types import SqlType
from tests.differential.bound import bound_form
from tests.differential.metamorphic.answers import INTERNAL, Answer, Row
from tests.differential.metamorphic.replicas import Replicas, new_run

Way: TypeAlias = Callable[[Sequence[str]], Awaitable[Answer]]
"""Statements of one transaction, of which the last is the query, and its answer."""

SIZES = (0, 100_000, 3, 1_000, 50_000, 40, 1)
SECONDS_MAX = 5.0
TEXTS_KEPT_MAX = 64

DEAR = ("fresh plan", "constants", "after writes of other rows")
"""Ways that plan, define or run several times, for each query."""

NO_RULES: tuple[Rule, ...] = (right_join_normalization,)


def rule_sets(rules: tuple[Rule, ...] = RULES) -> dict[str, tuple[Rule, ...]]:
    """What the planner is given instead of all rules, by name."""
    sets = {
        f"without {rule.__name__}": tuple(each for each in rules if each is not rule)
        for rule in rules
        if rule is not right_join_normalization
    }
    return {**sets, "without rules": NO_RULES, "rules twice": (*rules, *rules)}


def with_other_sizes(rules: tuple[Rule, ...], salt: int) -> tuple[Rule, ...]:
    """Rules that take tables for much larger or smaller than they are: sizes only guide a choice,
    so nothing that a plan answers may depend on them."""

    def size_of(table: Table) -> int:
        return SIZES[(table.id * 31 + salt) % len(SIZES)]

    def misled(rule: Rule) -> Rule:
        return lambda plan, statistics: rule(plan, Sizes(size_of))

    return tuple(misled(rule) for rule in rules)


class Ways:
    """All ways over the replicas, by name. `ordinary` is the one that the others are held to."""

    def __init__(self, replicas: Replicas) -> None:
        self.replicas = replicas
        parsed: dict[str, Parsed] = {}
        for database in replicas.databases.values():
            database.planner = SharedParsing(RULES, parsed)
        keyed, bare = replicas.keyed, replicas.databases["bare"]
        self.ordinary: Way = _executed(keyed)
        self.by_name: dict[str, Way] = {
            "other keys": _executed(replicas.databases["other"]),
            "other keys, other sizes": _executed(
                _gateway(replicas.databases["other"], with_other_sizes(RULES, 1))
            ),
            "no keys": _executed(bare),
            "no keys, without rules": _executed(_gateway(bare, NO_RULES)),
            "streamed": _streamed(keyed),
            "in a transaction": _in_transaction(keyed),
            "after writes of other rows": self._after_other_writes,
            "own writes": self._own(None),
            "own writes, without rules": self._own(SharedParsing(NO_RULES, parsed)),
            "begun": _begun(keyed),
            "fresh plan": _fresh(keyed),
            "parameters": _with_parameters(keyed),
            "bound": _bound(keyed),
            "again": _again(keyed),
            "constants": _with_constants(keyed),
        }
        for salt in range(3):
            gateway = _gateway(keyed, with_other_sizes(RULES, salt * 3))
            self.by_name[f"other sizes {salt}"] = _executed(gateway)
        for name, rules in rule_sets().items():
            self.by_name[name] = _executed(_gateway(keyed, rules))

    async def _after_other_writes(self, statements: Sequence[str]) -> Answer:
        """In a transaction that has created, filled and changed a table of its own."""
        return await _abandoned(self.replicas.keyed, [*OTHER_WRITES, *statements])

    def _own(self, planner: Planner | None) -> Way:
        async def new() -> StatementRun:
            run = await self.replicas.own()
            return run if planner is None else _with_planner(run, planner)

        async def way(statements: Sequence[str]) -> Answer:
            if len(statements) == 1:
                return await _last_of(new, statements)
            try:
                return await _last_of(new, statements, self.replicas.abandon_own)
            finally:
                self.replicas.abandon_own()

        return way


class SharedParsing(Planner):
    """A planner that takes a text's syntax from whoever parsed it last: parsing is not in doubt."""

    def __init__(self, rules: tuple[Rule, ...], parsed: dict[str, Parsed]) -> None:
        super().__init__(rules)
        self.parsed = parsed

    def _remembered(self, sql: str) -> Parsed:
        if sql not in self.parsed:
            if len(self.parsed) >= TEXTS_KEPT_MAX:
                self.parsed.clear()
            self.parsed[sql] = parse(sql)
        return self.parsed[sql]

    def _short_budget(self) -> StepBudget:
        """However long it takes: nobody else waits."""
        return StepBudget.boundless()


OTHER_WRITES = (
    "CREATE TABLE unrelated (id INT PRIMARY KEY, n INT)",
    "INSERT INTO unrelated VALUES (1, 1), (2, 2), (3, 3)",
    "DELETE FROM unrelated WHERE id = 2",
)


def _gateway(database: SqlDatabase, rules: tuple[Rule, ...]) -> SqlDatabase:
    """Another door to the same rows, whose planner has other rules."""
    gateway = SqlDatabase.__new__(SqlDatabase)
    gateway.__dict__.update(database.__dict__)
    assert isinstance(database.planner, SharedParsing)
    gateway.planner = SharedParsing(rules, database.planner.parsed)
    return gateway


def _with_planner(run: StatementRun, planner: Planner) -> StatementRun:
    other = StatementRun.__new__(StatementRun)
    for name in StatementRun.__slots__:
        setattr(other, name, getattr(run, name))
    other.planner = planner
    return other


async def _answered(made: Callable[[], Awaitable[tuple[list[Row], tuple[SqlType, ...]]]]) -> Answer:
    try:
        rows, types = await made()
    except QserverError as error:
        return Answer(error=error.code, message=str(error))
    except Overflow:
        return Answer(error=overflow_error().code)
    except Exception as error:  # a mistake of our own is an answer, too: one that is always wrong
        return Answer(error=INTERNAL, message="".join(format_exception(error)[-3:]))
    return Answer(rows, types)


def _executed(gateway: SqlDatabase) -> Way:
    async def way(statements: Sequence[str]) -> Answer:
        if len(statements) > 1:
            return await _abandoned(gateway, statements)

        async def made() -> tuple[list[Row], tuple[SqlType, ...]]:
            result = await gateway.execute(statements[0], timeout_ms=SECONDS_MAX * 1000)
            return result.rows, result.types

        return await _answered(made)

    return way


def _streamed(gateway: SqlDatabase) -> Way:
    async def way(statements: Sequence[str]) -> Answer:
        if len(statements) > 1:
            return await _abandoned(gateway, statements)

        async def made() -> tuple[list[Row], tuple[SqlType, ...]]:
            stream = await gateway.stream(statements[0], timeout_ms=SECONDS_MAX * 1000)
            rows: list[Row] = []
            async for page in stream:
                rows += page
            return rows, stream.types

        return await _answered(made)

    return way


def _in_transaction(gateway: SqlDatabase) -> Way:
    async def way(statements: Sequence[str]) -> Answer:
        if len(statements) > 1:
            return await _abandoned(gateway, statements)

        async def made() -> tuple[list[Row], tuple[SqlType, ...]]:
            outcome = await gateway.transaction(
                [Statement(statements[0])], timeout_ms=SECONDS_MAX * 1000
            )
            return outcome.results[-1].rows, outcome.results[-1].types

        return await _answered(made)

    return way


async def _abandoned(gateway: SqlDatabase, statements: Sequence[str]) -> Answer:
    """In a transaction that nobody commits, so that what it defines is gone afterwards."""

    async def new() -> StatementRun:
        return new_run(gateway)

    return await _last_of(new, statements)


async def _last_of(
    new: Callable[[], Awaitable[StatementRun]],
    statements: Sequence[str],
    abandon: Callable[[], None] = lambda: None,
) -> Answer:
    """The answer of the last statement; from the start again whenever numbers are wanted."""

    async def made() -> tuple[list[Row], tuple[SqlType, ...]]:
        while True:
            run, rows = await new(), []
            types: tuple[SqlType, ...] = ()
            deadline = trio.current_time() + SECONDS_MAX
            try:
                for sql in statements:
                    cursor = run.start(PreparedStatement(sql, None))
                    rows, types = _all_rows(cursor, deadline), cursor.heading.types
            except NeedsSequenceValues as needs:
                await needs.supply()
                abandon()
                continue
            return rows, types

    return await _answered(made)


def _all_rows(cursor: Cursor, deadline: float) -> list[Row]:
    while cursor.gather() is not END:
        if trio.current_time() > deadline:
            raise TooSlow("the statement takes too long")
    return cursor.rows


class TooSlow(QserverError):
    code = "57014"
    name = "query_canceled"


def _begun(gateway: SqlDatabase) -> Way:
    """By `begin`, which gives the rows or the rest of the same run, for a task to finish."""
    ordinary = _executed(gateway)

    async def way(statements: Sequence[str]) -> Answer:
        if len(statements) > 1:
            return await ordinary(statements)

        async def made() -> tuple[list[Row], tuple[SqlType, ...]]:
            options = RunOptions(timeout_ms=SECONDS_MAX * 1000)
            outcome, rest = begin(gateway.perform([Statement(statements[0])], options))
            if rest is not None:
                assert not isinstance(rest.step, Reply), "a query sends no commit"
                outcome = await finish(rest)
            return outcome.results[0].rows, outcome.results[0].types

        return await _answered(made)

    return way


def _again(gateway: SqlDatabase) -> Way:
    """A second time, and a third: what the first run has made is there then."""
    once = _executed(gateway)

    async def way(statements: Sequence[str]) -> Answer:
        first = await once(statements)
        if len(statements) > 1 or first.error is not None:
            return first
        second = await once(statements)
        return second if second.error is not None else await once(statements)

    return way


def _bound(gateway: SqlDatabase) -> Way:
    """With typed literals as parameters, arrays as lists: a first time, and again."""

    async def way(statements: Sequence[str]) -> Answer:
        if len(statements) > 1:
            return await _abandoned(gateway, statements)
        text, given = bound_form(statements[0])

        async def made() -> tuple[list[Row], tuple[SqlType, ...]]:
            await gateway.execute(text, given, timeout_ms=SECONDS_MAX * 1000)
            result = await gateway.execute(text, given, timeout_ms=SECONDS_MAX * 1000)
            return result.rows, result.types

        return await _answered(made)

    return way


def _fresh(gateway: SqlDatabase) -> Way:
    """With a plan that was made for these very literals, and is not kept."""

    async def way(statements: Sequence[str]) -> Answer:
        return await _executed(_gateway(gateway, RULES))(statements)

    return way


def _with_constants(gateway: SqlDatabase) -> Way:
    """With literals as constants of the plan, as in the text of a view; nothing is
    parameterized."""

    async def way(statements: Sequence[str]) -> Answer:
        if len(statements) > 1:
            return await _abandoned(gateway, statements)

        async def made() -> tuple[list[Row], tuple[SqlType, ...]]:
            run = new_run(gateway)
            parsed = parse(statements[0])
            fixed = Literals(parsed.literals, fixed=True)
            catalog, snapshot = run.transaction.catalog, run.transaction.snapshot
            rules = gateway.planner.rules
            plan = make_plan(parsed.statement, fixed, catalog, snapshot, {}, rules=rules)
            deadline = trio.current_time() + SECONDS_MAX
            cursor = Cursor(run.run_plan(plan, parsed.literals), run.context, heading=plan)
            return _all_rows(cursor, deadline), plan.types

        return await _answered(made)

    return way


_TYPED: re.Pattern[str] = re.compile(
    r"(?<![\w'])'((?:[^']|'')*)'::((?!bytea)[a-z_0-9]+(?:\([0-9, ]+\))?(?:\[\])?)"
)


def _with_parameters(gateway: SqlDatabase) -> Way:
    """With every literal that names its type given as a parameter of that type."""

    async def way(statements: Sequence[str]) -> Answer:
        if len(statements) > 1:
            return await _abandoned(gateway, statements)
        given: list[str] = []

        def moved(found: re.Match[str]) -> str:
            given.append(found[1].replace("''", "'"))
            return f"CAST(${len(given)} AS {found[2]})"

        text = _TYPED.sub(moved, statements[0])

        async def made() -> tuple[list[Row], tuple[SqlType, ...]]:
            result = await gateway.execute(text, given, timeout_ms=SECONDS_MAX * 1000)
            return result.rows, result.types

        return await _answered(made)

    return way
