"""Checks a change feed: applies its changes to tables, and compares them with those published.

    changes of a version ─► run its definitions ─► apply each row: before, after
    ─► the tables are exactly those of that version

A version that is skipped, repeated, partial or early leads to different tables, now or at the next
version. So does a row whose `before` differs from the reader's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from simulations.pages import Published

Row: TypeAlias = tuple[tuple[str, Any], ...]
"""The visible columns with their values, in the order of their names."""

Tables: TypeAlias = dict[str, Counter[Row] | None]
"""None: a table whose rows the reader has to read, because it was not told of them before."""

Statements: TypeAlias = Mapping[str, Callable[[Tables], None]]
Told: TypeAlias = dict[str, Any]
"""A change, as the API has it."""


def tables_of(published: Published, wanted: frozenset[str] | None) -> Tables:
    """Return the wanted tables of a version."""
    tables: Tables = {}
    for name, table in published.catalog.tables.items():
        if wanted is None or name in wanted:
            shown = [(each.name, at) for at, each in enumerate(table.columns) if not each.hidden]
            rows = published.entries.get(table.id, {}).values()
            tables[name] = Counter(row_of({each: row[at] for each, at in shown}) for row in rows)
    return tables


def row_of(row: Mapping[str, Any]) -> Row:
    return tuple(sorted(row.items()))


class FedTables:
    """The tables of a reader at a version; `statements` runs definitions."""

    def __init__(
        self, statements: Statements, wanted: frozenset[str] | None, version: int, tables: Tables
    ) -> None:
        self._statements = statements
        self.wanted = wanted
        self.version = version
        self._tables = tables

    def follow(self, version: int, changes: Sequence[Told]) -> list[str]:
        """Apply the changes of a version; return what is wrong with them."""
        problems = []
        if version <= self.version:
            problems.append(f"version {version} comes behind version {self.version}")
        if any(each["version"] != version for each in changes):
            problems.append(f"version {version} has changes of others: {changes}")
        stated = [each for each in changes if each["op"] == "schema"]
        if stated != list(changes[: len(stated)]):
            problems.append(f"version {version} has definitions behind rows: {changes}")
        for statement in dict.fromkeys(each["statement"] for each in stated):
            self._statements[statement](self._tables)
        if self.wanted is not None:
            self._tables = {
                name: self._tables[name] for name in self._tables if name in self.wanted
            }
        keys: Counter[Any] = Counter()
        for change in changes[len(stated) :]:
            problems += self._change(change, redefined=bool(stated))
            if change["key"] is not None:
                keys[change["table"], row_of(change["key"])] += 1
        twice = [key for key, count in keys.items() if count > 1]
        if twice:
            problems.append(f"version {version} changes rows twice: {twice}")
        self.version = version
        return problems

    def _change(self, change: Told, redefined: bool) -> list[str]:
        table, key, before, after = (change[name] for name in ("table", "key", "before", "after"))
        if self.wanted is not None and table not in self.wanted:
            return [f"a change of {table}, which is not wanted: {change}"]
        op = {(True, False): "delete", (False, True): "insert", (True, True): "update"}
        if op.get((before is not None, after is not None)) != change["op"]:
            return [f"a change that is none: {change}"]
        rows = self._tables.setdefault(table, Counter())
        if rows is None:
            return []
        if before is not None:
            known: Row | None = row_of(before)
            if rows[row_of(before)] <= 0:
                known = self._by_key(rows, key or before) if redefined else None
            if known is None:
                return [f"the row of {change} is not there: {dict(rows)}"]
            rows[known] -= 1
        if after is not None:
            rows[row_of(after)] += 1
        return []

    @staticmethod
    def _by_key(rows: Counter[Row], named: Mapping[str, Any]) -> Row | None:
        """Return the row that had another key before a definition was applied."""
        for row, count in rows.items():
            has = dict(row)
            if count > 0 and all(has.get(name, value) == value for name, value in named.items()):
                return row
        return None

    def differences(self, published: Published) -> list[str]:
        """Return where the tables differ from those of a version."""
        expected = tables_of(published, self.wanted)
        problems = []
        for name in sorted({*expected, *self._tables}):
            should = expected.get(name) or Counter()
            known = self._tables.get(name, Counter())
            if known is None:
                known = self._tables[name] = Counter(should)
            has = +known
            if has != should:
                more, less = dict(has - should), dict(should - has)
                problems.append(f"{name} has {more} too much, and lacks {less}")
        return problems
