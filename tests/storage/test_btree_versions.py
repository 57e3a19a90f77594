"""Any mixture of operations on any version of a tree: a state machine beside plain dicts."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    initialize,
    multiple,
    rule,
    run_state_machine_as_test,
)

from qserver.storage import btree
from qserver.storage.page import EMPTY, Key, Tree
from tests.storage.trees import (
    Changes,
    Model,
    apply_changes,
    changed_model,
    check_pages,
    delete,
    entries_of,
    put,
    tree_of,
    within,
)

numbers = st.integers(0, 60)
keys = st.tuples(numbers)
low_or_high = st.none() | st.tuples(st.integers(-1, 61))


class Version:
    """A tree and what must be in it, for ever."""

    def __init__(self, tree: Tree, model: Model) -> None:
        check_pages(tree)
        self.tree = tree
        self.model = model

    def __repr__(self) -> str:
        return f"a version of {len(self.model)} entries"


class Versions(RuleBasedStateMachine):
    """Each rule takes any version, old or new, and may make another."""

    versions: Bundle[Version] = Bundle("versions")

    def __init__(self) -> None:
        super().__init__()
        self.serial = 0
        self.all: list[Version] = []

    def value(self, key: Key) -> tuple[object, ...]:
        """A value that is no other value."""
        self.serial += 1
        return (key, self.serial)

    def remember(self, tree: Tree, model: Model) -> Version:
        version = Version(tree, model)
        self.all.append(version)
        return version

    @initialize(target=versions, members=st.sets(keys, max_size=60))
    def build(self, members: set[Key]) -> MultipleResults[Version]:
        model = {key: self.value(key) for key in sorted(members)}
        return multiple(self.remember(tree_of(model), model), self.remember(EMPTY, {}))

    @rule(target=versions, version=versions, key=keys)
    def put(self, version: Version, key: Key) -> Version:
        value = self.value(key)
        return self.remember(put(version.tree, key, value), {**version.model, key: value})

    @rule(target=versions, version=versions, key=keys)
    def delete(self, version: Version, key: Key) -> Version:
        model = changed_model(version.model, {key: None})
        return self.remember(delete(version.tree, key), model)

    @rule(target=versions, version=versions, batch=st.dictionaries(keys, st.booleans()))
    def scattered_batch(self, version: Version, batch: dict[Key, bool]) -> Version:
        return self.change(version, {key: self.value(key) if batch[key] else None for key in batch})

    @rule(target=versions, version=versions, first=numbers, count=numbers, is_put=st.booleans())
    def contiguous_batch(self, version: Version, first: int, count: int, is_put: bool) -> Version:
        run = [(number,) for number in range(first, first + count)]
        return self.change(version, {key: self.value(key) if is_put else None for key in run})

    def change(self, version: Version, changes: Changes) -> Version:
        tree = apply_changes(version.tree, changes)
        return self.remember(tree, changed_model(version.model, changes))

    @rule(version=versions, key=keys, low=low_or_high, high=low_or_high)
    def read(self, version: Version, key: Key, low: Key | None, high: Key | None) -> None:
        tree, model = version.tree, version.model
        assert btree.get(tree, key) is model.get(key)
        expected = within(model, low, high)
        assert [key for page, _ in btree.pages(tree, low, high) for key in page] == expected
        descending = [key for page, _ in btree.pages_backward(tree, low, high) for key in page]
        assert descending == expected[::-1]

    @rule(old=versions, new=versions, low=low_or_high, high=low_or_high)
    def compare(self, old: Version, new: Version, low: Key | None, high: Key | None) -> None:
        either = within({**old.model, **new.model}, low, high)
        changed = [key for key in either if old.model.get(key) is not new.model.get(key)]
        assert list(btree.difference(old.tree, new.tree, low, high)) == [
            (key, old.model.get(key), new.model.get(key)) for key in changed
        ]

    def teardown(self) -> None:
        """No version was changed by making others from it."""
        for version in self.all:
            assert entries_of(version.tree) == sorted(version.model.items())


def test_every_version_answers_as_its_own_dict_does(page_size: int) -> None:
    steps = settings(max_examples=25, stateful_step_count=20, deadline=None)
    run_state_machine_as_test(Versions, settings=steps)
