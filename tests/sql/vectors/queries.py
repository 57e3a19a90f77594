"""Random rows with all extremes, and random queries over them, for the tests of vectors."""

from __future__ import annotations

import re
from random import Random
from typing import Any

COLUMNS = {
    "i2": "SMALLINT",
    "i4": "INTEGER NOT NULL",
    "i8": "BIGINT",
    "fl": "DOUBLE PRECISION",
    "re": "REAL",
    "n2": "NUMERIC(12, 2)",
    "n9": "NUMERIC(30, 9)",
    "nn": "NUMERIC",
    "bo": "BOOLEAN",
    "da": "DATE",
    "ts": "TIMESTAMP",
    "tz": "TIMESTAMPTZ",
    "tx": "TEXT",
    "vc": "VARCHAR(20) NOT NULL",
}
TABLE = (
    "CREATE TABLE t (id INTEGER PRIMARY KEY, "
    + ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    + ")"
)

_ORDINARY = {
    "i2": ("0", "1", "2", "3", "-1", "7"),
    "i4": ("0", "1", "2", "5", "-3", "10", "12"),
    "i8": ("0", "1", "-1", "1000000007", "-12345678901"),
    "fl": ("0", "0.5", "1.25", "-2.5", "1e10", "0.1", "0.2", "0.3"),
    "re": ("0", "0.5", "1.25", "-2.5", "0.1"),
    "n2": ("0", "1.00", "1.25", "-3.10", "100.99", "0.01"),
    "n9": ("0", "0.000000001", "-1.5", "123456.789"),
    "nn": ("0", "1.0", "1.00", "-2.5", "1e20"),
    "bo": ("TRUE", "FALSE"),
    "da": ("'2020-02-29'", "'1999-12-31'", "'2000-01-01'", "'2020-03-01'"),
    "ts": ("'2020-02-29 12:34:56.789012'", "'1999-12-31'", "'2000-01-01 00:00:01'"),
    "tz": ("'2020-02-29 12:34:56.789012+02'", "'1999-12-31Z'", "'2000-01-01 00:00:01Z'"),
    "tx": ("'a'", "'b'", "'aa'", "''", "'é'", "'😀'", "'Z'"),
    "vc": ("'a'", "'b'", "'x y'", "'ﬀ'"),
}
_EXTREME = {
    "i2": ("32767", "-32768"),
    "i4": ("2147483647", "-2147483648"),
    "i8": ("9223372036854775807", "-9223372036854775808", "9007199254740993"),
    "fl": ("'NaN'", "'Infinity'", "'-Infinity'", "'-0'", "1.7976931348623157e308", "5e-324"),
    "re": ("'NaN'", "'-Infinity'", "'-0'", "3.4e38"),
    "n2": ("'NaN'", "9999999999.99", "-9999999999.99"),
    "n9": ("'NaN'", "999999999999999999999.999999999", "-9223372036.854775808"),
    "nn": ("'NaN'", "1e100", "0.1234567890123456789012345678901234567890"),
    "bo": ("TRUE",),
    "da": ("'0001-01-01'", "'9999-12-31'"),
    "ts": ("'0001-01-01'", "'9999-12-31 23:59:59.999999'"),
    "tz": ("'0001-01-02Z'", "'9999-12-30 23:59:59.999999Z'"),
    "tx": ("repeat('long', 100)", "'\U0010ffff'"),
    "vc": ("'zzzzzzzzzzzzzzzzzzzz'",),
}

INTEGERS = ("i2", "i4", "i8")
GROUPABLE = ("i2", "i4", "n2", "bo", "da", "ts", "tx", "vc")


class Writer:
    """Writes rows and queries. `calm` rows have few extremes, so that many chunks are taken."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.extremes = chance.choice((0.0, 0.02, 0.3))
        self.nulls = chance.choice((0.0, 0.2))
        self.parameters: list[Any] = []
        """Of the query that was written last."""

    def row(self, number: int) -> str:
        return f"({', '.join([str(number), *map(self._value, COLUMNS)])})"

    def _value(self, column: str) -> str:
        if self.chance.random() < self.nulls and "NOT NULL" not in COLUMNS[column]:
            return "NULL"
        pool = _EXTREME if self.chance.random() < self.extremes else _ORDINARY
        return self.chance.choice(pool[column])

    def rows(self, first: int, count: int) -> str:
        return f"INSERT INTO t VALUES {', '.join(self.row(first + at) for at in range(count))}"

    # --- expressions ---

    def number(self, kind: str, depth: int = 2) -> str:
        """An expression of integers, numerics or doubles."""
        choice, number = self.chance.choice, self.number
        if depth == 0 or self.chance.random() < 0.3:
            columns = {"integer": INTEGERS, "numeric": ("n2", "n9"), "double": ("fl",)}[kind]
            literals = {
                "integer": ("0", "1", "2", "10", "-7", "100000"),
                "numeric": ("0.5", "1.00", "10.001", "2"),
                "double": ("0.5::float8", "2::float8", "1e-300::float8"),
            }[kind]
            return choice((*columns, *columns, choice(literals)))
        if self.chance.random() < 0.1:
            one = self.condition(1)
            other = choice(("NULL", number(kind, depth - 1)))
            return f"CASE WHEN {one} THEN {number(kind, depth - 1)} ELSE {other} END"
        if self.chance.random() < 0.1:
            return f"coalesce({number(kind, depth - 1)}, {number(kind, depth - 1)})"
        if self.chance.random() < 0.1:
            return choice((f"(-{number(kind, 0)})", f"abs({number(kind, depth - 1)})"))
        if kind == "double" and self.chance.random() < 0.2:
            return f"({choice((*INTEGERS, 'n2', 'n9'))})::float8"
        if kind == "numeric" and self.chance.random() < 0.2:
            return f"({choice(INTEGERS)})::numeric"
        operators = {"integer": "+-*/%", "numeric": "+-*", "double": "+-*/"}[kind]
        operator = choice(operators)
        if operator == "%":
            return f"({choice(INTEGERS)} % {choice(('2', '3', '10', '-4', 'i2'))})"
        return f"({number(kind, depth - 1)} {operator} {number(kind, depth - 1)})"

    def condition(self, depth: int = 2) -> str:
        choice = self.chance.choice
        if depth and self.chance.random() < 0.4:
            word = choice((" AND ", " OR "))
            joined = word.join(self.condition(depth - 1) for _ in range(2))
            return choice((f"({joined})", f"NOT ({joined})"))
        sign = choice(("=", "<>", "<", "<=", ">", ">="))
        match self.chance.randrange(11):
            case 8:
                return self._membership()
            case 9:
                return self._of_text()
            case 10:
                part = f"extract({choice(('year', 'month', 'day'))} FROM {choice(('da', 'ts'))})"
                moment = choice(_ORDINARY["ts"])
                return choice(
                    (f"{part} {sign} {choice((1, 2020))}", f"da::timestamp {sign} {moment}")
                )
            case 0 | 1:
                kind = choice(("integer", "numeric", "double"))
                return f"{self.number(kind, 1)} {sign} {self.number(kind, 1)}"
            case 2:
                column = choice(tuple(COLUMNS))
                return f"{column} IS {choice(('', 'NOT '))}NULL"
            case 3:
                column = choice(("i2", "i4", "n2", "tx", "da"))
                items = ", ".join(choice(_ORDINARY[column]) for _ in range(3))
                return f"{column} {choice(('', 'NOT '))}IN ({items})"
            case 4:
                column = choice(("i4", "n2", "fl", "da"))
                left, right = (choice(_ORDINARY[column]) for _ in range(2))
                return f"{column} BETWEEN {left} AND {right}"
            case 5:
                one, other = choice(("NULL", "bo", "i2 > 1")), choice(("TRUE", "FALSE", "bo"))
                chosen = f"(CASE WHEN i4 > 2 THEN {one} ELSE {other} END)"
                plain = "bo", "NOT bo", "bo IS TRUE", "bo IS NOT FALSE", "(bo = (i2 > 1))"
                return choice((*plain, chosen, f"NOT {chosen}", f"{chosen} IS TRUE"))
            case 6:
                other = self.number("integer", 1)
                return f"{self.number('integer', 0)} IS {choice(('', 'NOT '))}DISTINCT FROM {other}"
            case _:
                column = choice(tuple(COLUMNS))
                pool = choice((_ORDINARY, _ORDINARY, _EXTREME))
                return f"{column} {sign} {choice(pool[column])}"

    def _of_text(self) -> str:
        """A condition that is computed once for each text."""
        choice = self.chance.choice
        column, pattern = (
            choice(("tx", "vc")),
            choice(("'%a%'", "'a%'", "'_'", "'%'", "''", "NULL")),
        )
        return choice(
            (
                f"{column} {choice(('', 'NOT '))}{choice(('LIKE', 'ILIKE'))} {pattern}",
                f"substring({column} FROM {choice((1, 2, -1))} FOR {choice((1, 3))}) = 'a'",
                f"length({column}) > {choice((1, 2))}",
                f"upper({column}) IN ('A', 'Z', 'É')",
                f"tx {choice(('=', '<>', '<', '>='))} vc",
                f"left({column}, 1) = right({column}, 1)",
            )
        )

    def _membership(self) -> str:
        """A comparison with the elements of an array: written out, as a text, or bound."""
        choice = self.chance.choice
        column = choice(("i2", "i4", "i8", "fl", "re", "n2", "n9", "bo", "da", "ts", "tx", "vc"))
        pool = (*_ORDINARY[column], choice(_EXTREME[column])) if column != "tx" else _ORDINARY["tx"]
        items = [choice(pool) for _ in range(choice((0, 1, 3, 3, 50)))]
        if self.chance.random() < 0.2:
            items.append("NULL")
        kind = COLUMNS[column].removesuffix(" NOT NULL")
        match self.chance.randrange(3):
            case 0:
                array = f"ARRAY[{', '.join(items)}]::{kind}[]"
            case 1:
                texts = ["NULL" if each == "NULL" else f'"{_plain(each)}"' for each in items]
                array = f"'{{{', '.join(texts)}}}'::{kind}[]"
            case _:
                self.parameters.append([None if e == "NULL" else _plain(e) for e in items])
                array = f"${len(self.parameters)}::{kind}[]"
        return f"{column} {choice(('= ANY', '= ANY', '<> ALL', '< ANY', '>= ALL'))} ({array})"

    def call(self) -> str:
        choice = self.chance.choice
        kind = choice(("integer", "numeric", "double"))
        call = choice(
            (
                "count(*)",
                f"count({choice(tuple(COLUMNS))})",
                f"{choice(('sum', 'avg', 'min', 'max'))}({self.number(kind)})",
                f"{choice(('sum', 'avg', 'min', 'max'))}({choice(('re', 'nn', 'n2', 'i8'))})",
                f"{choice(('min', 'max'))}({choice(('da', 'ts', 'tz', 'tx', 'vc'))})",
                f"{choice(('bool_and', 'bool_or', 'every'))}({self.condition(1)})",
            )
        )
        if self.chance.random() < 0.15:
            call += f" FILTER (WHERE {self.condition(1)})"
        return call

    def key(self) -> str:
        choice = self.chance.choice
        computed = (
            f"{choice(('i2', 'i4'))} % 3",
            "i4 / 2",
            "i2 > 1",
            "i2::numeric",
            "coalesce(i2, 9)",
            f"extract({choice(('year', 'month'))} FROM da)",
            f"left({choice(('tx', 'vc'))}, 1)",
        )
        return choice((choice(GROUPABLE), choice(GROUPABLE), *computed))

    def order(self) -> str:
        choice = self.chance.choice
        kind = choice(("integer", "numeric", "double"))
        keys = [choice((choice(tuple(COLUMNS)), self.number(kind, 1)))]
        keys += [choice(tuple(COLUMNS)) for _ in range(self.chance.randrange(2))]
        ways = ("", " DESC", " NULLS FIRST", " DESC NULLS LAST")
        keys = [key + choice(ways) for key in keys]
        offset = choice(("", f" OFFSET {self.chance.randrange(5)}"))
        return f"{', '.join(keys)} LIMIT {choice((0, 1, 2, 3, 5, 30))}{offset}"

    def query(self) -> str:
        self.parameters = []
        return self.bound(self._query())

    def bound(self, text: str) -> str:
        """Number the parameters of a text anew: some were written for parts that were not used."""
        used = dict.fromkeys(re.findall(r"\$(\d+)", text))
        numbers = {old: str(at + 1) for at, old in enumerate(used)}
        self.parameters = [self.parameters[int(old) - 1] for old in used]
        return re.sub(r"\$(\d+)", lambda found: f"${numbers[found[1]]}", text)

    def _query(self) -> str:
        where = f" WHERE {self.condition()}" if self.chance.random() < 0.6 else ""
        match self.chance.randrange(5):
            case 4:
                return f"SELECT id, tx FROM t{where} ORDER BY {self.order()}"
            case 0:
                expression = self.number("integer", 1) if self.chance.random() < 0.3 else "tx"
                return f"SELECT id, {expression} FROM t WHERE {self.condition()}"
            case 1:
                calls = ", ".join(self.call() for _ in range(self.chance.randint(1, 4)))
                return f"SELECT {calls} FROM t{where}"
            case _:
                keys = ", ".join(self.key() for _ in range(self.chance.choice((1, 1, 2, 3))))
                calls = ", ".join(self.call() for _ in range(self.chance.randint(1, 3)))
                return f"SELECT {keys}, {calls} FROM t{where} GROUP BY {keys}"


def _plain(literal: str) -> str:
    """The text of a literal without its quotes."""
    return literal.strip("'")
