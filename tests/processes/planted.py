"""What is changed in a server before it starts: bugs, to see that they are found, and delays."""

from __future__ import annotations

import signal

from qserver.control.plane import ControlPlane
from qserver.web.service import serving
from tests.processes.machine import endless


def charge_twice() -> None:
    """A request that moves counts where it came from, too."""
    endless()
    ControlPlane.give_back = lambda *_: None  # type: ignore[method-assign]


def begin_for_ever() -> None:
    """Processes come to nothing, not even to heeding signals."""
    serving._run = lambda *_: signal.sigwait([signal.SIGUSR1])
