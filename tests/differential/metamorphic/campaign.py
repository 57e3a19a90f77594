"""Many random queries, each asked in several ways, until enough are asked or one differs.

    seed ─► schema, rows ─► replicas ─► shapes ─┬─ a query with several literals ─► questions
                               ▲                └─ now and then a change of rows ─┐
                               └──────────────────────────────────────────────────┘

A *shape* is a query without its literals. Each is asked in a few relations and ways, drawn by lot,
with several sets of literals, so that most plans are used more than once. Everything about shape
17 of seed 5 follows from these two numbers and the rows, so it can be asked again without the
others; what is wrong only because of plans that earlier shapes left behind needs them all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from tests.differential.expressions import Scope, Visible
from tests.differential.kinds import cast_name
from tests.differential.metamorphic.answers import Answer
from tests.differential.metamorphic.cases import CHANGE, ORDINARY, SAME, Case, Question, ask
from tests.differential.metamorphic.changes import random_change, random_rows
from tests.differential.metamorphic.huge import HugeShape, HugeTable
from tests.differential.metamorphic.plain import (
    AGAIN,
    EXTREMES,
    LEFT_JOIN,
    MEMBER,
    PlainExpressions,
    PlainQueries,
)
from tests.differential.metamorphic.relations import RELATIONS
from tests.differential.metamorphic.replicas import (
    Replicas,
    ReplicasDiffer,
    opened_replicas,
)
from tests.differential.metamorphic.varying import varied
from tests.differential.metamorphic.ways import DEAR, Ways
from tests.differential.schema import Schema, Table, random_schema

SHAPES_OF_SEED: Final = 25
LITERALS_OF_SHAPE: Final = 20
QUESTIONS_OF_SHAPE: Final = 3
DEAR_MOST: Final = 2
"""With so many sets of literals a shape is asked in ways that make a new plan each time."""
CHANGES_SHARE: Final = 0.2
ROWS_MOST: Final = (4, 7, 10)
"""Of a table: without rules, joins look at all combinations."""
ROWS_MANY: Final = 1_000
LARGE_SHARE: Final = 0.06
"""How often one of the tables has more rows than are taken for few."""
HUGE_SHARE: Final = 40
"""Of so many seeds, one asks about a table of more than 20,000 rows."""
SHAPES_OF_HUGE: Final = 12
LITERALS_OF_HUGE: Final = 2


@dataclass(slots=True)
class Report:
    """What was asked, and what differed."""

    queries: int = 0
    """Texts that were compared with themselves in other ways."""
    shapes: int = 0
    executions: int = 0
    exceptions: Counter[str] = field(default_factory=Counter)
    errors: int = 0
    """Queries that raised an error, in every way."""
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    failure: Failure | None = None

    def __str__(self) -> str:
        lines = [
            f"{self.queries:,} queries of {self.shapes:,} shapes, {self.executions:,} executions",
            f"{self.errors:,} queries raise an error",
        ]
        lines += [f"{count:,} differ by {name}" for name, count in self.exceptions.items()]
        return ", ".join(lines)


@dataclass(frozen=True, slots=True)
class Failure:
    seed: int
    shape: int
    case: Case
    difference: str

    def __str__(self) -> str:
        return f"{self.case.script()}\n\n{self.case.question}\n\n{self.difference}"


class Campaign:
    """Asks about the shapes of one seed after the other; `report` grows."""

    def __init__(
        self,
        tell: Callable[[Report], None] | None = None,
        literals_of_shape: int = LITERALS_OF_SHAPE,
        focus: Sequence[tuple[str, str]] = (),
    ) -> None:
        """`focus`: relations and ways to ask in, instead of those that are drawn by lot."""
        self.report = Report()
        self._focus = focus
        self._literals_of_shape = literals_of_shape
        self._tell = tell or (lambda report: None)

    async def run(self, first_seed: int, queries: int) -> Report:
        seed = first_seed
        while self.report.queries < queries and self.report.failure is None:
            await self.run_seed(seed, queries)
            seed += 1
        return self.report

    async def run_seed(
        self, seed: int, queries: int | None = None, only_shape: int | None = None
    ) -> None:
        if seed % HUGE_SHARE == 0 and not self._focus:
            await self._run_huge(seed, queries, only_shape)
            return
        chance = Random(seed)
        schema = random_schema(chance, rows_max=chance.choice(ROWS_MOST))
        schema = replace(schema, tables=tuple(with_indexes(each) for each in schema.tables))
        definitions, rows = split(schema)
        async with opened_replicas(Random(seed)) as replicas:
            await replicas.define(definitions)
            if chance.random() < LARGE_SHARE:
                table = chance.choice(schema.tables)
                rows.append(random_rows(chance, table, chance.randint(70, 150)))
            for table in schema.tables:  # so that rows agree in a column
                if "a" not in table.key and chance.random() < 0.5:
                    rows.append(f"UPDATE {table.name} SET a = a % 3")
            changes = [sql for sql in rows if await replicas.change(sql) is not None]
            ways = Ways(replicas)
            for shape in range(SHAPES_OF_SEED):
                drawn = Random(f"{seed} {shape}")
                if drawn.random() < CHANGES_SHARE:
                    changes += await self._change(replicas, schema, drawn)
                if self._failed is None and only_shape in (None, shape):
                    await self._ask_about(Shape(drawn, schema), ways)
                if self._failed is not None:
                    question, difference = self._failed
                    case = Case(tuple(definitions), tuple(changes), question, seed)
                    self.report.failure = Failure(seed, shape, case, difference)
                    return
                if shape == only_shape or (queries and self.report.queries >= queries):
                    return

    async def _run_huge(self, seed: int, queries: int | None, only_shape: int | None) -> None:
        """Ask about a table of many rows, which change between the questions."""
        huge = HugeTable(Random(seed))
        async with opened_replicas(Random(seed)) as replicas:
            await replicas.define(huge.definitions)
            changes = [sql for sql in huge.rows if await replicas.change(sql) is not None]
            ways = Ways(replicas)
            for shape in range(SHAPES_OF_HUGE):
                drawn = Random(f"{seed} {shape}")
                asked = HugeShape(drawn, huge)
                if drawn.random() < CHANGES_SHARE:
                    sql = asked.change()
                    if await replicas.change(sql) is not None:
                        changes.append(sql)
                if only_shape in (None, shape):
                    await self._ask_about(asked, ways, LITERALS_OF_HUGE)
                if self._failed is not None:
                    question, difference = self._failed
                    case = Case(tuple(huge.definitions), tuple(changes), question, seed)
                    self.report.failure = Failure(seed, shape, case, difference)
                    return
                if shape == only_shape or (queries and self.report.queries >= queries):
                    return

    _failed: tuple[Question, str] | None = None

    async def _change(self, replicas: Replicas, schema: Schema, chance: Random) -> list[str]:
        done = []
        for _ in range(chance.randint(1, 3)):
            sql = random_change(chance, schema)
            try:
                if await replicas.change(sql) is not None:
                    done.append(sql)
            except ReplicasDiffer as differ:
                self._failed = Question(sql, "true", 0, CHANGE, ORDINARY), str(differ)
                break
        return done

    async def _ask_about(
        self, shape: Shape | HugeShape, ways: Ways, most: int | None = None
    ) -> None:
        self.report.shapes += 1
        questions = shape.questions(list(ways.by_name), self._focus)
        for at in range(min(self._literals_of_shape, most or self._literals_of_shape)):
            text, predicate, inside = shape.literals(at)
            base = await ways.ordinary([text])
            self.report.executions += 1
            for relation, way, number in questions:
                if at >= DEAR_MOST and (RELATIONS[relation].defines or way in DEAR):
                    continue
                question = Question(
                    text, predicate, number, relation, way, inside, shape.ordered_by
                )
                if await self._ask(ways, question, base, shape):
                    return
            self.report.queries += 1
            self.report.errors += base.error is not None
            self._tell(self.report)
            if base.error is not None and base.error.startswith("42"):
                return  # other literals do not mend what has no meaning
            if len(base.rows) > ROWS_MANY:
                return  # it is dear, and was asked once

    async def _ask(
        self, ways: Ways, question: Question, base: Answer, shape: Shape | HugeShape
    ) -> bool:
        outcome = await ask(ways, question, base)
        if outcome.kind.startswith("42") and await shape.has_wrong_predicate(ways):
            return False
        report = self.report
        report.executions += outcome.texts
        report.asked[question.relation, question.way] += 1
        if outcome.exception is not None:
            report.exceptions[outcome.exception] += 1
        if outcome.difference:
            self._failed = question, outcome.difference
        return bool(outcome.difference)


class Shape:
    """A random query, and a predicate over its columns."""

    def __init__(self, chance: Random, schema: Schema) -> None:
        self._chance = chance
        self._query = PlainQueries(chance, schema).draw()
        self.ordered_by = self._query.ordered_by
        columns = tuple(Visible(f"c{at}", kind) for at, kind in enumerate(self._query.kinds, 1))
        self._names = ", ".join(column.text for column in columns)
        self.predicate = PlainExpressions(chance).condition(Scope(columns), chance.randint(0, 2))

    async def has_wrong_predicate(self, ways: Ways) -> bool:
        """Whether the predicate is refused whatever it stands beside: that is for the oracle to
        find. Another one is taken from then on."""
        nulls = ", ".join(f"NULL::{cast_name(kind)}" for kind in self._query.kinds)
        text = f"SELECT * FROM (SELECT {nulls}) AS d({self._names}) WHERE {self.predicate}"
        answer = await ways.ordinary([text])
        if answer.error is None or not answer.error.startswith("42"):
            return False
        self.predicate = "c1 IS NOT NULL"
        return True

    def literals(self, at: int) -> tuple[str, str, str]:
        """Query and conditions, as they are at first, then with other literals."""
        text, inside = self._query.text, self._query.inside
        if at == 0:
            return text, self.predicate, inside
        seed = self._chance.random()
        if inside:  # the same literals wherever it stands
            text = text.replace(f"({inside})", "(\0)")
            inside = varied(Random(seed), inside)
        text = varied(self._chance, text).replace("(\0)", f"({inside})")
        return text, varied(self._chance, self.predicate), inside

    def questions(
        self, ways: list[str], focus: Sequence[tuple[str, str]]
    ) -> list[tuple[str, str, int]]:
        """Relations and ways: one of them, or both at once."""
        chance, names = self._chance, list(RELATIONS)
        if focus:
            return [(relation, way, chance.randrange(60)) for relation, way in focus]
        made = []
        for _ in range(QUESTIONS_OF_SHAPE):
            lot = chance.random()
            way = ORDINARY if lot < 0.3 else chance.choice(ways)
            relation = SAME if lot > 0.7 else chance.choice(names)
            made.append((relation, way, chance.randrange(60)))
        if self._query.inside:
            way = ORDINARY if chance.random() < 0.5 else chance.choice(ways)
            made[-1] = ("condition within", way, 0)
        if AGAIN in self._query.text:
            made[-1] = ("subquery again for each row", ORDINARY, 0)
        if MEMBER.search(self._query.text):
            made[-1] = ("membership spelled out", ORDINARY, 0)
        if LEFT_JOIN.fullmatch(self._query.text):
            made[-1] = ("left join taken apart", ORDINARY, 0)
        return made


def with_indexes(table: Table) -> Table:
    """The table with an index on its column `a`, which has NULLs and small numbers, and one on
    `a` and another column that may be NULL."""
    name, indexes = table.name, [*table.indexes]
    indexes.append(f"CREATE INDEX {name}_by_a ON {name} (a)")
    others = [c for c in table.writable[2:] if c.nullable and c.kind in EXTREMES]
    indexes += [f"CREATE INDEX {name}_by_two ON {name} (a, {c.name})" for c in others[:1]]
    return replace(table, indexes=tuple(indexes))


def split(schema: Schema) -> tuple[list[str], list[str]]:
    """The definitions of a schema, and the statements that make its rows."""
    statements = schema.statements()
    return (
        [sql for sql in statements if not sql.startswith("INSERT")],
        [sql for sql in statements if sql.startswith("INSERT")],
    )
