"""Planted bugs in replicated logs: claims, repetitions, parts, files and positions."""

from __future__ import annotations

from typing import Any, Final

from qserver.replication.family import Family, State
from qserver.replication.reader import Reader
from qserver.replication.replicated_logs import ReplicatedLogs
from simulations.mutants.mutant import Mutant, edited
from simulations.replicated import REPLICATED
from simulations.sizes import SMALL

HOSTS: Final = (REPLICATED,)
IN_PARTS: Final = (("sizes", SMALL),)
"""Messages are so short that most are sent in parts, and positions are written often."""

APPENDS: Final = """await self._append_records(Records(groups))
        for each in batch:
            if isinstance(each.body, Group) and each.file is not None:
                await self._write(each.body, each.file)
"""
FILES_FIRST: Final = """for each in batch:
            if isinstance(each.body, Group) and each.file is not None:
                await self._write(each.body, each.file)
        await self._append_records(Records(groups))
"""


def _settle_before_the_claim(original: Any) -> Any:
    async def settle(self: Family) -> None:
        if self.state is State.OPENING:
            await self._catch_up()
        else:
            await original(self)

    return settle


MUTANTS: Final = (
    Mutant(
        "open_without_a_claim",
        "a process writes a stream that it has only read",
        HOSTS,
        (
            edited(
                Family._take_over,
                "await self._append(encode(self._checksum, claim, Claim()))",
                "pass",
            ),
        ),
    ),
    Mutant(
        "show_before_the_claim_is_answered",
        "a process shows what it has read of a stream, and has not claimed it",
        HOSTS,
        ((Family, "settle", _settle_before_the_claim),),
    ),
    Mutant(
        "take_a_refusal_for_proof",
        "a message that is refused is taken for one that was appended before",
        HOSTS,
        (edited(Family._append, "found = await self._find(expected + 1)", "found = data"),),
    ),
    Mutant(
        "repeat_without_comparing",
        "any message in the place of one without an answer is taken for that one",
        HOSTS,
        (edited(Family._append, "if found == data", "if found is not None"),),
    ),
    Mutant(
        "write_files_before_the_stream",
        "a file has records that no node has acknowledged",
        HOSTS,
        (edited(Family._serve, APPENDS, FILES_FIRST),),
    ),
    Mutant(
        "count_parts_without_the_last",
        "a message in parts counts as soon as there is one of them",
        HOSTS,
        (edited(Reader._add, "if not entry.body.is_last", "if False"),),
        IN_PARTS,
    ),
    Mutant(
        "keep_parts_across_a_claim",
        "parts of an earlier owner are put before those of the next",
        HOSTS,
        (
            edited(
                Reader._add,
                "self.claim = entry.claim\n        self._parts = []",
                "self.claim = entry.claim",
            ),
        ),
        IN_PARTS,
    ),
    Mutant(
        "write_the_position_before_the_files",
        "a position counts records that are not synced yet",
        HOSTS,
        (edited(Family.save_position, "await file.sync_pages()", "pass"),),
        IN_PARTS,
    ),
    Mutant(
        "make_a_branch_before_its_message",
        "the file of a branch is there before the stream has it",
        HOSTS,
        (
            edited(
                ReplicatedLogs.branch,
                "await family.publish(message)",
                "await self.copies.begin(message, parent_log, kept)",
            ),
        ),
    ),
)
