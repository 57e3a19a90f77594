"""pg_lsn: a place in PostgreSQL's log, 64 bits as two hexadecimal numbers. There is no such log."""

from __future__ import annotations

import re
from typing import Final

from qserver.errors import InvalidTextRepresentation

_WRITTEN: Final = re.compile(r"([0-9a-fA-F]{1,8})/([0-9a-fA-F]{1,8})")


def position_from_text(text: str) -> str:
    """Return the place as it is printed."""
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise InvalidTextRepresentation(f'invalid input syntax for type pg_lsn: "{text}"')
    return "/".join(f"{int(part, 16):X}" for part in found.groups())
