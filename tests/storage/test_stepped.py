"""Steps and savepoints, compared with a model that copies everything."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from itertools import islice
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from qserver.errors import InvalidSavepoint
from qserver.storage.stepped import SteppedTransaction, StepTransaction
from qserver.values.schema import Column, define_table
from qserver.values.types import INTEGER
from tests.sampling import examples
from tests.steps import taken
from tests.storage.test_changes import TABLES, snapshot_of

KEYS = st.integers(1, 3)
TEXTS = st.sampled_from("abc")
CHANGES = st.lists(st.tuples(st.integers(0, 1), KEYS, TEXTS | st.none()), max_size=6)
NAMES = st.sampled_from("xy")


class Model:
    """All rows and definitions, and what has been read."""

    def __init__(self) -> None:
        self.rows: list[dict[int, str]] = [{1: "a", 2: "b"}, {3: "c"}]
        self.tables: set[str] = {table.name for table in TABLES}
        self.affected = 0


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.saved: list[tuple[str, Model]] = []
        self.stepped = SteppedTransaction(snapshot_of(self.model.rows))
        self.reads: set[tuple[int, int]] = set()
        self.statements = 0
        self.patched = pytest.MonkeyPatch()
        self.patched.setattr("qserver.storage.stepped.CHANGES_AT_ONCE", 2)  # a few cross it

    def teardown(self) -> None:
        self.patched.undo()

    def step(self) -> StepTransaction:
        step = self.stepped.step(self.statements)
        step.mark()
        self.statements += 1
        return step

    def apply(self, step: StepTransaction, changes: list[Any]) -> None:
        for which, key, text in changes:
            self.reads.add((which, key))  # the indexes need the row that was there
            if text is None:
                step.delete(TABLES[which], (key,))
            else:
                step.put(TABLES[which], (key, text))

    @rule(changes=CHANGES)
    def keep_a_step(self, changes: list[Any]) -> None:
        step = self.step()
        self.apply(step, changes)
        step.report_reads()
        taken(self.stepped.keep(step, len(changes)))
        for which, key, text in changes:
            if text is None:
                self.model.rows[which].pop(key, None)
            else:
                self.model.rows[which][key] = text
        self.model.affected += len(changes)

    @rule(changes=CHANGES)
    def undo_a_step(self, changes: list[Any]) -> None:
        step = self.step()
        self.apply(step, changes)
        step.begin_again()
        step.mark()
        assert not step.changes_anything

    @rule(changes=CHANGES, steps=st.integers(0, 3))
    def a_step_that_is_not_kept_to_its_end_leaves_nothing(
        self, changes: list[Any], steps: int
    ) -> None:
        step = self.step()
        self.apply(step, changes)
        step.report_reads()
        keeping = self.stepped.keep(step, len(changes))
        if len(list(islice(keeping, steps))) == steps:
            keeping.close()
        else:  # it has come to its end
            for which, key, text in changes:
                if text is None:
                    self.model.rows[which].pop(key, None)
                else:
                    self.model.rows[which][key] = text
            self.model.affected += len(changes)

    @rule(name=st.sampled_from(["new", "newer"]))
    def define(self, name: str) -> None:
        step = self.step()
        if name in self.model.tables:
            step.define(name, None)
            self.model.tables.remove(name)
        else:
            step.define(name, define_table(step.next_tree(), name, [Column("a", INTEGER)]))
            self.model.tables.add(name)
        step.report_reads()
        taken(self.stepped.keep(step, 0))

    @rule(name=NAMES)
    def savepoint(self, name: str) -> None:
        self.stepped.set_savepoint(name)
        self.saved.append((name, deepcopy(self.model)))

    @rule(name=NAMES)
    def release(self, name: str) -> None:
        at = self.find(name)
        if at is None:
            with pytest.raises(InvalidSavepoint):
                taken(self.stepped.release(name))
        else:
            taken(self.stepped.release(name))
            del self.saved[at:]

    @rule(name=NAMES, steps=st.none() | st.integers(0, 3))
    def roll_back_to(self, name: str, steps: int | None) -> None:
        at = self.find(name)
        if at is None:
            with pytest.raises(InvalidSavepoint):
                taken(self.stepped.roll_back_to(name))
            return
        undoing = self.stepped.roll_back_to(name)
        next(undoing, None)  # once it has begun, it comes to its end
        list(islice(undoing, steps))
        undoing.close()
        self.model = deepcopy(self.saved[at][1])
        del self.saved[at + 1 :]

    def find(self, name: str) -> int | None:
        found = [at for at, (each, _) in enumerate(self.saved) if each == name]
        return found[-1] if found else None

    @precondition(lambda self: self.saved)
    @rule()
    def the_savepoints_are_as_many(self) -> None:
        assert self.stepped.savepoints == len(self.saved)

    @invariant()
    def a_new_step_sees_what_the_model_has(self) -> None:
        step = self.stepped.step(self.statements)
        for table, rows in zip(TABLES, self.model.rows, strict=True):
            assert step.rows(table) == [(key, rows[key]) for key in sorted(rows)]
            entries = [value for _, page in step.scan(table.indexes[0].id) for value in page]
            assert sorted(entries) == [(key,) for key in sorted(rows)]
        assert set(step.catalog.tables) == self.model.tables
        assert self.stepped.affected_rows == self.model.affected

    @invariant()
    def the_footprint_has_all_that_was_read(self) -> None:
        seen = self.stepped.whole.keys
        written = self.stepped.whole.writes
        for which, key in self.reads:
            tree = TABLES[which].id
            assert (key,) in seen.get(tree, {}) or (key,) in written.get(tree, {})
        assert len(self.stepped.whole.marks or ()) <= self.statements


Machine.TestCase.settings = settings(max_examples=20, stateful_step_count=20, deadline=None)
TestSteps = Machine.TestCase


@given(st.integers(0, 2**32))
@settings(max_examples=examples(60), deadline=None)
def test_long_runs_agree_with_the_model(seed: int) -> None:
    chance = Random(seed)

    def changes() -> list[Any]:
        count = chance.randrange(6)
        return [
            (chance.randrange(2), chance.randint(1, 3), chance.choice(["a", "b", "c", None]))
            for _ in range(count)
        ]

    machine = Machine()
    try:
        for _ in range(40):
            name = chance.choice("xy")
            operations: list[Callable[[], None]] = [
                partial(machine.keep_a_step, changes()),
                partial(machine.keep_a_step, changes()),
                partial(machine.undo_a_step, changes()),
                partial(
                    machine.a_step_that_is_not_kept_to_its_end_leaves_nothing,
                    changes(),
                    chance.randrange(4),
                ),
                partial(machine.define, chance.choice(["new", "newer"])),
                partial(machine.savepoint, name),
                partial(machine.savepoint, name),
                partial(machine.release, name),
                partial(machine.roll_back_to, name, chance.choice([None, 0, 1, 2])),
            ]
            chance.choice(operations)()
            machine.a_new_step_sees_what_the_model_has()
            machine.the_footprint_has_all_that_was_read()
    finally:
        machine.teardown()


@given(CHANGES, CHANGES)
def test_a_step_counts_the_memory_that_it_takes(first: list[Any], then: list[Any]) -> None:
    stepped = SteppedTransaction(snapshot_of([{}, {}]))
    sizes = [stepped.bytes]
    for number, changes in enumerate((first, then)):
        step = stepped.step(number)
        for which, key, text in changes:
            step.put(TABLES[which], (key, text))
        step.report_reads()
        taken(stepped.keep(step, 0))
        sizes.append(stepped.bytes)
        assert not changes or sizes[-1] > sizes[-2]


def test_one_that_only_reads_keeps_no_footprint() -> None:
    stepped = SteppedTransaction(snapshot_of([{1: "a"}, {}]), read_only=True)
    step = stepped.step(0)
    step.mark()
    assert step.get(TABLES[0], (1,)) == (1, "a")
    assert step.rows(TABLES[1]) == []
    step.report_reads()
    assert not stepped.whole.keys and not stepped.whole.ranges
