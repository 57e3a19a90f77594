"""Starts a control plane once, when it is imported: what a process makes but once is there then.

The process that forks servers imports it (`forked`), so that a server need not make it again: lazy
modules, tables of the parser, compiled code. Nothing of the plane itself is left.
"""

from __future__ import annotations

import trio

from qserver.control import MemoryLogs
from tests.control.planes import opened_plane


async def start_and_stop() -> None:
    async with opened_plane(MemoryLogs()):
        pass


trio.run(start_and_stop)
