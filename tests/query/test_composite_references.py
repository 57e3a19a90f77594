"""References of several columns beside a model, with each column changed by itself.

    parents   a row for each key of two or three columns, guarded by a primary key or unique index
    children  refer to a parent, or to nobody if a column is NULL

Each statement changes one column, some or all, of a parent or of a child. The model knows which
rows are there, and what the actions do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

import pytest
import trio

from qserver.durability.memory import MemoryLog
from qserver.engine.database import Database
from qserver.errors import ForeignKeyViolation, QserverError, UniqueViolation
from qserver.query import foreign_keys
from qserver.query.sql_database import SqlDatabase
from simulations.determinism import run_repeatably
from simulations.mutants import Mutant, planted
from simulations.mutants.mutant import edited
from tests.sampling import sampled
from tests.simulations.test_sql_workloads import calm_world

ACTIONS = ("NO ACTION", "RESTRICT", "CASCADE", "SET NULL")
STATEMENTS = 60

Key: TypeAlias = tuple[int | None, ...]


class Refused(Exception):
    pass


@dataclass
class Model:
    columns: int
    on_delete: str
    on_update: str
    parents: dict[int, Key] = field(default_factory=dict)
    children: dict[int, Key] = field(default_factory=dict)

    def put_parent(self, number: int, key: Key) -> None:
        if any(each == key and other != number for other, each in self.parents.items()):
            raise Refused(UniqueViolation.code)
        old = self.parents.get(number)
        if old is not None and old != key:
            self._leave(old, key, self.on_update)
        self.parents[number] = key

    def delete_parent(self, number: int) -> None:
        if number in self.parents:
            self._leave(self.parents[number], None, self.on_delete)
            del self.parents[number]

    def _leave(self, old: Key, new: Key | None, action: str) -> None:
        left = [number for number, key in self.children.items() if key == old]
        if left and action in ("NO ACTION", "RESTRICT"):
            raise Refused(ForeignKeyViolation.code)
        for number in left:
            if action == "SET NULL":
                self.children[number] = (None,) * self.columns
            elif new is None:
                del self.children[number]
            else:
                self.children[number] = new

    def put_child(self, number: int, key: Key) -> None:
        if None not in key and key not in self.parents.values():
            raise Refused(ForeignKeyViolation.code)
        self.children[number] = key


class Pair:
    """The tables, the model of them, and statements by chance."""

    def __init__(self, seed: int) -> None:
        chance = self.chance = Random(f"references {seed}")
        columns = chance.choice((2, 2, 3))
        self.model = Model(columns, chance.choice(ACTIONS), chance.choice(ACTIONS))
        self.names = [f"k{number}" for number in range(columns)]
        """In the order of the reference; the guard may have another."""
        self.guard = chance.sample(self.names, columns)
        self.by_index = chance.random() < 0.5
        self.indexed = chance.random() < 0.5

    def definitions(self) -> list[str]:
        columns = ", ".join(f"{name} integer" for name in self.names)
        listed, guard = ", ".join(self.names), ", ".join(self.guard)
        primary = "id integer PRIMARY KEY" if self.by_index else "id integer UNIQUE"
        guarded = f"UNIQUE ({guard})" if self.by_index else f"PRIMARY KEY ({guard})"
        model = self.model
        found = [
            f"CREATE TABLE parents ({primary}, {columns}, {guarded})",
            f"CREATE TABLE children (id integer PRIMARY KEY, {columns}, FOREIGN KEY ({listed})"
            f" REFERENCES parents ({listed}) ON DELETE {model.on_delete}"
            f" ON UPDATE {model.on_update})",
        ]
        return [*found, f"CREATE INDEX of_parent ON children ({listed})"][: 2 + self.indexed]

    def draw(self) -> tuple[str, Any]:
        """Return a statement, and what it does to the model."""
        chance, model = self.chance, self.model
        number, kind = chance.randrange(6), chance.random()
        key: Key = tuple(chance.randrange(3) for _ in self.names)
        if kind < 0.1:
            return f"DELETE FROM parents WHERE id = {number}", lambda: model.delete_parent(number)
        if kind < 0.25 and number not in model.parents:
            return _insert("parents", number, key), lambda: model.put_parent(number, key)
        if kind < 0.45 and number not in model.children:
            known = [*model.parents.values(), key]
            key = self._perhaps_null(chance.choice(known))
            return _insert("children", number, key), lambda: model.put_child(number, key)
        table, rows = chance.choice((("parents", model.parents), ("children", model.children)))
        changed = [at for at in range(len(key)) if chance.random() < 0.5] or [len(key) - 1]
        before = rows.get(number)
        if table == "children":
            key = self._perhaps_null(key)
        after = before and tuple(
            key[at] if at in changed else value for at, value in enumerate(before)
        )
        sets = ", ".join(f"{self.names[at]} = {_literal(key[at])}" for at in changed)

        def change() -> None:
            if after is not None:
                put = model.put_parent if table == "parents" else model.put_child
                put(number, after)

        return f"UPDATE {table} SET {sets} WHERE id = {number}", change

    def _perhaps_null(self, key: Key) -> Key:
        at = self.chance.randrange(8)
        return tuple(None if each == at else value for each, value in enumerate(key))


def _insert(table: str, number: int, key: Key) -> str:
    return f"INSERT INTO {table} VALUES ({number}, {', '.join(map(_literal, key))})"


def _literal(value: int | None) -> str:
    return "NULL" if value is None else str(value)


async def compare(seed: int) -> str | None:
    """Return the first statement whose outcome the model does not have."""
    pair, world = Pair(seed), calm_world()
    done = pair.definitions()
    async with trio.open_nursery() as nursery:
        database = Database(MemoryLog(), world, shards=2)
        nursery.start_soon(database.run)
        sql = SqlDatabase(database, world)
        for definition in done:
            await sql.execute(definition)
        for _ in range(STATEMENTS):
            text, change = pair.draw()
            done.append(text)
            got = expected = ""
            try:
                await sql.execute(text)
            except QserverError as error:
                got = error.code
            try:
                change()
            except Refused as refused:
                expected = str(refused)
            rows = {
                table: {row[0]: row[1:] for row in (await sql.execute(f"TABLE {table}")).rows}
                for table in ("parents", "children")
            }
            model = {"parents": pair.model.parents, "children": pair.model.children}
            if (got, rows) != (expected, model):
                nursery.cancel_scope.cancel()
                return f"{done}: {got!r} {rows}, the model has {expected!r} {model}"
        nursery.cancel_scope.cancel()
    return None


def problem_of(seed: int) -> str | None:
    return run_repeatably(  # type: ignore[no-any-return]
        seed, lambda: compare(seed), virtual_seconds_max=1000.0, steps_max=10_000_000
    )


@pytest.mark.parametrize("seed", sampled(range(16), 6))
def test_references_of_several_columns_hold(seed: int) -> None:
    assert problem_of(seed) is None


def test_programs_have_all_actions() -> None:
    drawn = [Pair(seed).model for seed in range(16)]
    assert {each.on_update for each in drawn} == {each.on_delete for each in drawn} == {*ACTIONS}
    assert any(each.columns == 3 for each in drawn)


BUGS = (
    ("a child is looked at if its first column changed", foreign_keys._require_referenced,
     "[old[n] for n in at] != [new[n] for n in at]", "old[at[0]] != new[at[0]]"),
    ("a child is looked at if all its columns changed", foreign_keys._require_referenced,
     "[old[n] for n in at] != [new[n] for n in at]", "all(old[n] != new[n] for n in at)"),
    ("a parent has moved if its first column did", foreign_keys._broken,
     "values == [new[n] for n in at]", "values[0] == new[at[0]]"),
    ("one NULL is no NULL", foreign_keys._require_one, "if None in values:",
     "if values[0] is None:"),
    ("the columns of the guard are in the order of the reference", foreign_keys._look_up,
     "for at in table.primary_key]", "for at in sorted(table.primary_key)]"),
)  # fmt: skip


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug[0])
def test_bugs_of_one_column_are_seen(bug: tuple[str, Any, str, str]) -> None:
    name, function, old, new = bug
    with planted(Mutant(name, name, (), (edited(function, old, new),))):
        assert any(problem_of(seed) is not None for seed in range(16))
