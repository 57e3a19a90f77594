"""Where a server can be told to die, and which bugs can be planted in it: see `launcher`."""

from __future__ import annotations

from typing import Final

STEPS: Final = (
    "open",
    "append",
    "read",
    "save_pages",
    "save_checkpoint",
    "load_checkpoint",
    "load_outlines",
    "change_checkpoints",
    "load_pages",
    "forget",
    "close",
)
"""Calls to the SQLite file of a log."""

BUGS: Final = ("early", "greedy", "forgetful")
"""An append is called done when it is begun; a checkpoint cuts the log one version too far; a
sequence does not note which numbers it has reserved."""
