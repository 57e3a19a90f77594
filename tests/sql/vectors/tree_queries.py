"""Random queries that vector trees compute: joins, nested groups and subqueries of three tables."""

from __future__ import annotations

from random import Random

from tests.sql.vectors.join_queries import JoinWriter

KEYS = (
    *("t.i4 = u.i4", "t.i2 = u.i2", "t.i8 = u.i8", "t.n2 = u.n2", "t.da = u.da", "t.tx = u.tx"),
    *("t.vc = u.vc", "t.bo = u.bo", "t.i4 = u.i8", "t.i4 = u.n2", "t.n2 = u.n9", "t.id = u.id"),
    *("t.i4 % 3 = u.i4 % 3", "t.i4 + 1 = u.i4", "t.ts = u.ts", "left(t.vc, 1) = u.vc"),
)


class TreeWriter(JoinWriter):
    def __init__(self, chance: Random) -> None:
        super().__init__(chance)
        self.extremes = chance.choice((0.0, 0.0, 0.01, 0.3))

    def tree(self) -> str:
        self.parameters = []
        return self.bound(self.chance.choice(_SHAPES)(self))

    def tied(self, one: str = "t", other: str = "u") -> str:
        keys = self.chance.sample(KEYS, self.chance.choice((1, 1, 2)))
        return (
            " AND ".join(keys)
            .replace("t.", "\0")
            .replace("u.", f"{other}.")
            .replace("\0", f"{one}.")
        )

    def where(self, sides: str, word: str = "WHERE", share: float = 0.6) -> str:
        return self._maybe(share, word, sides)

    def sums(self, sides: str) -> str:
        calls = [self.a_call(sides) for _ in range(self.chance.randint(1, 3))]
        return ", ".join(calls)

    def a_call(self, sides: str) -> str:
        side, choice = self.chance.choice(sides), self.chance.choice
        number = f"{side}.{choice(('i2', 'i4', 'i8', 'n2', 'n9'))}"
        call = choice(
            (
                *(
                    "count(*)",
                    f"count({side}.tx)",
                    f"count(DISTINCT {side}.{choice(('i2', 'tx'))})",
                ),
                *(f"sum({number})", f"avg({number})", f"min({number})", f"max({side}.da)"),
                f"sum(CASE WHEN {side}.i2 > 1 THEN {side}.n2 * 1.5 ELSE 0 END)",
                f"sum({side}.n2 * (1 - {side}.i2))",
            )
        )
        if self.chance.random() < 0.15:
            call += f" FILTER (WHERE {self._qualified(self.condition(1), sides)})"
        return call

    def keys(self, sides: str) -> str:
        names = ("i2", "i4", "n2", "bo", "da", "tx", "vc", "ts")
        chosen = [f"{self.chance.choice(sides)}.{self.chance.choice(names)}" for _ in range(3)]
        return ", ".join(dict.fromkeys(chosen[: self.chance.choice((1, 1, 2, 3))]))


def _grouped(writer: TreeWriter) -> str:
    keys, kind = writer.keys("tu"), writer.chance.choice(("JOIN", "JOIN", "LEFT JOIN"))
    having = writer.chance.choice(("", " HAVING count(*) > 1", " HAVING sum(t.i4) > avg(t.i4)"))
    source = f"t {kind} u ON {writer.tied()}{writer.where('tu')}"
    return f"SELECT {keys}, {writer.sums('tu')} FROM {source} GROUP BY {keys}{having}"


def _total(writer: TreeWriter) -> str:
    third = f"u.id = w.{writer.chance.choice(('id', 'i4'))}"
    source = f"t JOIN u ON {writer.tied()} JOIN w ON {third}{writer.where('tuw')}"
    return f"SELECT {writer.sums('tuw')} FROM {source}"


def _members(writer: TreeWriter) -> str:
    column = writer.chance.choice(("i2", "i4", "n2", "tx", "da", "id"))
    word = writer.chance.choice(("IN", "NOT IN", "NOT IN"))
    inner = f"SELECT u.{column} FROM u{writer.where('u', share=0.8)}"
    select = writer.chance.choice(("t.id, t.tx, t.n2", writer.sums("t")))
    return f"SELECT {select} FROM t WHERE t.{column} {word} ({inner}){writer.where('t', 'AND')}"


def _exists(writer: TreeWriter) -> str:
    word = writer.chance.choice(("EXISTS", "NOT EXISTS"))
    more = writer.chance.choice(("", " AND u.i4 <> t.i4", " AND u.i2 > t.i2", " AND u.tx <> t.tx"))
    inner = f"SELECT 1 FROM u WHERE {writer.tied()}{more}{writer.where('u', 'AND')}"
    joined = writer.chance.choice(("t", "t JOIN w ON t.i4 = w.i4"))
    return f"SELECT t.tx, {writer.sums('t')} FROM {joined} WHERE {word} ({inner}) GROUP BY t.tx"


def _correlated(writer: TreeWriter) -> str:
    call = writer.chance.choice(
        ("avg(u.n2)", "sum(u.i4)", "0.5 * sum(u.n2)", "min(u.i2)", "max(u.n2)")
    )
    sign = writer.chance.choice(("<", ">", "=", ">="))
    inner = f"SELECT {call} FROM u WHERE {writer.tied()}{writer.where('u', 'AND', 0.4)}"
    number = writer.chance.choice(("t.n2", "t.i4", "t.i2 * 2"))
    condition = f"{number} {sign} ({inner})"
    if writer.chance.random() < 0.3:
        condition = f"({condition} OR t.i2 IS NULL)"
    select = writer.chance.choice(("t.id", "count(*), sum(t.n2)"))
    return f"SELECT {select} FROM t WHERE {condition}{writer.where('t', 'AND', 0.4)}"


def _scalar(writer: TreeWriter) -> str:
    inner = f"SELECT avg(u.n2) FROM u{writer.where('u')}"
    source = f"t JOIN w ON t.i4 = w.i4 WHERE t.n2 > ({inner})"
    return f"SELECT t.i2, {writer.sums('tw')} FROM {source} GROUP BY t.i2"


def _nested(writer: TreeWriter) -> str:
    inner = (
        f"SELECT t.i4 AS k, count(u.id) AS n, sum(u.n2) AS s FROM t LEFT JOIN u ON {writer.tied()}"
    )
    return f"SELECT n, count(*), sum(s), min(k) FROM ({inner} GROUP BY t.i4) x GROUP BY n"


def _joined_groups(writer: TreeWriter) -> str:
    """Rows with averages and sums of groups: each keeps its digits after the point."""
    inner = f"SELECT u.i4 AS k, avg(u.n2) AS a, sum(u.i8) AS s FROM u{writer.where('u')}"
    kind = writer.chance.choice(("JOIN", "LEFT JOIN"))
    condition = writer.chance.choice(("x.a > t.n2 OR x.a IS NULL", "x.s <> t.i4 OR x.s IS NULL"))
    source = f"t {kind} ({inner} GROUP BY u.i4) x ON t.i4 = x.k"
    return f"SELECT t.id, x.a, x.s FROM {source} WHERE {condition}"


def _rows(writer: TreeWriter) -> str:
    """Rows of several tables, whose joins row code orders otherwise."""
    kind = writer.chance.choice(("JOIN", "LEFT JOIN"))
    source = f"w JOIN t ON t.i4 = w.i4 {kind} u ON {writer.tied()}{writer.where('tuw')}"
    return f"SELECT u.tx, t.id, w.n2, u.id, t.da FROM {source} ORDER BY 2, 4, 3"


_SHAPES = (
    *(_rows, _grouped, _grouped, _total, _members, _exists, _correlated, _scalar, _nested),
    _joined_groups,
)
