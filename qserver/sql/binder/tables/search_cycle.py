"""Rewrites SEARCH and CYCLE of WITH RECURSIVE to ordinary columns.

    search_graph(f, t) AS (start UNION ALL again) CYCLE f, t SET is_cycle USING path

    start   SELECT f, t, false, ARRAY[ROW(f, t)] FROM (start) AS new(f, t)
    again   SELECT f, t, CASE WHEN ROW(f, t) = ANY (old_path) THEN true ELSE false END,
                   old_path || ARRAY[ROW(f, t)]
            FROM (again, with the path of the row it comes from) AS new(f, t, old_path)

SEARCH DEPTH FIRST adds such a path, too, and rows sort by it; BREADTH FIRST adds a number and the
columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qserver.errors import DuplicateColumn, FeatureNotSupported, SqlSyntaxError
from qserver.sql import ast
from qserver.sql.ast import Expression, Name, Row

_NEW = "*new*"  # names that no statement can contain
_OLD = {"search": "*search*", "mark": "*mark*", "path": "*path*"}


def written_out(
    node: ast.CommonTable, body: ast.SetOperation, names: Sequence[str]
) -> ast.SetOperation:
    """Add the columns of SEARCH and CYCLE to the union; `names` are those of its own columns."""
    _check_columns(node, names)
    start = _around(body.left, names, [], _first(node))
    again = _around(_with_old(node, body.right), names, _old_columns(node), _next(node))
    return replace(body, left=start, right=again)


def _check_columns(node: ast.CommonTable, names: Sequence[str]) -> None:
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


def _old_columns(node: ast.CommonTable) -> list[str]:
    found = [] if node.search is None else [_OLD["search"]]
    return found + ([] if node.cycle is None else [_OLD["mark"], _OLD["path"]])


def _around(
    body: ast.QueryBody,
    names: Sequence[str],
    more: Sequence[str],
    added: Sequence[tuple[str, Expression]],
) -> ast.Select:
    """SELECT names, added FROM (body) AS new(names, more)"""
    query = body if isinstance(body, ast.Query) else ast.Query(body, position=body.position)
    source = ast.SubqueryRef(query, _NEW, (*names, *more), position=body.position)
    targets = [ast.Target(_new(name), name) for name in names]
    targets += [ast.Target(expression, name) for name, expression in added]
    return ast.Select(tuple(targets), (source,), position=body.position)


def _first(node: ast.CommonTable) -> list[tuple[str, Expression]]:
    added: list[tuple[str, Expression]] = []
    if node.search is not None:
        row = _row(node.search.columns)
        value = Row((_number(False), *row.items)) if node.search.breadth else _array(row)
        added.append((node.search.name, value))
    if node.cycle is not None:
        _, otherwise = _marks(node.cycle)
        added += [(node.cycle.mark, otherwise), (node.cycle.path, _array(_row(node.cycle.columns)))]
    return added


def _next(node: ast.CommonTable) -> list[tuple[str, Expression]]:
    added: list[tuple[str, Expression]] = []
    if node.search is not None:
        row, old = _row(node.search.columns), _new(_OLD["search"])
        value: Expression = ast.Operator("||", old, _array(row))
        if node.search.breadth:
            deeper = ast.Operator("+", ast.Field(old, "f1"), _number(True))
            value = Row((deeper, *row.items))
        added.append((node.search.name, value))
    if node.cycle is not None:
        row, path = _row(node.cycle.columns), _new(_OLD["path"])
        marked, otherwise = _marks(node.cycle)
        known = ast.Quantified(row, "=", False, path)
        added.append((node.cycle.mark, ast.Case(None, ((known, marked),), otherwise)))
        added.append((node.cycle.path, ast.Operator("||", path, _array(row))))
    return added


def _with_old(node: ast.CommonTable, body: ast.QueryBody) -> ast.QueryBody:
    """Add the old columns to the recursive term; a row that closes a cycle is not followed."""
    if isinstance(body, ast.Query):
        return replace(body, body=_with_old(node, body.body))
    name = _reference(body.sources, node.name) if isinstance(body, ast.Select) else None
    if name is None or not isinstance(body, ast.Select):
        raise FeatureNotSupported(
            "with a SEARCH or CYCLE clause, the recursive reference to WITH query "
            f'"{node.name}" must be at the top level of its right-hand SELECT',
            position=node.position + 1,
        )
    targets = list(body.targets)
    where = body.where
    if node.search is not None:
        targets.append(ast.Target(Name((name, node.search.name)), _OLD["search"]))
    if node.cycle is not None:
        mark = Name((name, node.cycle.mark))
        targets.append(ast.Target(mark, _OLD["mark"]))
        targets.append(ast.Target(Name((name, node.cycle.path)), _OLD["path"]))
        goes_on = ast.Operator("<>", mark, _marks(node.cycle)[0])
        where = goes_on if where is None else ast.Operator("and", where, goes_on)
    return replace(body, targets=tuple(targets), where=where)


def _reference(items: Sequence[ast.FromItem], table: str) -> str | None:
    for item in items:
        if isinstance(item, ast.Join):
            found = _reference((item.left, item.right), table)
            if found is not None:
                return found
        elif isinstance(item, ast.TableRef) and item.name == (table,):
            return item.alias or table
    return None


def _marks(cycle: ast.Cycle) -> tuple[Expression, Expression]:
    marked = ast.Constant(True) if cycle.value is None else cycle.value
    otherwise = ast.Constant(False) if cycle.otherwise is None else cycle.otherwise
    return marked, otherwise


def _new(name: str) -> Name:
    return Name((_NEW, name))


def _row(columns: Sequence[str]) -> Row:
    return Row(tuple([_new(column) for column in columns]))


def _array(row: Row) -> ast.ArrayItems:
    return ast.ArrayItems((row,))


def _number(one: bool) -> Expression:
    """Return 0 or 1, cast from a boolean: all numbers of a statement are literals of its text."""
    return ast.Cast(ast.Cast(ast.Constant(one), ast.TypeName("int4")), _BIGINT)


_BIGINT = ast.TypeName("int8")
