"""Many live queries beside commits of many rows: what a commit does for them is bounded."""

from __future__ import annotations

from qserver.engine.messages import Append
from qserver.engine.snapshot_source import SnapshotSource
from qserver.engine.watches import Watches
from qserver.limits import LIVE_TESTS_MAX
from qserver.storage.footprint import Footprint
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import ScannedRange, Transaction
from tests.storage.databases import PLAIN, commit, database

WATCHES, CHANGES = 200, 100


def test_a_commit_tests_each_change_against_few_live_queries() -> None:
    before = database(2)
    source = SnapshotSource()
    source.show(before)
    watches = Watches(source)
    tests = 0

    def wanted(row: object) -> bool:
        nonlocal tests
        tests += 1
        return False

    opened = [watches.open() for _ in range(WATCHES)]
    for watch in opened:
        footprint = Footprint()
        footprint.add_range(ScannedRange(PLAIN.id, None, None, wanted))
        watches.arm(watch, footprint, before)
    watches.committed(before, _changes(before, 1))
    assert tests == WATCHES
    assert all(watch.armed for watch in opened)
    watches.committed(before, _changes(before, CHANGES))
    assert tests < WATCHES + 2 * LIVE_TESTS_MAX
    assert not any(watch.armed for watch in opened), "untested ones look for themselves"


def _changes(before: Snapshot, count: int) -> Append:
    transaction = Transaction(before)
    for number in range(count):
        transaction.insert(PLAIN, (number, "b"))
    return Append(commit(transaction), transaction.writes, (), {}, ())
