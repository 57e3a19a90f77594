"""Compares reports about older versions with the versions themselves, as they were published.

    contents         a version: its tables by name, each with its columns and its rows by key
    version_problems each version follows from the one before it: by acknowledged requests, by a
                     restore alone, or by requests whose outcome is unknown
    difference_problems  a difference that is applied to one version gives the other

Invariant: a problem is reported only if no outcome of an unknown request can explain it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

from qserver.storage.changes import Change
from simulations.pages import Published

Rows: TypeAlias = dict[Any, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class TableContents:
    columns: tuple[str, ...]
    rows: Rows


Contents: TypeAlias = dict[str, TableContents]


def contents(published: Published | None) -> Contents:
    """Return the tables of a version; none before the first."""
    if published is None:
        return {}
    return {
        name: TableContents(
            tuple(column.name for column in table.columns), published.entries.get(table.id, {})
        )
        for name, table in published.catalog.tables.items()
    }


@dataclass(slots=True)
class Done:
    """A request that changed something, or may have."""

    number: int
    added: dict[int, int] = field(default_factory=dict)
    """By key: what was added to its value."""
    rewritten: frozenset[int] = frozenset()
    """Keys whose rows may have come or gone."""
    restored: int | None = None
    """The version that the database was made anew, if that is what it did."""


def version_problems(
    versions: Mapping[int, Published],
    done: Mapping[int, list[Done]],
    unknown: Iterable[Done],
    table: str,
) -> list[str]:
    """Return which versions do not follow from those before them.

    `done`: the requests known to have made each version. `table` has values to which requests add,
    in its last column. Versions whose contents are unknown are skipped.

    A restore that finds nothing to change makes no version. So the version that it names may have
    been made by another request; its contents tell whether that is all.
    """
    doubtful = list(unknown)
    problems: list[str] = []
    nobodys: list[int] = []
    for before, version in pairwise(sorted(versions)):
        if version != before + 1:
            continue
        was, now = contents(versions[before]), contents(versions[version])
        known = done.get(version, [])
        restores = [each for each in known if each.restored is not None]
        for each in restores:
            problems += _restore_problems(version, each, versions)
        if not known and was != now:
            nobodys.append(version)
        if known and not restores and table in was and table in now:
            found = _sum_problems(was[table].rows, now[table].rows, known, doubtful)
            problems += [f"version {version}: {problem}" for problem in found]
    if len(nobodys) > len(doubtful):
        problems.append(f"{len(doubtful)} outcomes are unknown, and nobody has made {nobodys}")
    return problems


def _restore_problems(version: int, done: Done, versions: Mapping[int, Published]) -> list[str]:
    assert done.restored is not None
    if done.restored and done.restored not in versions:
        return []  # nobody knows what it holds
    problems = []
    was, now = contents(versions.get(done.restored)), contents(versions[version])
    for name in sorted({*was, *now}):
        if was.get(name) != now.get(name):
            problems.append(
                f"version {version} restores {done.restored}: {name} is {now.get(name)},"
                f" not {was.get(name)}"
            )
    return problems


def _sum_problems(was: Rows, now: Rows, known: list[Done], unknown: list[Done]) -> list[str]:
    problems = []
    for key in sorted(was.keys() & now.keys()):
        number = key[0]
        if any(number in each.rewritten for each in (*known, *unknown)):
            continue
        added = now[key][-1] - was[key][-1]
        expected = {sum(each.added.get(number, 0) for each in known)}
        for each in unknown:
            if number in each.added:
                expected |= {sum_ + each.added[number] for sum_ in expected}
        if added not in expected:
            problems.append(f"{added} was added to {number}, not one of {sorted(expected)}")
    return problems


def difference_problems(
    before: Published | None, after: Published | None, told: Iterable[tuple[str, Any, Change]]
) -> list[str]:
    """Return what is wrong with changes that lead from one version to the other."""
    old, new = contents(before), contents(after)
    made = {name: dict(table.rows) for name, table in old.items()}
    redefined: list[str] = []
    problems = []
    for name, key, change in told:
        if key is None:
            redefined.append(name)
            continue
        rows = made.setdefault(name, {})
        if change.before == change.after:
            problems.append(f"{key} of {name} is told, and has not changed")
        if rows.get(key) != change.before:
            problems.append(f"{key} of {name} was {rows.get(key)}, not {change.before}")
        if change.after is None:
            rows.pop(key, None)
        else:
            rows[key] = change.after
    if len(set(redefined)) != len(redefined):
        problems.append(f"a definition is told twice: {redefined}")
    for name in sorted({*old, *new}):
        were, are = old.get(name), new.get(name)
        columns = [None if each is None else each.columns for each in (were, are)]
        if columns[0] != columns[1] and name not in redefined:
            problems.append(f"{name} has other columns, and that is not told")
        # Rows of what was redefined are not told, unless it is new.
        is_told = were is None or name not in redefined
        if are is not None and is_told and made.get(name, {}) != are.rows:
            problems.append(f"the changes make {name} {made.get(name)}, not {are.rows}")
    return problems
