"""Questions about a table of more than 20,000 rows, in pages of the usual size.

Tables and queries are those of the differential tests over large tables. They are asked in ways
that read the same rows in the same order, so that sums of doubles must agree, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from tests.differential.expressions import Expressions
from tests.differential.large.queries import LargeQueries
from tests.differential.large.tables import random_table
from tests.differential.metamorphic.answers import OF_OTHER_KEYS
from tests.differential.metamorphic.cases import SAME
from tests.differential.metamorphic.varying import varied
from tests.differential.metamorphic.ways import Ways
from tests.differential.schema import MAKE_ENUM

ROWS: Final = (20_000, 22_000)
"""Ways over replicas whose rows come in another order."""
OWN: Final = ("own writes", "own writes, without rules")
"""Ways that write the rows that they read."""
FAVOURITES: Final = ("again", "bound", "without vectorization", "without scan_hashing")
QUESTIONS: Final = 4


class HugeTable:
    """A table of many rows, and a small one to join it with."""

    def __init__(self, chance: Random) -> None:
        self.tables = (
            random_table(chance, "b0", chance.randint(*ROWS), "int4"),
            random_table(chance, "b2", chance.choice((1, 40, 90)), None),
        )
        texts = [sql for table in self.tables for sql in table.statements()]
        self.definitions = [MAKE_ENUM, *(sql for sql in texts if not sql.startswith("INSERT"))]
        self.rows = [sql for sql in texts if sql.startswith("INSERT")]


class HugeShape:
    """A query over such a table. It has no predicate: its columns have no names of their own."""

    predicate: Final = "true"

    def __init__(self, chance: Random, huge: HugeTable) -> None:
        self._chance = chance
        self._queries = LargeQueries(chance, huge.tables, Expressions(chance))
        step = self._queries.query()
        self._text, self.ordered_by = step.sql, step.ordered_by

    def change(self) -> str:
        return self._queries.change().sql

    async def has_wrong_predicate(self, ways: Ways) -> bool:
        return False

    def literals(self, at: int) -> tuple[str, str, str]:
        """Two queries without a LIMIT, say, may have other literals: then rows may be tied."""
        text = self._text if at == 0 or self.ordered_by else varied(self._chance, self._text)
        return text, self.predicate, ""

    def questions(
        self, ways: list[str], focus: Sequence[tuple[str, str]]
    ) -> list[tuple[str, str, int]]:
        usable = [way for way in ways if way not in OF_OTHER_KEYS and way not in OWN]
        chosen = [self._chance.choice(FAVOURITES), *self._chance.sample(usable, QUESTIONS - 1)]
        return [(SAME, way, 0) for way in chosen]
