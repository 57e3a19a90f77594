"""Returns freed memory to the system.

Python takes small objects from arenas of its own, and all that is over 512 bytes from malloc.
Neither uses what the other has freed. So where packed leaves, which are long, make room for changed
ones, which are small objects, a process could need its memory twice over.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any


def _found() -> Callable[[int], Any] | None:
    """Find glibc's function; other systems return freed memory on their own, or not at all."""
    try:
        return getattr(ctypes.CDLL(None), "malloc_trim", None)
    except (OSError, TypeError):
        return None


_malloc_trim = _found()


def trim() -> None:
    """Return the pages of memory that malloc does not use. Takes a millisecond or two."""
    if _malloc_trim is not None:
        _malloc_trim(0)
