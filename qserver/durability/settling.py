"""Saves a checkpoint of the newest version in a log that no database runs on.

So a long log that was put together from elsewhere is not replayed again by whoever opens it next.
Nothing is forgotten: older versions can be read as before.
"""

from __future__ import annotations

from math import inf

import trio

from qserver.durability.kept import RetentionRules
from qserver.durability.port import Log, StoredPage
from qserver.durability.recovery import recover
from qserver.limits import CHECKPOINT_PAGES_AT_ONCE, SHARDS_DEFAULT


async def save_newest(log: Log) -> int:
    """Make the newest version a checkpoint; return the version."""
    recovered = await recover(log, SHARDS_DEFAULT, may_save=True)
    snapshot, saved = recovered.snapshot, recovered.saved
    if snapshot.version == saved.version:
        return snapshot.version
    save, step = saved.begin(snapshot), list[StoredPage]()
    for page in save.pages():
        step.append(page)
        if len(step) == CHECKPOINT_PAGES_AT_ONCE:
            await log.save_pages(step)
            step = []
    if step:
        await log.save_pages(step)
    for _ in save.sort_out():
        await trio.lowlevel.checkpoint()
    row = save.stored(RetentionRules(-inf, 0), saved.kept[-1].log_end + recovered.log_bytes)
    await log.save_checkpoint(snapshot.version, *row)
    saved.confirm(save)
    return snapshot.version
