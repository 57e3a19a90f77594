"""Waits for what must come, however slow the machine is. Minutes only end what hangs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

PATIENCE_SECONDS: Final = 600.0
PAUSE_SECONDS: Final = 0.02


def eventually(holds: Callable[[], object], otherwise: str) -> None:
    """Ask again and again until it holds."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < until, otherwise
        time.sleep(PAUSE_SECONDS)
