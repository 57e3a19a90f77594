"""Planted bugs in the log, and in answers that leave before it is durable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from qserver.durability import recovery
from qserver.engine import generation, log_writer
from qserver.engine.versions import EngineRestarted, Versions
from qserver.values.steps import Steps
from simulations.mutants.mutant import Mutant


def _acknowledge_before_sync(original: Any) -> Any:
    async def run(self: log_writer.LogWriter) -> None:
        while True:
            group = await self.mailbox.take(8)
            records = [(each.snapshot.version, self.encode(each)) for each in group]
            self.release(group)
            await self.log.append(records)

    return run


def _read_before_durable(original: Any) -> Any:
    def publish(self: Versions, snapshot: Any) -> None:
        original(self, snapshot)
        self.durable = snapshot

    return publish


def _do_not_wait_for_durability(original: Any) -> Any:
    async def wait_durable(self: Versions, version: int) -> None:
        return None

    return wait_durable


def _retry_what_may_have_happened(original: Any) -> Any:
    return lambda *_, **__: EngineRestarted()


def _resurrect_deleted(original: Any) -> Any:
    def merge(into: Any, writes: Mapping[int, Any]) -> Steps[None]:
        kept = {
            tree: {key: row for key, row in changes.items() if row is not None}
            for tree, changes in writes.items()
        }
        yield from original(into, kept)

    return merge


def _log_only_the_last_of_a_group(original: Any) -> Any:
    def encode(self: Any, append: Any) -> bytes:
        data: bytes = original(self, append)
        if self.mailbox.statistics().waiting:  # a later round will surely say the same
            append.writes.clear()
            data = original(self, append)
        return data

    return encode


MUTANTS: Final = (
    Mutant(
        "acknowledge_before_sync",
        "answers leave before the log has synced",
        ("bank", "hot_key", "list_append"),
        ((log_writer.LogWriter, "run", _acknowledge_before_sync),),
    ),
    Mutant(
        "read_before_durable",
        "read-only requests see snapshots that are not durable yet",
        ("list_append", "hot_key", "registers"),
        ((Versions, "publish", _read_before_durable),),
    ),
    Mutant(
        "answer_before_durable",
        "a transaction that wrote nothing is answered from a snapshot that is not durable",
        ("list_append", "hot_key", "registers"),
        ((Versions, "wait_durable", _do_not_wait_for_durability),),
    ),
    Mutant(
        "retry_what_may_have_happened",
        "a commit that was under way when the database restarted is sent again",
        ("hot_key", "list_append"),
        ((generation, "OutcomeUnknown", _retry_what_may_have_happened),),
    ),
    Mutant(
        "resurrect_deleted",
        "recovery forgets deletions",
        ("range_sums", "unique_keys"),
        ((recovery, "merge_writes", _resurrect_deleted),),
    ),
    Mutant(
        "log_only_the_last_of_a_group",
        "a round that is synced together with later ones is logged without its writes",
        ("hot_key", "bank", "list_append"),
        ((log_writer.LogWriter, "encode", _log_only_the_last_of_a_group),),
    ),
)
