"""Starts a vector tree, from generated code: the modules with numpy are loaded by then."""

from __future__ import annotations

from math import inf
from typing import Any

from qserver.functions.context import Context
from qserver.sql.vectors.plans import Constants
from qserver.sql.vectors.trees import Finish, Scanned, Tree
from qserver.values.steps import Steps


def run_tree(
    tree: Tree,
    context: Context,
    scans: tuple[Scanned, ...],
    constants: Constants,
    finishes: tuple[Finish, ...] = (),
    most: float = inf,
) -> Steps[list[Any] | None]:
    """Return all rows, or of a top-n those that may be the first `most`; None if row code has to
    compute them. Yields now and then."""
    from qserver.sql.vectors.tree_run import TreeRun  # imports numpy

    return TreeRun(tree, context, scans, constants, finishes).rows(most)
