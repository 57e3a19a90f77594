"""The checkpoints that are kept, so that older versions of the database can be read.

    kept          k1 ────────── k2 ──────── k3 ─────────── newest
    log      ·····[ records of all versions after k1 ··················]
    gone          -             what k1 has  what k2 has    what k3 has      and it has not
    dead          pages that no kept checkpoint has: to be forgotten

A version is the newest kept checkpoint before it plus the records after that. Checkpoints are kept
as far back as history goes; of those only so many that the log between two stays short; and all
that are pinned, under a name, whatever records the log has. To some of these names the records
after the checkpoint are *lent*: a new branch reads them here (see `branch_log`). Then the log keeps
them.

Page numbers only grow. So a page that is gone since checkpoint k is in an older checkpoint exactly
if its number is not greater than that checkpoint's last. Dropping a checkpoint therefore takes two
lists and no tree:

    drop k2:   gone(k3)  =  gone(k2)  and what of gone(k3) is not newer than k1;
               dead      +  what of gone(k3) is newer than k1

Both lists are written to the rows of checkpoints, in the transaction that drops the other one. Of
the dead pages only those in the row of the newest checkpoint count. A forgotten page may still be
listed there, which does no harm.

A database without a checkpoint starts empty. That counts as a checkpoint of version 0, as long as
the log begins with version 1. It has a row only if it was pinned.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from math import inf

import msgspec

from qserver.durability.seal import sealed, unsealed
from qserver.errors import DataCorrupted


class KeptCheckpoint(msgspec.Struct, array_like=True):
    """The outline of a kept checkpoint: what is known without loading it."""

    version: int
    time: float
    last_page: int
    """No page of it has a greater number."""
    log_end: int
    """The bytes of log ever written, up to its version."""
    gone: int = 0
    """How many pages the kept checkpoint before it has, and it has not."""
    names: list[str] = []
    """Who has pinned it."""
    lent: list[str] = []
    """Those of them that read the records after it."""


def empty() -> KeptCheckpoint:
    """Return the checkpoint of version 0."""
    return KeptCheckpoint(0, 0.0, 0, 0)


def with_empty(kept: list[KeptCheckpoint]) -> list[KeptCheckpoint]:
    """Add the checkpoint of version 0 to those that have a row."""
    return kept if kept and kept[0].version == 0 else [empty(), *kept]


def encode_outline(kept: KeptCheckpoint) -> bytes:
    return sealed(_encode(kept), kept.version)


def decode_outline(version: int, data: bytes) -> KeptCheckpoint:
    body = unsealed(data, f"the outline of the checkpoint of version {version}", version)
    try:
        return _decode(body)
    except msgspec.MsgspecError as error:
        raise DataCorrupted("an outline cannot be decoded", detail=str(error)) from error


def encode_numbers(version: int, numbers: list[int]) -> bytes:
    """Encode page numbers, in order, as bytes tied to a checkpoint."""
    return sealed(array("Q", numbers).tobytes(), version)


def decode_numbers(version: int, data: bytes) -> list[int]:
    if not data:  # a release before kept checkpoints wrote the row
        return []
    numbers = array("Q")
    numbers.frombytes(unsealed(data, f"pages of the checkpoint of version {version}", version))
    return numbers.tolist()


def inherit(left: list[int], gone: list[int], last_page: int) -> tuple[list[int], list[int]]:
    """Drop a checkpoint: return the pages gone since the one before it, and the dead ones.

    `left` is gone with the dropped checkpoint, `gone` with the next; `last_page` is that of the one
    before. All are in order.
    """
    cut = bisect_right(gone, last_page)
    return sorted(left + gone[:cut]), gone[cut:]


class RetentionRules(msgspec.Struct, frozen=True):
    """Which checkpoints without a name are kept."""

    horizon: float = inf
    """Versions from this time on can be read."""
    log_bytes: int = 0
    """Of two replays that are as short together, one is enough."""


def history_begins(kept: list[KeptCheckpoint], horizon: float, log_start: int) -> int:
    """Return the position of the first checkpoint that versions since a time need.

    The log may lack records of earlier ones.
    """
    older = [each for each in kept if each.time <= horizon]
    without_log = [each for each in kept[:-1] if each.version < log_start]
    return max(len(older) - 1, len(without_log), 0)


def base_of(kept: list[KeptCheckpoint], version: int, log_start: int) -> KeptCheckpoint | None:
    """Return the kept checkpoint from which to rebuild a version; None if there is none."""
    for each in reversed(kept):
        if each.version <= version:
            return each if each.version >= log_start else None
    return None


def next_to_drop(kept: list[KeptCheckpoint], rules: RetentionRules, log_start: int) -> int | None:
    """Return the position of a checkpoint, never the newest, that need not be kept."""
    for at in range(len(kept) - 1):
        if is_needless(kept, at, rules, log_start):
            return at
    return None


def is_needless(kept: list[KeptCheckpoint], at: int, rules: RetentionRules, log_start: int) -> bool:
    """Return whether no name, no history and no short replay needs a checkpoint."""
    begins = history_begins(kept, rules.horizon, log_start)
    if kept[at].names or at < begins:
        return not kept[at].names
    return at > begins and kept[at + 1].log_end - kept[at - 1].log_end <= rules.log_bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(KeptCheckpoint).decode
