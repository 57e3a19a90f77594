"""Writes, checkpoints, evictions, restarts and reads in any order, against plain dicts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qserver.durability.memory import MemoryLog
from qserver.durability.page_cache import LOOKS_PACKED, PageCache, size_of_page
from qserver.durability.page_store import LoggedPages
from qserver.durability.recovery import recover
from qserver.durability.saved_pages import SavedPages
from qserver.storage.btree import children_of
from qserver.storage.page import Leaf, Tree
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from tests.durability.histories import History, entries_of, run_step, save
from tests.sampling import examples

words = st.sampled_from([None, "ada", "bob", "cleo"])
rows = st.lists(st.tuples(st.integers(0, 300), words), max_size=120)
events = st.one_of(
    st.tuples(st.just("write"), rows),
    st.tuples(st.just("delete"), rows),
    st.tuples(st.just("checkpoint"), st.integers(1, 9)),
    st.tuples(st.just("let go"), st.integers(1, 4)),
    st.tuples(st.just("bound"), st.sampled_from([0, 3_000, 30_000, 1 << 30])),
    st.tuples(st.just("restart"), st.none()),
    st.tuples(st.just("begin to read"), st.none()),
    st.tuples(st.just("end to read"), st.none()),
    st.tuples(st.just("get"), st.integers(0, 300)),
    st.tuples(st.just("get often"), st.integers(0, 300)),
    st.tuples(st.just("scan"), st.tuples(st.integers(0, 300), st.integers(0, 300))),
)


class Machine:
    def __init__(self) -> None:
        self.log, self.cache = MemoryLog(), PageCache()
        self.store = LoggedPages(self.log, self.cache)
        self.saved = SavedPages(self.store)
        self.history = History(1)
        self.history.snapshot = self._leased(self.history.snapshot)
        self.model: dict[int, str | None] = {}
        self.readers: list[tuple[Snapshot, dict[int, str | None]]] = []

    def _leased(self, snapshot: Snapshot) -> Snapshot:
        """Give the newest snapshot a new lease, as `Versions.renew` does."""
        return Snapshot(
            snapshot.version,
            snapshot.time,
            snapshot.catalog,
            snapshot.trees,
            snapshot.shards,
            self.store.new_lease(snapshot.version),
        )

    async def do(self, what: str, how: Any) -> None:
        history = self.history
        if what in ("write", "delete"):
            run_step(history, ("t", how, "rows" if what == "delete" else "nothing"))
            for key, word in how:
                if what == "write":
                    self.model[key] = word
                else:
                    self.model.pop(key, None)
            await history.append_to(self.log)
        elif what == "checkpoint" and history.snapshot.version > self.saved.version:
            history.snapshot = self._leased(history.snapshot)
            await save(self.log, self.saved, history.snapshot, pages_at_once=how)
        elif what == "let go":
            line = list(self.cache._line.items())
            for page, size in line[::how]:
                del self.cache._line[page]
                self.cache.evict(page, size)
        elif what == "bound":
            self.cache.most = how
            self.cache.make_room()
        elif what == "restart":
            self.readers.clear()
            self.store = LoggedPages(self.log, self.cache)
            recovered = await recover(self.log, 1, self.store, may_save=True)
            history.snapshot, self.saved = recovered.snapshot, recovered.saved
        elif what == "begin to read":
            self.readers.append((history.snapshot, dict(self.model)))
        elif what == "end to read" and self.readers:
            self.check_all(*self.readers.pop(0))
        elif what == "get":
            for snapshot, model in [(history.snapshot, self.model), *self.readers]:
                self.check_get(snapshot, model, how)
        elif what == "get often":
            for _ in range(LOOKS_PACKED + 2):
                self.check_get(history.snapshot, self.model, how)
        elif what == "scan":
            self.check_scan(*how)

    def check_get(self, snapshot: Snapshot, model: dict[int, str | None], key: int) -> None:
        table = snapshot.catalog.tables.get("t")
        row = None if table is None else snapshot.get_entry(table.id, (key,))
        assert (row and row[1]) == model.get(key)
        assert (row is not None) == (key in model)

    def check_scan(self, low: int, high: int) -> None:
        snapshot = self.history.snapshot
        table = snapshot.catalog.tables.get("t")
        if table is not None:
            there = [key for key in sorted(self.model) if low <= key < high]
            forth = snapshot.pages(table.id, (low,), (high,))
            back = snapshot.pages(table.id, (low,), (high,), backward=True)
            assert [key[0] for keys, _ in forth for key in keys] == there
            assert [key[0] for keys, _ in back for key in keys] == there[::-1]

    def check_all(self, snapshot: Snapshot, model: dict[int, str | None]) -> None:
        table = snapshot.catalog.tables.get("t")
        found = {} if table is None else dict(entries_of(snapshot).get(table.id, []))
        assert {key[0]: row[1] for key, row in found.items()} == model


@settings(deadline=None, max_examples=examples(120))
@given(program=st.lists(events, max_size=25))
async def test_whatever_comes_and_goes_every_reader_sees_its_own_snapshot(
    program: list[tuple[str, Any]],
) -> None:
    machine = Machine()
    for event in program:
        await machine.do(*event)
    while machine.readers:
        machine.check_all(*machine.readers.pop())
    machine.check_all(machine.history.snapshot, machine.model)
    line = machine.cache._line
    assert machine.cache.held == sum(line.values())
    assert {page: size_of_page(page) for page in line} == line
    unpacked = [size for page, size in line.items() if getattr(page, "keys_here", None) is not None]
    assert machine.cache._unpacked == sum(unpacked)

    # From here on nobody reads, and nothing stays that is not needed.
    await machine.do("write", [(1, "ada")])
    await machine.do("checkpoint", 5)
    there = {number for number, _ in await machine.log.load_pages(0, 10_000)}
    assert there == set(numbers_of(machine.history.snapshot))
    assert machine.saved.count == len(there)


def numbers_of(snapshot: Snapshot) -> list[int]:
    waiting = [root for _, tree in snapshot.trees.items() for root in tree.roots if len(root)]
    found: list[int] = []
    while waiting:
        page: Tree = waiting.pop()
        found.append(page.number)
        waiting += children_of(page)
    return found


def test_what_is_not_saved_cannot_be_let_go() -> None:
    history = History(1)
    run_step(history, ("t", [(1, "ada")], "nothing"))
    table = history.snapshot.catalog.tables["t"]
    (root,) = history.snapshot.trees.tree(table.id).roots
    assert isinstance(root, Leaf) and root.is_here
    with pytest.raises(AssertionError, match="not saved"):
        root.evict()


async def test_what_a_transaction_writes_unread_is_loaded_before_it_commits() -> None:
    machine = Machine()
    await machine.do("write", [(number, "ada") for number in range(200)])
    await machine.do("checkpoint", 9)
    machine.cache.most = 0
    machine.cache.make_room()
    transaction = Transaction(machine.history.snapshot)
    table = machine.history.snapshot.catalog.tables["t"]
    for number in (3, 150):
        transaction.put_entry(table.id, (number,), (number, "bob", None))
    before = machine.cache.loads
    for _ in transaction.load_written():
        pass
    assert machine.cache.loads > before
