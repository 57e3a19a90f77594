"""Random joins of tables with all extremes, for the tests of vectors."""

from __future__ import annotations

import re
from random import Random

from tests.sql.vectors.queries import COLUMNS, TABLE, Writer

TABLES = (TABLE, TABLE.replace("TABLE t", "TABLE u"), TABLE.replace("TABLE t", "TABLE w"))

KEYS = (
    *(f"t.{name} = u.{name}" for name in COLUMNS),
    *("t.i4 = u.i8", "t.i8 = u.i2", "t.i4 = u.n2", "t.n2 = u.i4", "t.n9 = u.n2", "t.n2 = u.n9"),
    *("t.vc = u.tx", "u.vc = t.tx", "t.i4 % 3 = u.i2", "t.i4 + 1 = u.i4", "-t.i8 = u.i8"),
    *("t.id = u.id", "t.i4 = u.id", "t.id = u.i4", "t.da = u.ts", "t.fl = u.i4", "t.i4 = u.i4 + 1"),
)
_COLUMN = re.compile(rf"\b({'|'.join(COLUMNS)})\b")


class JoinWriter(Writer):
    """Writes rows of t, u and w, and queries that join them."""

    def __init__(self, chance: Random) -> None:
        super().__init__(chance)
        self.sides = "tu"

    def rows_of(self, table: str, count: int) -> str:
        return self.rows(0, count).replace("INTO t", f"INTO {table}", 1)

    def _qualified(self, text: str, sides: str = "") -> str:
        """Name a side for each column."""
        return _COLUMN.sub(
            lambda found: f"{self.chance.choice(sides or self.sides)}.{found[1]}", text
        )

    def _on(self) -> str:
        keys = self.chance.sample(KEYS, self.chance.choice((1, 1, 1, 2, 2, 3)))
        return " AND ".join(keys)

    def _maybe(self, share: float, word: str, sides: str) -> str:
        if self.chance.random() >= share:
            return ""
        return f" {word} {self._qualified(self.condition(1), sides)}"

    def _right(self) -> str:
        """A right side: the table, or a query with its columns."""
        return self.chance.choice(
            (
                *("u", "u", "u", "u"),
                f"(SELECT * FROM u WHERE {self.condition(1)}) u",
                "(SELECT * FROM u UNION ALL SELECT * FROM u) u",
                "(SELECT DISTINCT ON (i4) * FROM u ORDER BY i4, id) u",
                "(SELECT u.* FROM u JOIN w USING (id)) u",
                "(SELECT * FROM u WHERE false) u",
            )
        )

    def _from(self) -> str:
        on, condition = self._on(), self._maybe
        match self.chance.randrange(8):
            case 0 | 1:
                where = condition(0.5, "WHERE", "tu")
                return f"t JOIN {self._right()} ON {on}{condition(0.3, 'AND', 'tu')}{where}"
            case 2 | 3:
                where = self.chance.choice((" WHERE u.id IS NULL", condition(0.5, "WHERE", "tu")))
                return f"t LEFT JOIN {self._right()} ON {on}{condition(0.3, 'AND', 'u')}{where}"
            case 4:
                self.sides = "tuw"
                kind = self.chance.choice(("JOIN", "LEFT JOIN"))
                third = self._on().replace("u.", "w.").replace("t.", self.chance.choice("tu") + ".")
                joined = f"t JOIN u ON {on} {kind} w ON {third}"
                return f"{joined}{condition(0.5, 'WHERE', 'tuw')}"
            case 5:
                self.sides = "tuw"
                kind = self.chance.choice(("JOIN", "LEFT JOIN"))
                return f"t {kind} (u JOIN w ON u.id = w.id) ON {on}{condition(0.5, 'WHERE', 't')}"
            case _:
                self.sides = "t"
                word = self.chance.choice(("EXISTS", "NOT EXISTS"))
                inner = f"SELECT 1 FROM {self._right()} WHERE {on}{condition(0.5, 'AND', 'u')}"
                return f"t WHERE {word} ({inner}){condition(0.5, 'AND', 't')}"

    def join(self) -> str:
        """A query that aggregates a join."""
        self.sides = "tu"
        self.parameters = []
        source = self._from()
        calls = self._qualified(", ".join(self.call() for _ in range(self.chance.randint(1, 3))))
        if self.chance.random() < 0.4:
            return self.bound(f"SELECT {calls} FROM {source}")
        keys = self._qualified(", ".join(self.key() for _ in range(self.chance.choice((1, 1, 2)))))
        return self.bound(f"SELECT {keys}, {calls} FROM {source} GROUP BY {keys}")
