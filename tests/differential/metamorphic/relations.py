"""How the answers of other texts follow from the rows of a query.

A relation makes texts of a query and says what must be true of their answers, given the query's
own rows. Most wrap the query: in a common table, a view, a derived table, LATERAL, a new table,
EXISTS, IN. The others take it apart: by a predicate (a row is in exactly one of p, NOT p and
p IS NULL), by LIMIT, by groups.

Columns of a wrapped query are called c1, c2, … so that no two have the same name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from qserver.values.types import Kind, SqlType
from tests.differential.metamorphic.answers import Row, counted, in_order, same_rows
from tests.differential.metamorphic.plain import AGAIN, LEFT_JOIN, MEMBER, PART


@dataclass(frozen=True, slots=True)
class Subject:
    """A query and its rows, with what relations need to speak about them."""

    text: str
    types: tuple[SqlType, ...]
    rows: Sequence[Row]
    predicate: str
    """A boolean expression over c1, c2, …"""
    number: int
    """Drawn by lot: how many rows a LIMIT takes, which column is looked at."""
    inside: str = ""
    """A condition that can be put for the PART of the text, if it has one; the last column of each
    row tells whether it holds there."""

    @property
    def names(self) -> str:
        return ", ".join(f"c{at}" for at in range(1, len(self.types) + 1))

    @property
    def derived(self) -> str:
        return f"({self.text}) AS d({self.names})"

    @property
    def column(self) -> int:
        """The position of some column."""
        return self.number % len(self.types)

    @property
    def column_name(self) -> str:
        return f"c{self.column + 1}"

    @property
    def column_values(self) -> list[object]:
        return [row[self.column] for row in self.rows]


Script: TypeAlias = Sequence[str]
"""Statements of one transaction, the last of which is a query."""


@dataclass(frozen=True, slots=True)
class Relation:
    """`scripts` are run one by one; `holds` gets their rows."""

    scripts: Callable[[Subject], Sequence[Script]]
    holds: Callable[[Subject, Sequence[Sequence[Row]]], bool]
    compares: bool = False
    """Does it compare the values of all columns? JSON has no equality."""
    defines: bool = False
    """Does it define something? That is dear, so it is done for one of several queries."""
    extremes: bool = False
    """Does it want the least and the greatest of a column?"""
    inside: bool = False
    """Does it divide the query by the condition `inside`?"""
    again: bool = False
    """Does it make a subquery volatile, so that no answer of it is remembered?"""
    member: bool = False
    """Does it say in other words what IN, ANY or ALL mean?"""
    left_join: bool = False
    """Is it about a left join of two tables?"""

    def fits(self, subject: Subject) -> bool:
        if self.inside and not subject.inside:
            return False
        if self.again and AGAIN not in subject.text:
            return False
        if self.left_join and LEFT_JOIN.fullmatch(subject.text) is None:
            return False
        if self.member and MEMBER.search(subject.text) is None:
            return False
        if self.extremes and subject.types[subject.column].kind in _NO_EXTREMES:
            return False
        return not self.compares or not any(each.kind in _NOT_COMPARED for each in subject.types)


_NOT_COMPARED: Final = (Kind.JSON, Kind.UNKNOWN, Kind.VOID)
_NO_EXTREMES: Final = (Kind.BOOLEAN, Kind.UUID, Kind.JSONB, Kind.BYTEA, Kind.RECORD)


def _one(*statements: str) -> Sequence[Script]:
    return (statements,)


def _times(count: int) -> Callable[[Subject, Sequence[Sequence[Row]]], bool]:
    """Every row of the query so many times."""

    def holds(subject: Subject, answers: Sequence[Sequence[Row]]) -> bool:
        return same_rows(list(subject.rows) * count, answers[0])

    return holds


def _together(subject: Subject, answers: Sequence[Sequence[Row]]) -> bool:
    """All answers put together are the rows of the query."""
    return same_rows(subject.rows, [row for rows in answers for row in rows])


def _value(expected: Callable[[Subject], object]) -> Callable[..., bool]:
    """The answer is one row with one value."""

    def holds(subject: Subject, answers: Sequence[Sequence[Row]]) -> bool:
        return list(answers[0]) == [(expected(subject),)]

    return holds


def _parts(subject: Subject) -> tuple[str, str, str]:
    return _parts_by(subject.predicate)


def _parts_by(condition: str) -> tuple[str, str, str]:
    """A row satisfies exactly one of them."""
    return f"({condition})", f"(NOT ({condition}))", f"(({condition}) IS NULL)"


# --- wrapped -------------------------------------------------------------------------------------

_WRAPPED: Final[Mapping[str, Relation]] = {
    "as it is": Relation(lambda q: _one(q.text), _times(1)),
    "derived table": Relation(lambda q: _one(f"SELECT * FROM {q.derived}"), _times(1)),
    "common table": Relation(
        lambda q: _one(f"WITH q({q.names}) AS ({q.text}) SELECT * FROM q"), _times(1)
    ),
    "materialized common table": Relation(
        lambda q: _one(f"WITH q({q.names}) AS MATERIALIZED ({q.text}) SELECT * FROM q"), _times(1)
    ),
    "common table that is not materialized": Relation(
        lambda q: _one(f"WITH q({q.names}) AS NOT MATERIALIZED ({q.text}) SELECT * FROM q"),
        _times(1),
    ),
    "common table within a common table": Relation(
        lambda q: _one(
            f"WITH o AS (WITH q({q.names}) AS ({q.text}) SELECT * FROM q) SELECT * FROM o"
        ),
        _times(1),
    ),
    "common table read twice": Relation(
        lambda q: _one(
            f"WITH q({q.names}) AS ({q.text}) SELECT * FROM q UNION ALL SELECT * FROM q"
        ),
        _times(2),
    ),
    "common table that is counted beside": Relation(
        lambda q: _one(
            f"WITH q({q.names}) AS ({q.text})"
            f" SELECT * FROM q WHERE (SELECT count(*) FROM q) = {len(q.rows)}"
        ),
        _times(1),
    ),
    "recursive common table": Relation(
        lambda q: _one(
            f"WITH RECURSIVE q({q.names}) AS (SELECT * FROM {q.derived}"
            " UNION ALL SELECT * FROM q WHERE false) SELECT * FROM q"
        ),
        _times(1),
    ),
    "view": Relation(
        lambda q: _one(f"CREATE VIEW seen({q.names}) AS {q.text}", "SELECT * FROM seen"),
        _times(1),
        defines=True,
    ),
    "new table": Relation(
        lambda q: _one(f"CREATE TABLE made({q.names}) AS {q.text}", "SELECT * FROM made"),
        _times(1),
        defines=True,
    ),
    "lateral": Relation(
        lambda q: _one(f"SELECT d.* FROM (VALUES (1), (2)) AS o(x), LATERAL {q.derived}"), _times(2)
    ),
    "lateral of a left join": Relation(
        lambda q: _one(
            f"SELECT d.* FROM (VALUES (1)) AS o(x) LEFT JOIN LATERAL {q.derived} ON true"
        ),
        lambda q, answers: same_rows(q.rows or [(None,) * len(q.types)], answers[0]),
    ),
    "left of an empty left join": Relation(
        lambda q: _one(
            f"SELECT d.* FROM {q.derived} LEFT JOIN (SELECT 1 AS one WHERE false) AS n ON true"
        ),
        _times(1),
    ),
    "right of a right join": Relation(
        lambda q: _one(
            f"SELECT d.* FROM (SELECT 1 AS one WHERE false) AS n RIGHT JOIN {q.derived} ON true"
        ),
        _times(1),
    ),
    "full join": Relation(
        lambda q: _one(f"SELECT d.* FROM {q.derived} FULL JOIN (VALUES (1)) AS n(x) ON false"),
        lambda q, answers: same_rows([*q.rows, (None,) * len(q.types)], answers[0]),
    ),
    "numbered by a window": Relation(
        lambda q: _one(
            f"SELECT {q.names} FROM (SELECT d.*, row_number() OVER () AS n FROM {q.derived}) AS w"
            " WHERE n > 0"
        ),
        _times(1),
    ),
    "exists": Relation(lambda q: _one(f"SELECT EXISTS ({q.text})"), _value(lambda q: bool(q.rows))),
    "not exists": Relation(
        lambda q: _one(f"SELECT count(*) FROM (VALUES (1)) AS o(x) WHERE NOT EXISTS ({q.text})"),
        _value(lambda q: int(not q.rows)),
    ),
    "counted": Relation(
        lambda q: _one(f"SELECT count(*) FROM {q.derived}"), _value(lambda q: len(q.rows))
    ),
    "array": Relation(
        lambda q: _one(f"SELECT cardinality(ARRAY(SELECT 1 FROM {q.derived}))"),
        _value(lambda q: len(q.rows)),
    ),
    "union all with itself": Relation(
        lambda q: _one(f"({q.text}) UNION ALL ({q.text})"), _times(2)
    ),
}

# --- compared with itself ------------------------------------------------------------------------


def _distinct(subject: Subject, answers: Sequence[Sequence[Row]]) -> bool:
    return same_rows(list(_representatives(subject.rows)), answers[0])


def _representatives(rows: Sequence[Row]) -> list[Row]:
    found: dict[Row, Row] = {}
    for row, comparable in zip(rows, in_order(rows), strict=True):
        found.setdefault(comparable, row)
    return list(found.values())


def _with_value(subject: Subject, answers: Sequence[Sequence[Row]]) -> bool:
    """The rows whose column is not NULL."""
    kept = [row for row in subject.rows if row[subject.column] is not None]
    return same_rows(kept, answers[0])


def _without_value(subject: Subject, answers: Sequence[Sequence[Row]]) -> bool:
    kept = [row for row in subject.rows if row[subject.column] is None]
    return same_rows(kept, answers[0])


def _never(subject: Subject, answers: Sequence[Sequence[Row]]) -> bool:
    return not answers[0]


def _self(head: str, condition: str) -> Callable[[Subject], Sequence[Script]]:
    """The query beside itself: `d` and `e`, tied by a column."""

    def scripts(q: Subject) -> Sequence[Script]:
        other = f"({q.text}) AS e({q.names})"
        filled = condition.format(c=q.column_name, other=other)
        return _one(f"{head.format(names=q.names)} FROM {q.derived} WHERE {filled}")

    return scripts


_COMPARED: Final[Mapping[str, Relation]] = {
    "distinct": Relation(
        lambda q: _one(f"SELECT DISTINCT * FROM {q.derived}"), _distinct, compares=True
    ),
    "grouped by all": Relation(
        lambda q: _one(f"SELECT {q.names} FROM {q.derived} GROUP BY {q.names}"),
        _distinct,
        compares=True,
    ),
    "union with itself": Relation(
        lambda q: _one(f"({q.text}) UNION ({q.text})"), _distinct, compares=True
    ),
    "intersect with itself": Relation(
        lambda q: _one(f"({q.text}) INTERSECT ({q.text})"), _distinct, compares=True
    ),
    "intersect all with itself": Relation(
        lambda q: _one(f"({q.text}) INTERSECT ALL ({q.text})"), _times(1), compares=True
    ),
    "except itself": Relation(
        lambda q: _one(f"({q.text}) EXCEPT ({q.text})"), _never, compares=True
    ),
    "except all itself": Relation(
        lambda q: _one(f"({q.text}) EXCEPT ALL ({q.text})"), _never, compares=True
    ),
    "doubled, except all itself": Relation(
        lambda q: _one(f"(({q.text}) UNION ALL ({q.text})) EXCEPT ALL ({q.text})"),
        _times(1),
        compares=True,
    ),
    "in itself": Relation(
        _self("SELECT *", "{c} IN (SELECT {c} FROM {other})"), _with_value, compares=True
    ),
    "in itself, correlated": Relation(
        _self("SELECT *", "{c} IN (SELECT e.{c} FROM {other} WHERE e.{c} = d.{c})"),
        _with_value,
        compares=True,
    ),
    "not in itself": Relation(
        _self("SELECT *", "{c} NOT IN (SELECT {c} FROM {other})"), _never, compares=True
    ),
    "different from all of itself": Relation(
        _self("SELECT *", "{c} <> ALL (SELECT {c} FROM {other})"), _never, compares=True
    ),
    "equal to any of itself": Relation(
        _self("SELECT *", "{c} = ANY (SELECT {c} FROM {other})"), _with_value, compares=True
    ),
    "semi-join with itself": Relation(
        _self("SELECT *", "EXISTS (SELECT 1 FROM {other} WHERE e.{c} = d.{c})"),
        _with_value,
        compares=True,
    ),
    "anti-join with itself": Relation(
        _self("SELECT *", "NOT EXISTS (SELECT 1 FROM {other} WHERE e.{c} = d.{c})"),
        _without_value,
        compares=True,
    ),
    "groups": Relation(
        lambda q: _one(
            f"SELECT {q.column_name}, count(*) FROM {q.derived} GROUP BY {q.column_name}"
        ),
        lambda q, answers: (
            {row[:1]: row[1] for row in in_order(answers[0])}
            == dict(counted((value,) for value in q.column_values))
        ),
        compares=True,
    ),
}

# --- taken apart ---------------------------------------------------------------------------------


def _partition(template: str) -> Callable[[Subject], Sequence[Script]]:
    """One script for each part; in the template {part} is its condition."""

    def scripts(q: Subject) -> Sequence[Script]:
        return [
            (
                template.format(
                    derived=q.derived, part=part, names=q.names, c=q.column_name, text=q.text
                ),
            )
            for part in _parts(q)
        ]

    return scripts


def _is_divided(whole: Sequence[Row], parts: Sequence[Sequence[Row]]) -> bool:
    """Each part holds the rows whose last column, the value of the condition, says so."""
    return all(
        same_rows([row for row in whole if row[-1] is value], part)
        for value, part in zip((True, False, None), parts, strict=True)
    )


def _distinct_parts(subject: Subject, answers: Sequence[Sequence[Row]]) -> bool:
    """DISTINCT of each part: equal rows fall into the same part, unless the predicate tells apart
    what is equal (1.0 and 1.00), so their union is looked at."""
    together = [row for rows in answers for row in rows]
    return set(in_order(_representatives(together))) == set(in_order(subject.rows))


def _aggregates_of_parts(subject: Subject, answers: Sequence[Sequence[Row]]) -> bool:
    """count, min and max of a column: those of the parts make those of the whole."""
    whole, *parts = [rows[0] for rows in answers]
    values = [value for value in subject.column_values if value is not None]
    least = in_order([(part[2],) for part in parts if part[2] is not None])
    greatest = in_order([(part[3],) for part in parts if part[3] is not None])
    return (
        whole[0] == sum(part[0] for part in parts) == len(subject.rows)
        and whole[1] == sum(part[1] for part in parts) == len(values)
        and in_order([(whole[2],)]) == ([min(least)] if least else in_order([(None,)]))
        and in_order([(whole[3],)]) == ([max(greatest)] if greatest else in_order([(None,)]))
    )


def _aggregate_scripts(q: Subject) -> Sequence[Script]:
    c = q.column_name
    head = f"SELECT count(*), count({c}), min({c}), max({c}) FROM {q.derived}"
    return [(head,), *((f"{head} WHERE {part}",) for part in _parts(q))]


def _no_rec(q: Subject) -> Sequence[Script]:
    p = q.predicate
    return (
        (f"SELECT count(*) FROM {q.derived} WHERE {p}",),
        (f"SELECT coalesce(sum(CASE WHEN {p} THEN 1 ELSE 0 END), 0) FROM {q.derived}",),
        (f"SELECT count(*) FILTER (WHERE {p}) FROM {q.derived}",),
    )


def _all_equal(subject: Subject, answers: Sequence[Sequence[Row]]) -> bool:
    return all(list(rows) == list(answers[0]) for rows in answers)


def _prefix(q: Subject) -> Sequence[Script]:
    order = ", ".join(str(at) for at in range(1, len(q.types) + 1))  # NULLs come last
    sorted_query = f"SELECT * FROM {q.derived} ORDER BY {order}"
    first, count = q.number % 3, q.number % 5
    return (
        (sorted_query,),
        (f"{sorted_query} LIMIT {count} OFFSET {first}",),
        (f"SELECT * FROM {q.derived} LIMIT {count}",),
    )


def _is_prefix(subject: Subject, answers: Sequence[Sequence[Row]]) -> bool:
    """In a total order LIMIT cuts; without one it takes some of the rows."""
    everything, cut, some = map(in_order, answers)
    first, count = subject.number % 3, subject.number % 5
    return (
        everything == sorted(everything)
        and cut == everything[first : first + count]
        and len(some) == min(count, len(subject.rows))
        and same_rows(subject.rows, answers[0])
        and not counted(answers[2]) - counted(subject.rows)
    )


def _spelled_out(found: re.Match[str]) -> str:
    """IN, ANY and ALL by EXISTS alone: is it true of a row, or unknown of one, or of none?"""
    word, rest = found["word"].split(), f"(SELECT 1 FROM {found['rest']} AND ({{}})"
    sign = {"IN": "=", "NOT": "<>"}.get(word[0], word[0])
    every = word[-1] == "ALL" or word == ["NOT", "IN"]
    pairs = zip(found["left"].split(", "), found["right"].split(", "), strict=True)
    same = (" OR " if sign == "<>" else " AND ").join(f"{x} {sign} {y}" for x, y in pairs)
    decisive = f"NOT ({same})" if every else same
    return (
        f"CASE WHEN EXISTS {rest.format(decisive)}) THEN {str(not every).lower()}"
        f" WHEN EXISTS {rest.format(f'({same}) IS NULL')}) THEN NULL"
        f" ELSE {str(every).lower()} END"
    )


def _left_join_parts(q: Subject) -> Sequence[Script]:
    """Rows that have partners, and those that have none."""
    partners = r"(SELECT 1 FROM \g<other> WHERE \g<on>)"
    alone = rf"SELECT \g<left> AS v0, NULL FROM \g<one> WHERE NOT EXISTS {partners}"
    return (q.text.replace("LEFT JOIN", "JOIN"),), (LEFT_JOIN.sub(alone, q.text),)


_TAKEN_APART: Final[Mapping[str, Relation]] = {
    "partitioned": Relation(_partition("SELECT * FROM {derived} WHERE {part}"), _together),
    "partitioned common table": Relation(
        _partition("WITH q({names}) AS ({text}) SELECT * FROM q WHERE {part}"), _together
    ),
    "partitioned by CASE": Relation(
        _partition("SELECT * FROM {derived} WHERE CASE WHEN {part} THEN true ELSE false END"),
        _together,
    ),
    "partitioned by HAVING": Relation(
        _partition("SELECT {names} FROM {derived} GROUP BY {names} HAVING {part}"),
        _distinct_parts,
        compares=True,
    ),
    "partitioned DISTINCT": Relation(
        _partition("SELECT DISTINCT {names} FROM {derived} WHERE {part}"),
        _distinct_parts,
        compares=True,
    ),
    "condition beside its rows": Relation(
        lambda q: [
            (f"SELECT *, ({q.predicate}) FROM {q.derived}",),
            *((f"SELECT *, ({q.predicate}) FROM {q.derived} WHERE {part}",) for part in _parts(q)),
        ],
        lambda q, answers: _is_divided(answers[0], answers[1:]),
    ),
    "condition within": Relation(
        lambda q: [(q.text.replace(PART, part),) for part in _parts_by(q.inside)],
        lambda q, answers: _is_divided(q.rows, answers),
        inside=True,
    ),
    "aggregates of parts": Relation(
        _aggregate_scripts, _aggregates_of_parts, compares=True, extremes=True
    ),
    "condition counted in three ways": Relation(_no_rec, _all_equal),
    "subquery again for each row": Relation(
        lambda q: _one(q.text.replace(AGAIN, "random() >= 0")), _times(1), again=True
    ),
    "membership spelled out": Relation(
        lambda q: _one(MEMBER.sub(_spelled_out, q.text)), _times(1), member=True
    ),
    "left join taken apart": Relation(_left_join_parts, _together, left_join=True),
    "first rows": Relation(_prefix, _is_prefix, compares=True),
}

RELATIONS: Final[Mapping[str, Relation]] = {**_WRAPPED, **_COMPARED, **_TAKEN_APART}
