"""Bounds of the product that a seed makes smaller, so that ten rows do what thousands would.

Pages of trees, pages of answers, the steps between two pauses, rows that are inserted or windowed
at once: what goes wrong where one ends and the next begins needs as many rows as it holds. The
mechanism stays as it is; only its numbers change, and the product's own are always among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from random import Random
from types import ModuleType
from typing import Final

from qserver.functions import context
from qserver.sql.codegen import (
    change_printer,
    compile,
    joins,
    pipeline,
    runtime,
    scans,
    sorted_rows,
    sorting,
    window_functions,
)
from qserver.sql.vectors import hash_tables, tree_folding, tree_grouping, tree_run
from qserver.storage import columns
from simulations.sizes import draw_sizes, sized

# The package has the rules under the names of their modules.
scan_hashing, vectorization, vector_trees, vector_choice = (
    import_module(f"qserver.sql.optimizer.{name}")
    for name in ("scan_hashing", "vectorization", "vector_trees", "vector_choice")
)

BOUNDS: Final[tuple[tuple[str, tuple[ModuleType, ...], tuple[int, ...]], ...]] = (
    ("PAGE_ROWS", (compile,), (1, 2, 3)),
    ("ROWS_OF_PAGE", (runtime,), (2, 3)),
    ("ROWS_AT_ONCE", (window_functions,), (2, 3)),
    ("ROWS_INSERTED_AT_ONCE", (change_printer,), (2, 3)),
    ("RUN_ROWS", (sorted_rows,), (2, 3)),
    ("RUN_ROWS_MIN", (sorted_rows,), (2,)),
    ("MATCHES_FEW", (joins,), (1, 2)),
    ("ROWS_BETWEEN_CHECKS", (pipeline, sorting), (2, 3)),
    (
        "STEPS_BETWEEN_PAUSES",
        (context, pipeline, runtime, sorted_rows, window_functions),
        (3, 20),
    ),
    ("VECTOR_ROWS_MIN", (columns, vectorization, vector_trees), (2, 4)),
    ("RUNS_BY_ROWS", (scans,), (0,)),
    ("RUNS_OVER_VECTORS", (scans,), (0, 2)),
    ("HASHED_ROWS_MIN", (scan_hashing,), (0, 5)),
    ("START_OF_TREE", (vector_choice,), (0, -1_000_000)),
    ("BATCH_ROWS_MAX", (tree_run,), (3, 40)),
    ("PAIRS_MAX", (tree_run,), (4, 20)),
    ("VALUES_AT_ONCE", (hash_tables, tree_grouping), (1, 3)),
    ("WAITING_MAX", (tree_folding,), (0, 5)),
    ("FOLDED_AT_ONCE_MIN", (tree_folding,), (0, 5)),
    ("GROUPS_FOLDED_MIN", (tree_folding,), (1, 8)),
    ("SLOW_ROWS_MAX", (tree_run,), (1, 3)),
)
"""Names, the modules that have them, and smaller values."""

OWN_SHARE: Final = 0.4
"""How often a bound stays what it is."""


@contextmanager
def small_bounds(chance: Random) -> Iterator[None]:
    """Set the bounds that `chance` would draw next; it is left as it was."""
    drawn = Random()
    drawn.setstate(chance.getstate())
    kept: list[tuple[ModuleType, str, float]] = []
    try:
        for name, modules, values in BOUNDS:
            value = drawn.choice(values)
            if drawn.random() >= OWN_SHARE:
                for module in modules:
                    kept.append((module, name, vars(module)[name]))
                    setattr(module, name, value)
        with sized(draw_sizes(drawn)):
            yield
    finally:
        for module, name, own in kept:
            setattr(module, name, own)
