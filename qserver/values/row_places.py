"""Places of rows, PostgreSQL's type tid: a page and a line of it.

A value is one number, its six bytes: places are ordered by page, then by line.
"""

from __future__ import annotations

import re
from typing import Final

from qserver.errors import InvalidTextRepresentation

_WRITTEN: Final = re.compile(r"\s*\(\s*0*(\d{1,10}),\s*0*(\d{1,5})\)\s*", re.ASCII)
PAGES: Final = 2**32
LINES: Final = 2**16
PLACE_BYTES: Final = 6


def place(page: int, line: int) -> int:
    return page * LINES + line


def place_from_text(text: str) -> int:
    found = _WRITTEN.fullmatch(text)
    page, line = map(int, found.groups()) if found is not None else (PAGES, 0)
    if page >= PAGES or line >= LINES:
        raise InvalidTextRepresentation(f'invalid input syntax for type tid: "{text}"')
    return place(page, line)


def text_of_place(value: int) -> str:
    return "({},{})".format(*divmod(value, LINES))
