"""What the text of a view says without its tables: the columns that it names, and if it is simple.

A column counts as used where the query names it: with the relation, or alone. A name alone may be
that of another relation's column, too; then both count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from qserver.functions.all_functions import AGGREGATES, TABLE_FUNCTIONS
from qserver.sql import ast
from qserver.sql.ast.nodes import nodes_of
from qserver.sql.binder.expressions.parsed import parsed_query
from qserver.sql.binder.tables.updatable_views import why_not_updatable


@dataclass(frozen=True, slots=True)
class ViewFacts:
    is_simple: bool
    """Whether rows can be written through it, if those of what it selects from can be."""
    plain: tuple[str | None, ...]
    """Of a simple one: the column that each output is; None for another expression."""
    aliases: tuple[tuple[str, str], ...]
    """Names of relations in the query, with the names by which it knows them."""
    names: frozenset[tuple[str, ...]]
    """The columns that it names, some with what stands for their relation in front."""
    wholes: frozenset[str]
    """What stands for relations all of whose columns it names."""

    def uses(self, relation: str, column: str) -> bool:
        """Tell whether the query names the column of a relation."""
        known = [alias for name, alias in self.aliases if name == relation]
        if "" in self.wholes or (column,) in self.names:
            return True
        return any(each in self.wholes or (each, column) in self.names for each in known)


_WINDOWS: Final = frozenset(
    {
        *("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag"),
        *("lead", "first_value", "last_value", "nth_value"),
    }
)
_AGGREGATING: Final = frozenset({*AGGREGATES, *TABLE_FUNCTIONS, *_WINDOWS})
"""Calls of which a view cannot be updatable."""


@lru_cache(maxsize=1024)
def view_facts(text: str) -> ViewFacts:
    query, _ = parsed_query(text)
    calls = [node.name[-1] for node in nodes_of(query) if isinstance(node, ast.Call)]
    is_simple = why_not_updatable(query) is None and _AGGREGATING.isdisjoint(calls)
    aliases: list[tuple[str, str]] = []
    names: set[tuple[str, ...]] = set()
    wholes: set[str] = set()
    for node in nodes_of(query):
        if isinstance(node, ast.TableRef):
            aliases.append((node.name[-1], node.alias or node.name[-1]))
        elif isinstance(node, ast.Name):
            names.add(node.parts[-2:])
        elif isinstance(node, ast.Star):
            wholes.add(node.table[-1] if node.table else "")
        elif isinstance(node, ast.Join):
            names.update((each,) for each in node.using)
            if node.natural:
                wholes.add("")
    wholes |= {alias for _, alias in aliases if (alias,) in names}
    plain = tuple(_plain(query)) if is_simple else ()
    return ViewFacts(is_simple, plain, tuple(aliases), frozenset(names), frozenset(wholes))


def _plain(query: ast.Query) -> Iterator[str | None]:
    assert isinstance(query.body, ast.Select)
    for target in query.body.targets:
        named = target.expression
        yield named.parts[-1] if isinstance(named, ast.Name) else None
