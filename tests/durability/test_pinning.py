"""Checkpoints are pinned in a log that no database runs on."""

from __future__ import annotations

from qserver.durability.kept import KeptCheckpoint, decode_outline, encode_outline
from qserver.durability.memory import MemoryLog
from qserver.durability.pinning import pin_in_log, unpin_in_log
from qserver.durability.port import CheckpointParts


async def log_without_its_first_records() -> MemoryLog:
    log = MemoryLog()
    await log.append([(version, b"") for version in range(1, 8)])
    for version in (3, 5):
        parts = CheckpointParts(encode_outline(KeptCheckpoint(version, 1.0, 1, 1)), b"", b"")
        await log.save_checkpoint(version, b"", parts, version - 1)
    await log.forget(4, [])
    return log


async def pins_of(log: MemoryLog) -> dict[int, list[str]]:
    return {
        version: list(decode_outline(version, outline).names)
        for version, outline in await log.load_outlines()
    }


async def test_a_checkpoint_of_the_very_version_needs_no_records() -> None:
    log = await log_without_its_first_records()
    for version, expected in ((2, None), (3, 3), (4, None), (5, 5), (6, 5)):
        kept = await pin_in_log(log, f"b{version}", version)
        assert (None if kept is None else kept.version) == expected
    assert await pins_of(log) == {3: ["b3"], 5: ["b5", "b6"]}


async def test_what_is_pinned_for_a_branch_is_found_again_and_let_go() -> None:
    log = await log_without_its_first_records()
    assert await pin_in_log(log, "b", 6) is not None
    await log.append([(8, b"")])
    await log.forget(6, [])
    kept = await pin_in_log(log, "b", 6)
    assert kept is not None and kept.version == 5
    await unpin_in_log(log, "b")
    assert await pins_of(log) == {3: [], 5: []}
