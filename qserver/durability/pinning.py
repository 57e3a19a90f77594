"""Pins checkpoints in a log that no database runs on, or writes down those of one that does."""

from __future__ import annotations

from collections.abc import Callable, Collection

from qserver.durability.checkpoint import encode_checkpoint
from qserver.durability.kept import (
    KeptCheckpoint,
    base_of,
    decode_outline,
    encode_numbers,
    encode_outline,
    with_empty,
)
from qserver.durability.port import CheckpointParts, Log
from qserver.limits import SHARDS_DEFAULT
from qserver.storage.snapshot import empty_snapshot


async def write_names(log: Log, kept: KeptCheckpoint, newest: int, shards: int) -> None:
    """Write who has pinned a checkpoint; `newest` is the version of the last one."""
    outline = encode_outline(kept)
    if kept.version or await log.load_checkpoint(0) is not None:
        await log.change_checkpoints([], [(kept.version, CheckpointParts(outline))])
    else:
        data = encode_checkpoint(empty_snapshot(shards), {}, 0)
        nothing = encode_numbers(0, [])
        await log.save_checkpoint(0, data, CheckpointParts(outline, nothing, nothing), newest)


async def pin_in_log(log: Log, name: str, version: int) -> KeptCheckpoint | None:
    """Pin the checkpoint from which a version can be rebuilt, as `Checkpointer.pin` does.

    None if the log has none. Nobody else may change the log meanwhile.
    """
    outlines = await log.load_outlines()
    kept = [decode_outline(each, outline) for each, outline in outlines if outline]
    records = await log.read(0, 1)
    newest = max((each.version for each in kept), default=0)
    start = records[0][0] - 1 if records else newest
    if start == 0:
        kept = with_empty(kept)
    found = base_of(kept, version, start)
    for each in kept:
        if name in each.names or each.version == version:  # it needs no record that may be gone
            found = each
    if found is not None and name not in found.names:
        found.names = [*found.names, name]
        if found.version < version:
            found.lent = [*found.lent, name]
        await write_names(log, found, newest, SHARDS_DEFAULT)
    return found


async def unpin_in_log(log: Log, name: str) -> None:
    """Remove the pins of a name, and lend it nothing."""
    await _let_go(log, lambda pinned: pinned == name)


async def unpin_others(log: Log, names: Collection[str]) -> None:
    """Remove the pins of all but these names."""
    await _let_go(log, lambda pinned: pinned not in names)


async def _let_go(log: Log, is_gone: Callable[[str], bool]) -> None:
    changed: list[tuple[int, CheckpointParts]] = []
    for version, outline in await log.load_outlines():
        kept = decode_outline(version, outline) if outline else None
        if kept is not None and any(map(is_gone, kept.names)):
            kept.names = [each for each in kept.names if not is_gone(each)]
            kept.lent = [each for each in kept.lent if not is_gone(each)]
            changed.append((version, CheckpointParts(encode_outline(kept))))
    if changed:
        await log.change_checkpoints([], changed)
