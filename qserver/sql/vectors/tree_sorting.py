"""Plans top-n inside a vector tree: ORDER BY … LIMIT over its rows, most of which are never made.

The tree drops rows that come after as many others as are wanted. Row code sorts those that are
left, so their order is its own. It does not compute the keys of dropped rows: a key that the tree
cannot compute has to be a column, which raises nothing. Where one that it computes might raise, the
tree drops none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qserver.sql.expressions import Column, Expression, SortKey
from qserver.sql.vectors.planning import constant_kind
from qserver.sql.vectors.program import NotVectorized, joined_columns
from qserver.sql.vectors.tree_planning import Planned
from qserver.sql.vectors.tree_programs import TreeProgram
from qserver.sql.vectors.trees import FirstOfTree, TreeKey


def with_first_rows(planned: Planned, keys: Sequence[SortKey]) -> Planned | None:
    """Return a tree that gives rows which may be among the first; None if it has to give all."""
    constants = list(planned.constants)
    program = TreeProgram(planned.known, constants)
    by: list[TreeKey] = []
    for key in keys:
        if not _is_computed(planned, key.expression):
            break
        by.append(TreeKey(program.exact(key.expression), key.descending, key.nulls_first))
    if not by or not all(isinstance(key.expression, Column) for key in keys[len(by) :]):
        return None
    tree = planned.tree
    if not joined_columns(program) <= {each for output in tree.outputs for each in output.columns}:
        return None
    first = FirstOfTree(program, tuple(by), len(by) == len(keys))
    tree = replace(tree, first=first, constants=tuple(map(constant_kind, constants)))
    return Planned(tree, planned.scans, constants, planned.finishes, planned.known)


def _is_computed(planned: Planned, expression: Expression) -> bool:
    trial = TreeProgram(planned.known, list(planned.constants))
    try:
        trial.exact(expression)
    except NotVectorized:
        return False
    return not trial.reads_averages  # or all of them would be divided
