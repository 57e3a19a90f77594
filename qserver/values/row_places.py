"""Places of rows, PostgreSQL's type tid: a page and a line, as text. They are ordered as texts."""

from __future__ import annotations

import re
from typing import Final

from qserver.errors import InvalidTextRepresentation

_WRITTEN: Final = re.compile(r"\s*\(\s*(\d{1,10})\s*,\s*(\d{1,5})\s*\)\s*", re.ASCII)
PAGES: Final = 2**32
LINES: Final = 2**16


def place_from_text(text: str) -> str:
    """Return the place as it is printed."""
    found = _WRITTEN.fullmatch(text)
    page, line = map(int, found.groups()) if found is not None else (PAGES, 0)
    if page >= PAGES or line >= LINES:
        raise InvalidTextRepresentation(f'invalid input syntax for type tid: "{text}"')
    return f"({page},{line})"
