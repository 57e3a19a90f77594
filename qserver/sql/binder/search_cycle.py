"""SEARCH and CYCLE of WITH RECURSIVE, written out as the columns that they stand for.

    search_graph(f, t) AS (start UNION ALL again) CYCLE f, t SET is_cycle USING path

    start   SELECT f, t, false, ARRAY[ROW(f, t)] FROM (start) AS new(f, t)
    again   SELECT f, t, CASE WHEN ROW(f, t) = ANY (old_path) THEN true ELSE false END,
                   old_path || ARRAY[ROW(f, t)]
            FROM (again, with the path of the row it comes from) AS new(f, t, old_path)

SEARCH DEPTH FIRST keeps such a path, too, and rows sort by it; BREADTH FIRST keeps a number and the
columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qserver.errors import DuplicateColumn, FeatureNotSupported, SqlSyntaxError
from qserver.sql import syntax
from qserver.sql.syntax import Expression, Name, Row

_NEW = "*new*"  # names that no statement can have given
_OLD = {"search": "*search*", "mark": "*mark*", "path": "*path*"}


def written_out(
    node: syntax.CommonTable, body: syntax.SetOperation, names: Sequence[str]
) -> syntax.SetOperation:
    """The union with the columns of SEARCH and CYCLE; `names` are those of its own columns."""
    _check_columns(node, names)
    start = _around(body.left, names, [], _first(node))
    again = _around(_with_old(node, body.right), names, _old_columns(node), _next(node))
    return replace(body, left=start, right=again)


def _check_columns(node: syntax.CommonTable, names: Sequence[str]) -> None:
    for clause, word in ((node.search, "search"), (node.cycle, "cycle")):
        columns = () if clause is None else clause.columns
        for column in columns:
            if columns.count(column) > 1:
                raise DuplicateColumn(
                    f'{word} column "{column}" specified more than once',
                    position=node.position + 1,
                    column=column,
                )
            if column not in names:
                raise SqlSyntaxError(
                    f'{word} column "{column}" not in WITH query column list',
                    position=node.position + 1,
                )


def _old_columns(node: syntax.CommonTable) -> list[str]:
    found = [] if node.search is None else [_OLD["search"]]
    return found + ([] if node.cycle is None else [_OLD["mark"], _OLD["path"]])


def _around(
    body: syntax.QueryBody,
    names: Sequence[str],
    more: Sequence[str],
    added: Sequence[tuple[str, Expression]],
) -> syntax.Select:
    """SELECT names, added FROM (body) AS new(names, more)"""
    query = body if isinstance(body, syntax.Query) else syntax.Query(body, position=body.position)
    source = syntax.SubqueryRef(query, _NEW, (*names, *more), position=body.position)
    targets = [syntax.Target(_new(name), name) for name in names]
    targets += [syntax.Target(expression, name) for name, expression in added]
    return syntax.Select(tuple(targets), (source,), position=body.position)


def _first(node: syntax.CommonTable) -> list[tuple[str, Expression]]:
    added: list[tuple[str, Expression]] = []
    if node.search is not None:
        row = _row(node.search.columns)
        value = Row((_number(False), *row.items)) if node.search.breadth else _array(row)
        added.append((node.search.name, value))
    if node.cycle is not None:
        _, otherwise = _marks(node.cycle)
        added += [(node.cycle.mark, otherwise), (node.cycle.path, _array(_row(node.cycle.columns)))]
    return added


def _next(node: syntax.CommonTable) -> list[tuple[str, Expression]]:
    added: list[tuple[str, Expression]] = []
    if node.search is not None:
        row, old = _row(node.search.columns), _new(_OLD["search"])
        value: Expression = syntax.Operator("||", old, _array(row))
        if node.search.breadth:
            deeper = syntax.Operator("+", syntax.Field(old, "f1"), _number(True))
            value = Row((deeper, *row.items))
        added.append((node.search.name, value))
    if node.cycle is not None:
        row, path = _row(node.cycle.columns), _new(_OLD["path"])
        marked, otherwise = _marks(node.cycle)
        known = syntax.Quantified(row, "=", False, path)
        added.append((node.cycle.mark, syntax.Case(None, ((known, marked),), otherwise)))
        added.append((node.cycle.path, syntax.Operator("||", path, _array(row))))
    return added


def _with_old(node: syntax.CommonTable, body: syntax.QueryBody) -> syntax.QueryBody:
    """The recursive term with what its rows come from; a row that closes a cycle leads nowhere."""
    if isinstance(body, syntax.Query):
        return replace(body, body=_with_old(node, body.body))
    name = _reference(body.sources, node.name) if isinstance(body, syntax.Select) else None
    if name is None or not isinstance(body, syntax.Select):
        raise FeatureNotSupported(
            "with a SEARCH or CYCLE clause, the recursive reference to WITH query "
            f'"{node.name}" must be at the top level of its right-hand SELECT',
            position=node.position + 1,
        )
    targets = list(body.targets)
    where = body.where
    if node.search is not None:
        targets.append(syntax.Target(Name((name, node.search.name)), _OLD["search"]))
    if node.cycle is not None:
        mark = Name((name, node.cycle.mark))
        targets.append(syntax.Target(mark, _OLD["mark"]))
        targets.append(syntax.Target(Name((name, node.cycle.path)), _OLD["path"]))
        goes_on = syntax.Operator("<>", mark, _marks(node.cycle)[0])
        where = goes_on if where is None else syntax.Operator("and", where, goes_on)
    return replace(body, targets=tuple(targets), where=where)


def _reference(items: Sequence[syntax.FromItem], table: str) -> str | None:
    """What the common table is called in FROM."""
    for item in items:
        if isinstance(item, syntax.Join):
            found = _reference((item.left, item.right), table)
            if found is not None:
                return found
        elif isinstance(item, syntax.TableRef) and item.name == (table,):
            return item.alias or table
    return None


def _marks(cycle: syntax.Cycle) -> tuple[Expression, Expression]:
    marked = syntax.Constant(True) if cycle.value is None else cycle.value
    otherwise = syntax.Constant(False) if cycle.otherwise is None else cycle.otherwise
    return marked, otherwise


def _new(name: str) -> Name:
    return Name((_NEW, name))


def _row(columns: Sequence[str]) -> Row:
    return Row(tuple([_new(column) for column in columns]))


def _array(row: Row) -> syntax.ArrayItems:
    return syntax.ArrayItems((row,))


def _number(one: bool) -> Expression:
    """0 or 1, from a word: all numbers of a statement are literals of its text."""
    return syntax.Cast(syntax.Cast(syntax.Constant(one), syntax.TypeName("int4")), _BIGINT)


_BIGINT = syntax.TypeName("int8")
