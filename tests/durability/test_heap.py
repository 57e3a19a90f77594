"""Memory that long values have freed goes back to the system."""

from __future__ import annotations

import ctypes
import resource
from pathlib import Path

import pytest

from qserver.durability import heap

MIB = 1 << 20
BLOCK = 10_000
"""About a packed leaf: from malloc, and not large enough for a mapping of its own."""


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(heap._malloc_trim is None, reason="this system's malloc has no trim")
def test_what_was_freed_below_what_is_used_goes_back() -> None:
    blocks = [bytes([1]) * BLOCK for _ in range(64 * MIB // BLOCK)]
    kept = blocks[::100]  # some anywhere, so that the top of the heap stays where it is
    full = resident()
    del blocks
    heap.trim()
    assert full - resident() > 48 * MIB
    assert len(kept) > 1


@pytest.mark.parametrize("library", [OSError("no such library"), object()])
def test_a_system_without_it_goes_on(library: object, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: None) -> object:
        if isinstance(library, OSError):
            raise library
        return library

    monkeypatch.setattr(ctypes, "CDLL", load)
    assert heap._found() is None
    monkeypatch.setattr(heap, "_malloc_trim", None)
    heap.trim()
