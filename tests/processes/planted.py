"""What is changed in a server before it starts: bugs, to see that they are found, and delays."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import trio

from qserver.control.plane import ControlPlane
from qserver.control.replicas import Replicas
from qserver.engine.replica import Replica
from qserver.web.service import serving
from tests.processes.machine import endless


def charge_twice() -> None:
    """A request that moves counts where it came from, too."""
    endless()
    ControlPlane.give_back = lambda *_: None  # type: ignore[method-assign]


def begin_for_ever() -> None:
    """Processes come to nothing, not even to heeding signals."""
    serving._run = lambda *_: signal.sigwait([signal.SIGUSR1])


def temporary_files_here() -> None:
    """Temporary files are made in a folder of its own."""
    Path("temporary").mkdir(exist_ok=True)
    tempfile.tempdir = str(Path("temporary").absolute())


def ignore_the_number() -> None:
    """A follower shows what it has, and it gets it late."""
    endless()
    follow = Replica.follow

    async def late(self: Replica, messages: AsyncGenerator[Any, None]) -> None:
        async def slowly() -> AsyncGenerator[Any, None]:
            async for message in messages:
                await trio.sleep(0.01)
                yield message

        await follow(self, slowly())

    Replica.follow = late  # type: ignore[method-assign,assignment]
    Replicas._number = lambda *_: 0  # type: ignore[method-assign]
