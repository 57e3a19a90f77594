"""Planted bugs in rounds: how shards vote, install and publish."""

from __future__ import annotations

from typing import Any, Final

from qserver.engine import coordinator, shard
from qserver.engine.messages import Decide, Prepare
from qserver.storage import find_conflict
from qserver.storage.page import Tree
from qserver.storage.ranges import Roots
from qserver.storage.routing import Part
from qserver.storage.transaction import Transaction
from qserver.storage.writes import TreeWrites
from simulations.mutants.mutant import Mutant


def _never(*_: Any) -> None:
    return None


def _without_accepted(original: Any) -> Any:
    def conflict_of(self: shard.Shard, part: Part, is_long: bool) -> Any:
        kept, self._accepted = self._accepted, {}
        try:
            return original(self, part, is_long)
        finally:
            self._accepted = kept

    return conflict_of


def _without_undecided(original: Any) -> Any:
    def conflict_of(self: shard.Shard, part: Part, is_long: bool) -> Any:
        kept, self._undecided_writes = self._undecided_writes, {}
        try:
            return original(self, part, is_long)
        finally:
            self._undecided_writes = kept

    return conflict_of


def _install_on_one_shard(original: Any) -> Any:
    def decide(self: shard.Shard, message: Decide) -> Any:
        commits = message.commits if self.number % 2 == 0 else ()
        return original(self, Decide(message.round, commits))

    return decide


def _install_all_undecided(original: Any) -> Any:
    def decide(self: shard.Shard, message: Decide) -> Any:
        return original(self, Decide(message.round, tuple(self._undecided)))

    return decide


def _publish_without_the_last_shard(original: Any) -> Any:
    def second_phase(self: Any, *arguments: Any) -> Any:
        installed: Roots = yield from original(self, *arguments)
        shards = sorted({each.shard for each in installed})
        return {
            each: root
            for each, root in installed.items()
            if len(shards) == 1 or each.shard != shards[-1]
        }

    return second_phase


def _run_again_without_the_others(original: Any) -> Any:
    def run_work(self: Any, commit: Any, work: Transaction) -> Any:
        if commit.transaction is not None:
            work.earlier = None
        return original(self, commit, work)

    return run_work


def _drop_the_first_write(original: Any) -> Any:
    def changed(tree: Tree, changes: TreeWrites) -> Any:
        fewer = dict(list(changes.items())[1:]) if len(changes) > 3 else changes
        return original(tree, fewer)

    return changed


def _vote_without_looking(original: Any) -> Any:
    def prepare(self: shard.Shard, message: Prepare, *, is_long: bool = False) -> Any:
        blind = tuple(
            Part(p.position, p.alone, p.base, {}, [], p.writes, p.dropped) if not p.alone else p
            for p in message.parts
        )
        return original(self, Prepare(message.round, blind), is_long=is_long)

    return prepare


ISOLATION: Final = ("list_append", "bank", "ring", "write_skew")

MUTANTS: Final = (
    Mutant(
        "skip_read_validation",
        "a shard does not compare what was read with what is installed",
        ISOLATION,
        ((find_conflict, "stale_read", lambda original: _never),),
    ),
    Mutant(
        "skip_accepted_check",
        "a shard does not compare with what the same round has accepted",
        ISOLATION,
        ((shard.Shard, "conflict_of", _without_accepted),),
    ),
    Mutant(
        "skip_undecided_check",
        "a shard does not refuse what overlaps a prepared, undecided transaction",
        ISOLATION,
        ((shard.Shard, "conflict_of", _without_undecided),),
    ),
    Mutant(
        "skip_wide_validation",
        "reads of transactions on several shards are not validated",
        ISOLATION,
        ((shard.Shard, "prepare", _vote_without_looking),),
    ),
    Mutant(
        "install_on_one_shard_only",
        "the decision reaches only every second shard",
        ("bank", "registers"),
        ((shard.Shard, "decide", _install_on_one_shard),),
    ),
    Mutant(
        "install_the_aborted",
        "a shard installs a transaction that another shard refused",
        ("bank", "ring"),
        ((shard.Shard, "decide", _install_all_undecided),),
    ),
    Mutant(
        "publish_before_all_installed",
        "the snapshot is published without the last shard's new roots",
        ("bank", "ring", "registers"),
        ((coordinator.Coordinator, "_second_phase", _publish_without_the_last_shard),),
    ),
    Mutant(
        "run_again_without_the_others",
        "work that is run again does not see what was run before it in the same round",
        ("hot_key", "bank"),
        ((coordinator.Coordinator, "run_work", _run_again_without_the_others),),
    ),
    Mutant(
        "skip_catalog_check",
        "a changed definition does not stop those who used the old one",
        ("definitions",),
        ((coordinator.Coordinator, "catalog_conflict", lambda original: _never),),
    ),
    Mutant(
        "drop_the_first_write",
        "a shard loses the first of many writes to a tree",
        ("registers", "bank", "hot_key"),
        ((shard, "changed", _drop_the_first_write),),
    ),
)
