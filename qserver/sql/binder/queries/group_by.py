"""Binds the GROUP BY clause: its keys, and the sets of ROLLUP, CUBE and GROUPING SETS.

    GROUP BY a, ROLLUP (b, c)     keys a b c     sets (a b c) (a b) (a)

Every item is a list of sets, a plain expression one set of one key; several items are multiplied.

Equal expressions are one key. But with sets, each item of the select list that is named by number
or name is a key of its own: in SELECT a, a … GROUP BY ROLLUP (1, 2) the second is NULL where the
first is not. Elsewhere in the query, `a` is the first of such items.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from qserver.errors import GroupingError, StatementTooComplex, TooManyColumns, WindowingError
from qserver.limits import CUBE_ELEMENTS_MAX, GROUPING_SETS_MAX
from qserver.sql import ast
from qserver.sql.binder.clauses import Clause
from qserver.sql.binder.expressions.operands import located
from qserver.sql.binder.expressions.same import CONSTANTS, Alike, constant_in
from qserver.sql.binder.names.scope import Scope
from qserver.sql.binder.queries.outputs import Output, find_output, typed
from qserver.sql.expressions import Column, Expression
from qserver.sql.walk import everything

STEPS_OF_SET = 4
"""The later cost of a grouping set, which is visited, copied and printed."""

GroupingSet = tuple[int, ...]


class GroupBy:
    """The distinct keys of a GROUP BY, in order of appearance."""

    def __init__(self, scope: Scope, outputs: Sequence[Output]) -> None:
        self.scope = scope
        self.outputs = outputs
        self.keys: list[Expression] = []
        self._alike = Alike(scope.literals)
        self.sets: tuple[GroupingSet, ...] | None = None
        self.of_outputs: dict[int, int] = {}
        """With sets, the key of each item of the select list that is one."""
        self._has_sets = False
        self._has_twins = False

    def bind(self, items: Sequence[ast.Expression | ast.GroupingSets], distinct: bool) -> None:
        sets: list[GroupingSet] = [()]
        self._has_sets = any(isinstance(item, ast.GroupingSets) for item in items)
        for item in items:
            choices = self._sets(item)
            if len(sets) * len(choices) > GROUPING_SETS_MAX:
                raise StatementTooComplex(
                    f"too many grouping sets present (maximum {GROUPING_SETS_MAX})",
                    position=item.position + 1,
                )
            sets = [_united(one, other) for one in sets for other in choices]
        self.scope.binding.budget.spend(len(sets) * STEPS_OF_SET)
        if self._has_twins:
            sets = self._in_order_of_outputs(sets)
        if self._has_sets:
            self.sets = _distinct(sets) if distinct else tuple(sets)

    def _in_order_of_outputs(self, sets: list[GroupingSet]) -> list[GroupingSet]:
        """Move the keys of earlier items of the select list forward, where equal ones are found."""
        outputs = {key: output for output, key in self.of_outputs.items()}
        last = len(self.outputs)
        order = sorted(range(len(self.keys)), key=lambda key: (outputs.get(key, last), key))
        moved = {before: now for now, before in enumerate(order)}
        self.keys = [self.keys[before] for before in order]
        self.of_outputs = {output: moved[key] for output, key in self.of_outputs.items()}
        return [tuple([moved[key] for key in each]) for each in sets]

    def _sets(self, item: ast.Expression | ast.GroupingSets) -> list[GroupingSet]:
        if not isinstance(item, ast.GroupingSets):
            return [self._set((item,))]
        if item.kind == "sets":
            return [
                found
                for each in item.sets
                for found in (
                    self._sets(each) if isinstance(each, ast.GroupingSets) else [self._set(each)]
                )
            ]
        elements = [
            self._set(each) if isinstance(each, tuple) else _only(self._sets(each))
            for each in item.sets
        ]
        if item.kind == "rollup":
            return [_union(elements[:count]) for count in range(len(elements), -1, -1)]
        if len(elements) > CUBE_ELEMENTS_MAX:
            raise TooManyColumns(
                f"CUBE is limited to {CUBE_ELEMENTS_MAX} elements", position=item.position + 1
            )
        return [
            _union(chosen)
            for count in range(len(elements), -1, -1)
            for chosen in combinations(elements, count)
        ]

    def _set(self, nodes: Sequence[ast.Expression]) -> GroupingSet:
        found: list[int] = []
        for node in nodes:
            if isinstance(node, ast.Row) and not node.explicit:
                found += self._set(node.items)
            else:
                found.append(self._key(node))
        return tuple(dict.fromkeys(found))

    def _key(self, node: ast.Expression) -> int:
        found = find_output(self.scope, self.outputs, node, Clause.GROUP_BY)
        if isinstance(found, int):
            if found in self.of_outputs:
                return self.of_outputs[found]
            expression = typed(self.scope, self.outputs[found])
            self._refuse_later_things(expression)
            if self._has_sets:
                if not isinstance(expression, CONSTANTS):
                    self._has_twins |= self._alike.position(expression, self.keys) is not None
                self.of_outputs[found] = len(self.keys)
                self.keys.append(expression)
                return self.of_outputs[found]
        else:
            expression = found
        if isinstance(expression, CONSTANTS):
            at = constant_in(expression, self.keys)
        else:
            at = self._alike.position(expression, self.keys)
        if at is None:
            at = len(self.keys)
            self.keys.append(expression)
        return at

    def _refuse_later_things(self, expression: Expression) -> None:
        """Refuse aggregates and window functions in an item that is named by number or name."""
        level, binding = self.scope.level, self.scope.binding
        arguments = {function.source: function.arguments for function in level.row_functions}
        waiting = list(everything(expression))
        while waiting:
            each = waiting.pop()
            if type(each) is not Column:
                continue
            for argument in arguments.get(each.source, ()):
                waiting.extend(everything(argument))
            if each.source and each.source == level.grouping_source:
                raise located(
                    GroupingError("grouping operations are not allowed in GROUP BY"),
                    binding.position_of(each),
                )
            if each.source == level.call_source:
                raise located(
                    GroupingError("aggregate functions are not allowed in GROUP BY"),
                    binding.position_of(each),
                )
            if each.source == level.window_source:
                raise located(
                    WindowingError("window functions are not allowed in GROUP BY"),
                    binding.position_of(each),
                )


def _distinct(sets: Sequence[GroupingSet]) -> tuple[GroupingSet, ...]:
    return tuple({tuple(sorted(each)): each for each in sets}.values())


def _only(sets: Sequence[GroupingSet]) -> GroupingSet:
    return _union(sets)


def _united(one: GroupingSet, other: GroupingSet) -> GroupingSet:
    return tuple(dict.fromkeys((*one, *other)))


def _union(sets: Sequence[GroupingSet]) -> GroupingSet:
    return tuple(dict.fromkeys(key for each in sets for key in each))
