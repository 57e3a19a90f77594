"""A simple model of an open transaction: whole copies of the database, one for each savepoint.

    contents   the tables by name: columns, rows, indexes; never changed, a change makes a copy
    session    the contents as a transaction sees them, and a stack of copies

It knows nothing of pages, footprints or deltas: a savepoint is the contents as they were. `draw`
makes statements by chance, each with what it does to the contents, so that the engine's answers,
errors among them, can be compared with the model's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final, TypeAlias

from qserver.errors import (
    DivisionByZero,
    DuplicateColumn,
    DuplicateTable,
    FailedTransaction,
    FeatureNotSupported,
    InvalidSavepoint,
    QserverError,
    UndefinedColumn,
    UndefinedObject,
    UndefinedTable,
    UniqueViolation,
)
from qserver.query.results import Statement

TABLES: Final = ("t0", "t1", "t2")
KEYS: Final = 8
VALUES: Final = 4
SAVEPOINTS: Final = ("a", "b", "c")

EXPECTED: Final[tuple[type[QserverError], ...]] = (
    DivisionByZero,
    DuplicateColumn,
    DuplicateTable,
    FailedTransaction,
    FeatureNotSupported,
    InvalidSavepoint,
    UndefinedColumn,
    UndefinedObject,
    UndefinedTable,
    UniqueViolation,
)
"""The errors that a statement of a program may end in."""

Row: TypeAlias = tuple[int | None, ...]
Answer: TypeAlias = tuple[tuple[Row, ...], int]
"""The rows of a statement, and how many it affected."""


@dataclass(frozen=True)
class ModelTable:
    columns: tuple[str, ...] = ("id", "v")
    default: int | None = None
    """Of the third column, if there is one."""
    rows: Mapping[int, Row] = field(default_factory=dict)
    indexes: Mapping[str, bool] = field(default_factory=dict)
    """Which indexes of `v` there are, and whether each is unique."""

    def listed(self) -> tuple[Row, ...]:
        return tuple(row for _, row in sorted(self.rows.items()))


Contents: TypeAlias = Mapping[str, ModelTable]
Effect: TypeAlias = Callable[[Contents], tuple[Contents, Answer]]
"""What a statement does; it raises _Refused if the statement must fail."""


class _Refused(Exception):
    def __init__(self, kind: type[QserverError]) -> None:
        self.code = kind.code


@dataclass(frozen=True)
class Operation:
    sql: str
    parameters: tuple[int | None, ...]
    effect: Effect

    @property
    def statement(self) -> Statement:
        return Statement(self.sql, list(self.parameters))


@dataclass(frozen=True)
class Control:
    """SAVEPOINT, RELEASE or ROLLBACK TO."""

    kind: str
    name: str

    @property
    def sql(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def statement(self) -> Statement:
        return Statement(self.sql)


Step: TypeAlias = Sequence[Operation | Control]
StepAnswer: TypeAlias = tuple[Answer, ...] | str
"""The answers of all statements, or the code of the error."""


class ModelSession:
    """A transaction that runs over the contents."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.affected = 0
        self.failed = False
        self.savepoints: list[tuple[str, Contents, int]] = []

    def run(self, step: Step) -> StepAnswer:
        """Run the statements of one request: all of them, or none."""
        alone = len(step) == 1
        rolls_back = alone and isinstance(step[0], Control) and step[0].kind == "ROLLBACK TO"
        if self.failed and not rolls_back:
            return FailedTransaction.code
        before = (self.contents, self.affected, list(self.savepoints))
        try:
            answers = tuple(self._run(each, 0 if alone else len(before[2])) for each in step)
        except _Refused as refused:
            self.contents, self.affected, self.savepoints = before
            self.failed = True
            return refused.code
        self.failed = False
        return answers

    def _run(self, each: Operation | Control, first_own: int) -> Answer:
        if isinstance(each, Control):
            self._control(each, first_own)
            return (), 0
        self.contents, answer = each.effect(self.contents)
        self.affected += answer[1]
        return answer

    def _control(self, control: Control, first_own: int) -> None:
        if control.kind == "SAVEPOINT":
            self.savepoints.append((control.name, self.contents, self.affected))
            return
        places = [at for at, each in enumerate(self.savepoints) if each[0] == control.name]
        if not places:
            raise _Refused(InvalidSavepoint)
        if places[-1] < first_own:  # set by an earlier request
            raise _Refused(FeatureNotSupported)
        if control.kind == "RELEASE":
            del self.savepoints[places[-1] :]
        else:
            _, self.contents, self.affected = self.savepoints[places[-1]]
            del self.savepoints[places[-1] + 1 :]


@dataclass(frozen=True, slots=True)
class Draws:
    """What the statements of one program are about: mostly one table, and few keys."""

    chance: Random
    definitions: bool
    """Whether some statements change definitions."""
    table: str
    keys: tuple[int, ...]

    def key(self) -> int:
        return self.chance.choice(self.keys)


def draws_for(chance: Random) -> Draws:
    keys = tuple(chance.sample(range(KEYS), chance.choice((2, 3, KEYS))))
    return Draws(chance, chance.random() < 0.4, chance.choice(TABLES), keys)


def draw(draws: Draws) -> Operation:
    chance = draws.chance
    makers = _DEFINITIONS if draws.definitions and chance.random() < 1 / 3 else _ROWS
    name = draws.table if chance.random() < 0.7 else chance.choice(TABLES)
    return chance.choice(makers)(draws, name)


def draw_step(draws: Draws, names: Sequence[str], failed: bool) -> Step:
    """Make the next request of a transaction that has savepoints of these names."""
    chance = draws.chance
    if failed:
        if names and chance.random() < 0.9:
            return (Control("ROLLBACK TO", chance.choice(names)),)
        return (draw(draws),)
    kind = chance.random()
    if kind < 0.4:
        return (_draw_control(chance, names),)
    if kind < 0.75:
        return (draw(draws),)
    step: list[Operation | Control] = []
    own: list[str] = []
    for _ in range(chance.randint(2, 6)):
        if chance.random() < 0.4:
            step.append(_draw_control(chance, own))
            own = names_after(own, step[-1:])
        else:
            step.append(draw(draws))
    return step


def names_after(names: Sequence[str], step: Step) -> list[str]:
    """Return the names of the savepoints after a request that has succeeded."""
    after = list(names)
    for each in step:
        if isinstance(each, Control):
            if each.kind == "SAVEPOINT":
                after.append(each.name)
            elif each.name in after:
                at = len(after) - 1 - after[::-1].index(each.name)
                del after[at + (each.kind == "ROLLBACK TO") :]
    return after


def _draw_control(chance: Random, names: Sequence[str]) -> Control:
    if not names or chance.random() < 0.5:
        return Control("SAVEPOINT", chance.choice(SAVEPOINTS))
    kind = "RELEASE" if chance.random() < 0.3 else "ROLLBACK TO"
    stranger = chance.random() < 0.03
    return Control(kind, chance.choice(SAVEPOINTS if stranger else names))


# --- definitions ---------------------------------------------------------------------------------


def _create(draws: Draws, name: str) -> Operation:
    def effect(contents: Contents) -> tuple[Contents, Answer]:
        _need_free(contents, name)
        return {**contents, name: ModelTable()}, ((), 0)

    return Operation(f"CREATE TABLE {name} (id integer PRIMARY KEY, v integer)", (), effect)


def _drop(draws: Draws, name: str) -> Operation:
    def effect(contents: Contents) -> tuple[Contents, Answer]:
        _table(contents, name)
        return {each: table for each, table in contents.items() if each != name}, ((), 0)

    return Operation(f"DROP TABLE {name}", (), effect)


def _rename(draws: Draws, name: str) -> Operation:
    new = draws.chance.choice([each for each in TABLES if each != name])

    def effect(contents: Contents) -> tuple[Contents, Answer]:
        table = _table(contents, name)
        _need_free(contents, new)
        rest = {each: kept for each, kept in contents.items() if each != name}
        return {**rest, new: table}, ((), 0)

    return Operation(f"ALTER TABLE {name} RENAME TO {new}", (), effect)


def _widen(draws: Draws, name: str) -> Operation:
    default = draws.chance.randrange(100)

    def effect(contents: Contents) -> tuple[Contents, Answer]:
        table = _table(contents, name)
        if "w" in table.columns:
            raise _Refused(DuplicateColumn)
        rows = {key: (*row, default) for key, row in table.rows.items()}
        wider = replace(table, columns=(*table.columns, "w"), default=default, rows=rows)
        return {**contents, name: wider}, ((), 0)

    return Operation(f"ALTER TABLE {name} ADD COLUMN w integer DEFAULT {default}", (), effect)


def _narrow(draws: Draws, name: str) -> Operation:
    def effect(contents: Contents) -> tuple[Contents, Answer]:
        table = _table(contents, name)
        if "w" not in table.columns:
            raise _Refused(UndefinedColumn)
        rows = {key: row[:2] for key, row in table.rows.items()}
        narrow = replace(table, columns=("id", "v"), default=None, rows=rows)
        return {**contents, name: narrow}, ((), 0)

    return Operation(f"ALTER TABLE {name} DROP COLUMN w", (), effect)


def _index(draws: Draws, name: str) -> Operation:
    unique, index = draws.chance.random() < 0.5, f"by_value_{draws.chance.randrange(2)}"

    def effect(contents: Contents) -> tuple[Contents, Answer]:
        table = _table(contents, name)
        if any(index in each.indexes for each in contents.values()):
            raise _Refused(DuplicateTable)
        indexed = replace(table, indexes={**table.indexes, index: unique})
        _check_unique(indexed)
        return {**contents, name: indexed}, ((), 0)

    kind = "UNIQUE INDEX" if unique else "INDEX"
    return Operation(f"CREATE {kind} {index} ON {name} (v)", (), effect)


def _drop_index(draws: Draws, _: str) -> Operation:
    index = f"by_value_{draws.chance.randrange(2)}"

    def effect(contents: Contents) -> tuple[Contents, Answer]:
        for name, table in contents.items():
            if index in table.indexes:
                rest = {each: kind for each, kind in table.indexes.items() if each != index}
                return {**contents, name: replace(table, indexes=rest)}, ((), 0)
        raise _Refused(UndefinedObject)

    return Operation(f"DROP INDEX {index}", (), effect)


def _truncate(draws: Draws, name: str) -> Operation:
    def effect(contents: Contents) -> tuple[Contents, Answer]:
        table = _table(contents, name)
        return {**contents, name: replace(table, rows={})}, ((), 0)

    return Operation(f"TRUNCATE {name}", (), effect)


# --- rows ----------------------------------------------------------------------------------------


def _insert(draws: Draws, name: str) -> Operation:
    key, value = draws.key(), draws.chance.choice((None, *range(VALUES)))

    def effect(contents: Contents) -> tuple[Contents, Answer]:
        table = _table(contents, name)
        if key in table.rows:
            raise _Refused(UniqueViolation)
        return _with_rows(contents, name, {**table.rows, key: _row(table, key, value)}, 1)

    return Operation(f"INSERT INTO {name} (id, v) VALUES ($1, $2)", (key, value), effect)


def _upsert(draws: Draws, name: str) -> Operation:
    key, value = draws.key(), draws.chance.randrange(VALUES)

    def effect(contents: Contents) -> tuple[Contents, Answer]:
        table = _table(contents, name)
        there = table.rows.get(key)
        row = _row(table, key, value) if there is None else (key, value, *there[2:])
        return _with_rows(contents, name, {**table.rows, key: row}, 1)

    sql = f"INSERT INTO {name} (id, v) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET v = $2"
    return Operation(sql, (key, value), effect)


def _copy(draws: Draws, name: str) -> Operation:
    source, below = draws.chance.choice(TABLES), draws.key()

    def effect(contents: Contents) -> tuple[Contents, Answer]:
        table, other = _table(contents, name), _table(contents, source)
        new = {
            key + KEYS: _row(table, key + KEYS, row[1])
            for key, row in other.rows.items()
            if key < below
        }
        if new.keys() & table.rows.keys():
            raise _Refused(UniqueViolation)
        return _with_rows(contents, name, {**table.rows, **new}, len(new))

    sql = f"INSERT INTO {name} (id, v) SELECT id + {KEYS}, v FROM {source} WHERE id < $1"
    return Operation(sql, (below,), effect)


def _update(draws: Draws, name: str) -> Operation:
    key, value = draws.key(), draws.chance.choice((None, *range(VALUES)))

    def effect(contents: Contents) -> tuple[Contents, Answer]:
        table = _table(contents, name)
        there = table.rows.get(key)
        if there is None:
            return contents, ((), 0)
        row = (key, value, *there[2:])
        changed, _ = _with_rows(contents, name, {**table.rows, key: row}, 1)
        return changed, ((row,), 1)

    sql = f"UPDATE {name} SET v = $1 WHERE id = $2 RETURNING *"
    return Operation(sql, (value, key), effect)


def _shift(draws: Draws, name: str) -> Operation:
    first = draws.key()

    def effect(contents: Contents) -> tuple[Contents, Answer]:
        table = _table(contents, name)
        changed = {
            key: (key, None if row[1] is None else row[1] + VALUES, *row[2:])
            for key, row in table.rows.items()
            if key >= first
        }
        return _with_rows(contents, name, {**table.rows, **changed}, len(changed))

    return Operation(f"UPDATE {name} SET v = v + {VALUES} WHERE id >= $1", (first,), effect)


def _delete(draws: Draws, name: str) -> Operation:
    first, last = sorted((draws.key(), draws.key()))

    def effect(contents: Contents) -> tuple[Contents, Answer]:
        table = _table(contents, name)
        rest = {key: row for key, row in table.rows.items() if not first <= key <= last}
        return _with_rows(contents, name, rest, len(table.rows) - len(rest))

    return Operation(f"DELETE FROM {name} WHERE id BETWEEN $1 AND $2", (first, last), effect)


def _select(draws: Draws, name: str) -> Operation:
    def effect(contents: Contents) -> tuple[Contents, Answer]:
        return contents, (_table(contents, name).listed(), 0)

    return Operation(f"SELECT * FROM {name} ORDER BY id", (), effect)


def _select_one(draws: Draws, name: str) -> Operation:
    key = draws.key()

    def effect(contents: Contents) -> tuple[Contents, Answer]:
        row = _table(contents, name).rows.get(key)
        return contents, (() if row is None else (row,), 0)

    return Operation(f"SELECT * FROM {name} WHERE id = $1", (key,), effect)


def _find(draws: Draws, name: str) -> Operation:
    value = draws.chance.randrange(VALUES)

    def effect(contents: Contents) -> tuple[Contents, Answer]:
        rows = [row[:1] for row in _table(contents, name).listed() if row[1] == value]
        return contents, (tuple(rows), 0)

    return Operation(f"SELECT id FROM {name} WHERE v = $1 ORDER BY id", (value,), effect)


def _count(draws: Draws, name: str) -> Operation:
    def effect(contents: Contents) -> tuple[Contents, Answer]:
        rows = _table(contents, name).listed()
        return contents, (((len(rows), sum(row[1] is not None for row in rows)),), 0)

    return Operation(f"SELECT count(*), count(v) FROM {name}", (), effect)


def _divide(draws: Draws, name: str) -> Operation:
    key, value = draws.key(), draws.chance.randrange(VALUES)

    def effect(contents: Contents) -> tuple[Contents, Answer]:
        row = _table(contents, name).rows.get(key)
        if row is None:
            return contents, ((), 0)
        if row[1] is None:
            return contents, (((None,),), 0)
        if row[1] == value:
            raise _Refused(DivisionByZero)
        return contents, (((0,),), 0)

    sql = f"SELECT 0 / (v - $1) FROM {name} WHERE id = $2"
    return Operation(sql, (value, key), effect)


_DEFINITIONS: Final = (
    *(_create,) * 4,
    *(_drop,) * 2,
    _rename,
    _widen,
    _narrow,
    *(_index,) * 2,
    _drop_index,
    _truncate,
)
_ROWS: Final = (
    *(_insert,) * 3,
    *(_upsert,) * 5,
    _copy,
    *(_update,) * 3,
    _shift,
    *(_delete,) * 2,
    *(_select,) * 2,
    _select_one,
    _find,
    _count,
    _divide,
)


def _table(contents: Contents, name: str) -> ModelTable:
    if name not in contents:
        raise _Refused(UndefinedTable)
    return contents[name]


def _need_free(contents: Contents, name: str) -> None:
    if name in contents:
        raise _Refused(DuplicateTable)


def _row(table: ModelTable, key: int, value: int | None) -> Row:
    return (key, value) if len(table.columns) == 2 else (key, value, table.default)


def _with_rows(
    contents: Contents, name: str, rows: Mapping[int, Row], affected: int
) -> tuple[Contents, Answer]:
    table = replace(contents[name], rows=rows)
    _check_unique(table)
    return {**contents, name: table}, ((), affected)


def _check_unique(table: ModelTable) -> None:
    if True in table.indexes.values():
        values: list[Any] = [row[1] for row in table.rows.values() if row[1] is not None]
        if len(values) != len(set(values)):
            raise _Refused(UniqueViolation)
