"""Checks whether SQLite's write-ahead log is torn at its end, as by a crash, or damaged.

SQLite reads its write-ahead log up to the first frame whose checksum is wrong, and takes the rest
for what a crash has torn. That is right for the last transaction, which may not have been synced.
It is wrong if whole transactions follow: those were acknowledged, and the frame between was synced
before them. SQLite would drop them all silently, so this module looks for them first.

    head  frame frame ✓commit │ frame ✗ ✓commit │ frame ✓commit      damaged: a commit is behind ✗
    head  frame frame ✓commit │ frame ✗ ✓commit                      torn, or so it must be taken
    head ✗                                                           damaged: nothing can be told

The last transaction of all is the limit: damage to it looks like a crash in the middle of it.

The layout is part of SQLite's file format (sqlite.org/fileformat2.html): a head of 32 bytes, then
frames of 24 bytes and a page. The checksum of a frame continues that of the one before; all carry
the two salts of the head, which change whenever the file is begun again.
"""

from __future__ import annotations

from struct import Struct, unpack
from typing import Final

HEAD: Final = Struct(">8I")  # magic, format, page size, sequence, 2 salts, 2 sums
FRAME: Final = Struct(">6I")  # page, pages after a commit or 0, 2 salts, 2 sums
LITTLE, BIG = 0x377F0682, 0x377F0683
_MASK: Final = 0xFFFFFFFF


def is_damaged(log: bytes) -> bool:
    """Return whether the log has lost something that was synced."""
    if len(log) <= HEAD.size:
        return False  # there is no frame that it could have lost
    magic, _, page_size, _, *salts, one, two = HEAD.unpack_from(log)
    order = {LITTLE: "<", BIG: ">"}.get(magic)
    if order is None or sums_of(order, log[: HEAD.size - 8], 0, 0) != (one, two):
        return True
    size = FRAME.size + page_size
    starts = range(HEAD.size, len(log) - size + 1, size)
    for at in starts:
        _, _, *salts_here, one_here, two_here = FRAME.unpack_from(log, at)
        one, two = sums_of(order, log[at : at + 8], one, two)
        one, two = sums_of(order, log[at + FRAME.size : at + size], one, two)
        if salts_here != salts or (one, two) != (one_here, two_here):
            return _a_transaction_follows(log, starts[starts.index(at) :], salts)
    return False


def _a_transaction_follows(log: bytes, starts: range, salts: list[int]) -> bool:
    """Return whether a commit, and then a later write, follows from here on."""
    committed = False
    for at in starts:
        _, pages, *salts_here, _, _ = FRAME.unpack_from(log, at)
        # The remains of an earlier log differ in both salts; damage spares one of them.
        if salts_here[0] == salts[0] or salts_here[1] == salts[1]:
            if committed:
                return True
            committed = pages != 0
    return False


def sums_of(order: str, data: bytes, one: int, two: int) -> tuple[int, int]:
    words = unpack(f"{order}{len(data) // 4}I", data)
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + two) & _MASK
        two = (two + second + one) & _MASK
    return one, two
