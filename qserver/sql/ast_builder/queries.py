"""Builds queries: SELECT, VALUES, set operations, and their clauses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from qserver.errors import SqlSyntaxError, WrongObjectType
from qserver.sql.ast import (
    CommonTable,
    Cycle,
    Expression,
    Locking,
    OrderItem,
    Query,
    QueryBody,
    Search,
    Select,
    SetOperation,
    Star,
    TableRef,
    Target,
    Values,
)
from qserver.sql.ast_builder.expressions import Children, as_list, as_tuple, parts
from qserver.sql.ast_builder.functions import number
from qserver.sql.ast_builder.long_unions import lowered
from qserver.sql.ast_builder.places import leftmost
from qserver.sql.ast_builder.select_into import Into, SelectInto
from qserver.sql.terminals import Terminal


@dataclass(frozen=True, slots=True)
class Part:
    """A clause after a query: "limit", "offset" or "locking"."""

    name: str
    value: Any
    word: Terminal
    with_ties: bool = False


@dataclass(frozen=True, slots=True)
class With:
    """A WITH clause; its statement begins with it."""

    common_tables: tuple[CommonTable, ...]
    recursive: bool
    position: int


class Queries:
    """Methods for the rules under "queries"."""

    tail = as_list
    targets = value_row = order_by = as_tuple

    def bare_query(self, children: Children) -> Query:
        body, tail = children
        return _query(None, body, tail)

    def query_with(self, children: Children) -> Query:
        with_clause, body, tail = children
        return _query(with_clause, body, tail)

    def union(self, children: Children) -> SetOperation:
        left, word, quantifier, right = children
        every = quantifier is not None and quantifier.type == "ALL"
        return SetOperation(word.value, every, left, right, position=left.position)

    intersection = union

    # --- SELECT -----------------------------------------------------------------------------------

    def select(self, children: Children) -> Select:
        word, distinct, targets, into, sources, where, group_by, having, windows = children
        on, is_distinct = (distinct, True) if isinstance(distinct, tuple) else ((), False)
        group_distinct, groups = group_by or (False, ())
        fields = {
            "sources": sources or (),
            "where": where,
            "group_by": groups,
            "having": having,
            "windows": windows or (),
            "distinct": is_distinct,
            "distinct_on": on,
            "group_by_distinct": group_distinct,
            "position": word.start,
        }
        if into is not None:
            return SelectInto(targets or (), into=into, **fields)
        return Select(targets or (), **fields)

    def distinct(self, children: Children) -> tuple[Expression, ...]:
        return () if len(children) == 1 else children[1]

    def target(self, children: Children) -> Target:
        expression, alias = children if len(children) == 2 else (children[0], None)
        if isinstance(expression, Terminal):
            return Target(Star(position=expression.start), position=expression.start)
        name = None if alias is None else alias.value
        return Target(expression, name, position=leftmost(expression))

    def into(self, children: Children) -> Into:
        temporary, name = children
        is_temporary = temporary is not None and temporary.type == "TEMPORARY"
        into = Into(parts(name), is_temporary, name[0].start)
        name[0].source.selects_into.append(into)
        return into

    # --- VALUES, TABLE ----------------------------------------------------------------------------

    def values(self, children: Children) -> Values:
        word, *rows = children
        if isinstance(rows[-1], Terminal):
            repeated = rows.pop()
            return Values(tuple(rows), True, repeated.value, position=word.start)
        return Values(tuple(rows), position=word.start)

    def table(self, children: Children) -> Select:
        word, name = children
        star = Target(Star(position=word.start), position=word.start)
        source = TableRef(parts(name), position=name[0].start)
        return Select((star,), (source,), position=word.start)

    # --- ORDER BY and the limits ------------------------------------------------------------------

    def order_item(self, children: Children) -> OrderItem:
        expression, direction, nulls_first = children
        descending = direction is not None and direction.value == "desc"
        return OrderItem(expression, descending, nulls_first, position=leftmost(expression))

    def order_item_using(self, children: Children) -> OrderItem:
        expression, operator, nulls_first = children
        if operator.value not in ("<", ">"):
            raise WrongObjectType(
                f"operator {operator.value} is not a valid ordering operator",
                hint='Ordering operators must be "<" or ">" members of btree operator families.',
                position=operator.start + 1,
            )
        descending = operator.value == ">"
        return OrderItem(expression, descending, nulls_first, position=leftmost(expression))

    def nulls(self, children: Children) -> bool:
        return bool(children[1].type == "FIRST")

    def limit(self, children: Children) -> Part:
        word, value = children
        return Part("limit", None if isinstance(value, Terminal) else value, word)

    def offset(self, children: Children) -> Part:
        word, value, _ = children
        return Part("offset", value, word)

    def fetch(self, children: Children) -> Part:
        word, value, _, end = children
        if value is None:
            value = number("1", word.start)
        return Part("limit", value, word, with_ties=end.type == "TIES")

    def locking(self, children: Children) -> Part:
        word, strength, tables, wait = children
        return Part(
            "locking", Locking(strength, tuple(tables or ()), wait, position=word.start), word
        )

    def lock_strength(self, children: Children) -> str:
        return " ".join(parts(children))

    def opt_wait(self, children: Children) -> str:
        return " ".join(word.value for word in children if word is not None)

    # --- WITH -------------------------------------------------------------------------------------

    def with_clause(self, children: Children) -> With:
        word, recursive, *tables = children
        return With(tuple(tables), recursive is not None, word.start)

    def common_table(self, children: Children) -> CommonTable:
        name, columns, materialized, statement, search, cycle = children
        return CommonTable(
            name.value,
            columns or (),
            statement,
            materialized,
            search,
            cycle,
            position=name.start,
        )

    def materialized(self, children: Children) -> bool:
        return children[0] is None

    def search(self, children: Children) -> Search:
        word, kind, columns, name = children
        return Search(kind.type == "BREADTH", columns, name.value, position=word.start)

    def cycle(self, children: Children) -> Cycle:
        word, columns, mark, value, otherwise, path = children
        return Cycle(columns, mark.value, path.value, value, otherwise, position=word.start)


def _query(with_clause: With | None, body: QueryBody, tail: list[Any] | None) -> Query:
    body = lowered(body)
    query = Query(body, position=body.position)
    if with_clause is not None:
        query = Query(
            body,
            common_tables=with_clause.common_tables,
            recursive=with_clause.recursive,
            position=with_clause.position,
        )
    if not tail:
        return query
    fields: dict[str, Any] = {}
    locking: list[Locking] = []
    for part in tail:
        if not isinstance(part, Part):
            fields["order_by"] = part
            continue
        if part.name == "locking":
            locking.append(part.value)
            continue
        if part.name in fields:
            raise _twice(part.name, part.word.start)
        fields[part.name] = part.value
        if part.with_ties:
            fields["with_ties"] = True
    if isinstance(body, Query):
        _check_not_twice(body, fields, tail)
    query = replace(query, **fields, locking=tuple(locking))
    if query.with_ties:
        _check_ties(query)
    return query


def _check_not_twice(inner: Query, outer: dict[str, Any], tail: list[Any]) -> None:
    """Refuse (SELECT … LIMIT 1) LIMIT 2, like PostgreSQL."""
    for name in ("order_by", "limit", "offset"):
        if name in outer and getattr(inner, name):
            words = [part for part in tail if isinstance(part, Part) and part.name == name]
            place = words[0].word.start if words else outer["order_by"][0].position
            raise _twice(name, place)


def _twice(name: str, start: int) -> SqlSyntaxError:
    words = name.replace("_", " ").upper()
    return SqlSyntaxError(f"multiple {words} clauses not allowed", position=start + 1)


def _check_ties(query: Query) -> None:
    if not query.order_by:
        raise SqlSyntaxError("WITH TIES cannot be specified without ORDER BY clause")
    if any(each.wait == "skip locked" for each in query.locking):
        raise SqlSyntaxError("SKIP LOCKED and WITH TIES options cannot be used together")
