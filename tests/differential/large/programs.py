"""A program over large tables, or over tables of small pages: see `tables` and `queries`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import Final

from simulations.sizes import Sizes, sized
from tests.differential.comparison import Step
from tests.differential.expressions import Expressions
from tests.differential.large.queries import LargeQueries
from tests.differential.large.tables import random_table
from tests.differential.programs import Drawn
from tests.differential.schema import MAKE_ENUM

STATEMENTS: Final = 60
"""Of a program, beside those that make its tables."""

CHANGES_SHARE: Final = 0.15
SIZES: Final = ((3_100, 7_000), (3_100, 7_000), (20_000, 24_000))
PAGES: Final = (4, 6)
"""How many entries a small page has at most."""


class LargeProgram:
    """The statements of a seed, as `Program` has them.

    Half of the programs have thousands of rows in pages of the usual size, some of them more than
    20,000, and half have hundreds in small pages.
    """

    def __init__(self, seed: int, statements: int = STATEMENTS) -> None:
        self.seed = seed
        self.statements = statements
        self.random = Random(seed)
        self.small = self.random.random() < 0.5
        self.pages = self.random.choice(PAGES)
        size = (150, 700) if self.small else self.random.choice(SIZES)
        kind = "int4"
        self.tables = (
            random_table(self.random, "b0", self.random.randint(*size), kind),
            random_table(self.random, "b1", self.random.randint(*size) // 2, kind),
            random_table(self.random, "b2", self.random.choice((1, 40, 90)), None),
        )
        self.queries = LargeQueries(self.random, self.tables, Expressions(self.random))

    def bounds(self) -> AbstractContextManager[None]:
        return sized(Sizes(page_entries=self.pages)) if self.small else nullcontext()

    def steps(self) -> Iterator[Drawn]:
        yield Drawn(Step(MAKE_ENUM), "schema")
        for table in self.tables:
            for sql in table.statements():
                yield Drawn(Step(sql), "schema")
        for _ in range(self.statements):
            if self.random.random() < CHANGES_SHARE:
                yield Drawn(self.queries.change(), "change")
            else:
                yield Drawn(self.queries.query(), "query")
