"""Builds FROM, GROUP BY and windows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from qserver.errors import FeatureNotSupported, SqlSyntaxError, WindowingError
from qserver.sql.ast import (
    Call,
    Expression,
    Frame,
    FunctionRef,
    GroupingSets,
    Join,
    Query,
    Row,
    RowsFrom,
    SubqueryRef,
    TableRef,
    TableSample,
    TypeName,
    Values,
    Window,
)
from qserver.sql.ast_builder.expressions import Children, as_list, as_tuple, parts
from qserver.sql.terminals import Terminal

Bound = tuple[str, Expression | None]
Alias = tuple[str | None, tuple[str, ...]]
_NO_ALIAS: Alias = (None, ())


class Sources:
    """Methods for the rules under "FROM" and "GROUP BY and windows"."""

    columns_of_record = as_list
    from_ = rows_of_functions = windows = as_tuple

    # --- joins ------------------------------------------------------------------------------------

    def join(self, children: Children) -> Join:
        left, kind, right, (condition, using, alias) = children
        return Join(
            _join_kind(kind),
            left,
            right,
            condition,
            using,
            using_alias=alias,
            position=left.position,
        )

    def natural_join(self, children: Children) -> Join:
        left, _, kind, right = children
        return Join(_join_kind(kind), left, right, natural=True, position=left.position)

    def cross_join(self, children: Children) -> Join:
        left, _, right = children
        return Join("cross", left, right, position=left.position)

    def join_condition(self, children: Children) -> tuple[Expression, tuple[str, ...], None]:
        return children[0], (), None

    def join_using(self, children: Children) -> tuple[None, tuple[str, ...], str | None]:
        columns, alias = children
        return None, columns, None if alias is None else alias.value

    def parenthesized_join(self, children: Children) -> Join:
        join, alias = children
        assert isinstance(join, Join)
        if alias is None:
            return join
        name, columns = alias
        return replace(join, alias=name, column_aliases=columns)

    # --- tables, queries, functions ---------------------------------------------------------------

    def table_reference(self, children: Children) -> TableRef:
        name, given, sample = children
        alias, columns = given or _NO_ALIAS
        return TableRef(parts(name), alias, columns, sample, position=name[0].start)

    def relation(self, children: Children) -> list[Terminal]:
        """Return a name; ONLY and the star are accepted, because there is no inheritance."""
        (name,) = [each for each in children if isinstance(each, list)]
        return name

    def subquery_reference(self, children: Children) -> SubqueryRef:
        lateral, query, given = children
        assert isinstance(query, Query)
        if given is None:
            what = "VALUES" if isinstance(query.body, Values) else "subquery"
            example = "VALUES ..." if what == "VALUES" else "SELECT ..."
            raise SqlSyntaxError(
                f"{what} in FROM must have an alias",
                hint=f"For example, FROM ({example}) [AS] foo.",
                position=query.position + 1,
            )
        alias, columns = given
        return SubqueryRef(query, alias, columns, lateral is not None, position=query.position)

    def function_reference(self, children: Children) -> FunctionRef:
        lateral, call, ordinality, given = children
        if not isinstance(call, Call):
            raise FeatureNotSupported("a cast in FROM is not supported", position=call.position + 1)
        alias, columns, *types = given or _NO_ALIAS
        if ordinality is not None and types:
            raise SqlSyntaxError(
                "WITH ORDINALITY cannot be used with a column definition list",
                hint="Put the column definition list inside ROWS FROM().",
                position=call.position + 1,
            )
        return FunctionRef(
            call,
            alias,
            columns,
            ordinality is not None,
            lateral is not None,
            types[0] if types else (),
            position=call.position,
        )

    def rows_from(self, children: Children) -> FunctionRef | RowsFrom:
        _, word, functions, ordinality, given = children
        alias, columns, *types = given or _NO_ALIAS
        first = functions[0]
        if types and len(functions) > 1:
            raise SqlSyntaxError(
                "ROWS FROM() with multiple functions cannot have a column definition list",
                hint="Put a separate column definition list for each function inside ROWS FROM().",
                position=word.start + 1,
            )
        if len(functions) == 1 and not first.column_types:
            return self.function_reference([None, first.call, ordinality, given])
        return RowsFrom(functions, alias, columns, ordinality is not None, position=word.start)

    def rows_of_function(self, children: Children) -> FunctionRef:
        call, columns = children
        names = [] if columns is None else [each[0] for each in columns]
        types = [] if columns is None else [each[1] for each in columns]
        whole = [None, call, None, (None, tuple(names), tuple(types)) if names else None]
        return self.function_reference(whole)

    def alias(self, children: Children) -> Alias:
        name, columns = children
        return name.value, columns or ()

    def record_alias(self, children: Children) -> tuple[Any, ...]:
        name, *columns = children
        return (
            name.value,
            tuple([each[0] for each in columns]),
            tuple([each[1] for each in columns]),
        )

    def record_alias_bare(self, children: Children) -> tuple[Any, ...]:
        return None, tuple([each[0] for each in children]), tuple([each[1] for each in children])

    def column_of_record(self, children: Children) -> tuple[str, TypeName]:
        name, type_name, _ = children
        return name.value, type_name

    def sample(self, children: Children) -> TableSample:
        word, method, arguments, seed = children
        return TableSample(parts(method), arguments, seed, position=word.start)

    # --- GROUP BY ---------------------------------------------------------------------------------

    def group_by(self, children: Children) -> tuple[bool, tuple[Any, ...]]:
        """Return the groups: (a, b) groups by both; only inside of GROUPING SETS it is a set."""
        quantifier, *items = children
        groups: list[Any] = []
        for item in items:
            groups.extend(_items(item))
        return quantifier is not None and quantifier.type == "DISTINCT", tuple(groups)

    def empty_group(self, children: Children) -> GroupingSets:
        return GroupingSets("sets", ((),), position=children[0].start)

    def rollup(self, children: Children) -> GroupingSets:
        word, items = children
        return GroupingSets(word.value, tuple(map(_group, items)), position=word.start)

    def grouping_sets(self, children: Children) -> GroupingSets:
        word, *items = children
        return GroupingSets("sets", tuple(map(_group, items)), position=word.start)

    # --- windows ----------------------------------------------------------------------------------

    def window_definition(self, children: Children) -> tuple[str, Window]:
        name, window = children
        return name.value, replace(window, position=name.start)

    def window(self, children: Children) -> Window:
        name, partition, order_by, frame = children
        return Window(
            None if name is None else name.value,
            partition or (),
            order_by or (),
            frame,
            position=0 if name is None else name.start,
        )

    def frame(self, children: Children) -> Frame:
        mode, *bounds, exclude = children
        start: Bound = bounds[0]
        end: Bound = bounds[1] if len(bounds) > 1 else ("current row", None)
        _check_frame(start[0], end[0], mode.start)
        return Frame(mode.value, start, end, exclude or "no others", position=mode.start)

    def frame_bound(self, children: Children) -> Bound:
        return ("current row" if len(children) == 1 else " ".join(parts(children))), None

    def frame_offset(self, children: Children) -> Bound:
        expression, side = children
        return side.value, expression

    def exclude(self, children: Children) -> str:
        what = children[1].type if len(children) > 1 else "GROUP"
        return {"CURRENT": "current row", "TIES": "ties", "NO": "no others"}.get(what, "group")


setattr(Sources, "from", Sources.from_)  # the rule's name is a Python keyword


def _join_kind(word: Terminal | None) -> str:
    return "inner" if word is None else word.value


def _items(item: Any) -> tuple[Any, ...]:
    """Return the parts of `(a, b)`; `ROW(a, b)` is one value to group by."""
    return item.items if isinstance(item, Row) and not item.explicit else (item,)


def _group(item: Any) -> Any:
    """Return a member of GROUPING SETS, ROLLUP or CUBE: a set of expressions, or nested sets."""
    if isinstance(item, GroupingSets):
        return () if item.sets == ((),) else item
    return _items(item)


# (start, end) of an invalid frame to its error.
_BAD_FRAMES = {
    ("following", "current row"): "frame starting from following row cannot end with current row",
    ("following", "preceding"): "frame starting from following row cannot have preceding rows",
    ("current row", "preceding"): "frame starting from current row cannot have preceding rows",
}


def _check_frame(start: str, end: str, position: int) -> None:
    problem = _BAD_FRAMES.get((start, end))
    if start == "unbounded following":
        problem = "frame start cannot be UNBOUNDED FOLLOWING"
    elif end == "unbounded preceding":
        problem = "frame end cannot be UNBOUNDED PRECEDING"
    if problem is not None:
        raise WindowingError(problem, position=position + 1)
