"""A program: a random schema with its rows, then random statements over it, from one seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.differential.changes import Changes
from tests.differential.comparison import Step
from tests.differential.definitions import Definitions, Model
from tests.differential.queries import Queries
from tests.differential.schema import random_schema

STATEMENTS: Final = 50
"""Of a program, beside those that make its schema."""
PROBES_SHARE: Final = 0.25
"""Statements of one function or operator with literals; the other shares are of the rest."""
QUERIES_SHARE: Final = 0.68
CHANGES_SHARE: Final = 0.2


@dataclass(frozen=True, slots=True)
class Drawn:
    """A step, and what is so if PostgreSQL accepts it."""

    step: Step
    sort: str
    then: Callable[[], None] = lambda: None


class Program:
    """The statements of a seed. Each is drawn when the one before has been run."""

    def __init__(self, seed: int, statements: int = STATEMENTS) -> None:
        self.seed = seed
        self.statements = statements
        self.random = Random(seed)
        self.schema = random_schema(self.random)
        self.queries = Queries(self.random, self.schema)
        self.model = Model(self.queries)
        self.changes = Changes(self.random, self.queries)
        self.definitions = Definitions(self.random, self.model)

    def bounds(self) -> AbstractContextManager[None]:
        """The bounds of qserver for this program: its own."""
        return nullcontext()

    def steps(self) -> Iterator[Drawn]:
        for sql in self.schema.statements():
            yield Drawn(Step(sql), "schema")
        for _ in range(self.statements):
            yield from self._some()

    def _some(self) -> Iterator[Drawn]:
        if self.random.random() < PROBES_SHARE:
            sql = f"SELECT {self.queries.expressions.probe()} AS v"
            yield Drawn(Step(sql, strict=True), "probe")
            return
        lot = self.random.random()
        if lot < QUERIES_SHARE:
            query = self.queries.select()
            yield Drawn(Step(query.sql, query.ordered_by), "query")
        elif lot < QUERIES_SHARE + CHANGES_SHARE:
            sql, table = self.changes.change(
                tuple(self.model.tables.values()), tuple(self.model.writable.values())
            )
            yield Drawn(Step(sql), "change")
            if self.random.random() < 0.6:
                yield Drawn(Step(f"TABLE {table.name}"), "look")
        else:
            definition = self.definitions.define()
            yield Drawn(Step(definition.sql), "definition", definition.then)
