"""Tests put nothing of their own into the product but clocks and limits: a rule over syntax trees.

A function that a test replaces is one that it does not try, under a name that nobody may change.
Where that is done all the same, `PATCHED` says for what, and no other file may begin: an argument
does it too. Only names that a module imports are seen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Final

from tests.house_rules import Module, Rule

CLOCKS: Final = frozenset({"time", "monotonic", "sleep"})
LIMITS: Final = frozenset({"memory_bytes_most", "transaction_bytes_most"})
"""Those of a class; others are constants."""
PATCHED: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "tests/control/test_branch_costs.py",
            "tests/control/test_branch_handover.py",
            "tests/durability/test_live_log.py",
            "tests/durability/test_long_replay.py",
            "tests/durability/test_page_cache.py",
            "tests/durability/test_saved_columns.py",
            "tests/engine/test_snapshot_source.py",
            "tests/http1/test_requests_and_answers.py",
            "tests/sql/codegen/test_hashed_scans.py",
            "tests/sql/codegen/test_iterations.py",
            "tests/sql/vectors/test_first_rows_of_trees.py",
            "tests/sql/vectors/test_packed_pages.py",
            "tests/sql/vectors/test_trees.py",
            "tests/sql/vectors/vectors.py",
            "tests/web/streaming/test_feed.py",
            "tests/web/test_app.py",
            "tests/web/test_asgi.py",
        ),
        "counts what is called, or does something in between",
    ),
    **dict.fromkeys(
        (
            "tests/archive/test_watch.py",
            "tests/cli/moving/test_postgres.py",
            "tests/cli/moving/test_sqlite.py",
            "tests/control/nodes/test_node_rates.py",
            "tests/control/test_branches.py",
            "tests/control/test_full_disk.py",
            "tests/durability/test_appending_here.py",
            "tests/durability/test_loads_beside_syncs.py",
            "tests/durability/test_thread_pool.py",
            "tests/engine/test_lone_commit.py",
            "tests/http1/test_failures_and_disconnects.py",
            "tests/query/test_bombs.py",
            "tests/replication/test_bases.py",
        ),
        "makes something fail, slow or late that does so seldom",
    ),
    **dict.fromkeys(
        (
            "tests/control/test_leading_planted.py",
            "tests/simulations/test_branches.py",
            "tests/sql/ddl/test_views_keep_their_meaning.py",
        ),
        "plants bugs",
    ),
    **dict.fromkeys(
        (
            "tests/durability/test_heap.py",
            "tests/functions/numbers/test_templates_of_numbers.py",
            "tests/lexing/test_value_rows.py",
            "tests/query/test_memory_of_values.py",
            "tests/sql/codegen/test_window_subtotals.py",
            "tests/sql/vectors/test_tree_memory.py",
        ),
        "turns the quick way off, to compare with the plain one",
    ),
    **dict.fromkeys(
        (
            "tests/cli/folders/test_log_commands.py",
            "tests/cli/nodes/conftest.py",
            "tests/cli/nodes/test_folder.py",
        ),
        "has commands find another log, or no program of one",
    ),
}


def only_clocks_and_limits_are_replaced(module: Module) -> Iterator[str]:
    if module.path not in PATCHED:
        yield from replaced(module)


def replaced(module: Module) -> Iterator[str]:
    """Names of the product that are neither constants nor clocks, and that a test sets."""
    for node in module.nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="setattr"), args=[owner, *rest]):
                name = _name(module, owner, rest)
                last = name.rpartition(".")[2]
                if (
                    name.startswith("qserver.")
                    and not last.isupper()
                    and last not in CLOCKS | LIMITS
                ):
                    yield module.at(node.lineno, f"{name} is replaced: give it an argument")


def _name(module: Module, owner: ast.expr, rest: list[ast.expr]) -> str:
    match owner, rest:
        case ast.Constant(value=str(name)), _:
            return name
        case _, [ast.Constant(value=str(attribute)), *_]:
            return f"{module.origin(owner) or ''}.{attribute}"
        case _, [ast.JoinedStr(values=[ast.Constant(value=str(begin)), *_]), *_]:
            return f"{module.origin(owner) or ''}.{begin}"
        case _, _:
            return module.origin(owner) or ""


RULES: Final[tuple[Rule, ...]] = (only_clocks_and_limits_are_replaced,)
