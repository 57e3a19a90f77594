"""Hidden columns of users' tables that stand for the version and the place of a row.

Rows have no versions and no places here, but programs keep both to find out whether a row is still
what they have read, or to find it again.

    xmin    a number made of the row's values: another one after a change (two of 2³² may agree)
    ctid    a place made of the key: of a row without a primary key, or whose key is one positive
            integer, it is the number as a page and a line, and no other row has it

Neither says what is older: a number made of `xmin` is refused (see `coercion`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final
from zlib import crc32

from qserver.functions.registry import Function
from qserver.values.encoding import encode
from qserver.values.row_places import PAGES, place
from qserver.values.types import XID, Kind, SqlType

TID: Final = SqlType(Kind.TID)
FIRST_MARK: Final = 3
"""Smaller transaction ids have a meaning of their own."""
LINES: Final = 2**15
"""Lines of a page. Digests have those from here on to themselves."""


def _version(*values: Any) -> int:
    return FIRST_MARK + crc32(encode(values)) % (2**32 - FIRST_MARK)


def _place(*key: Any) -> int:
    number = key[0] if len(key) == 1 else None
    if type(number) is int and 0 < number <= PAGES * LINES:
        page, line = divmod(number - 1, LINES)
        return place(page, line + 1)
    digest = int.from_bytes(blake2b(encode(key), digest_size=6).digest())
    page, line = divmod(digest, 2 * LINES)
    return place(page, line % (LINES - 1) + LINES + 1)


_MARKS: Final[Mapping[str, tuple[SqlType, Callable[..., Any]]]] = {
    "xmin": (XID, _version),
    "ctid": (TID, _place),
}
ROW_MARKS: Final = frozenset(_MARKS)


@lru_cache(maxsize=1024)
def row_mark(name: str, types: tuple[SqlType, ...]) -> Function:
    """Return the function from a row's values, or those of its key, to a hidden column."""
    returns, call = _MARKS[name]
    return Function(name, types, returns, call, strict=False)
