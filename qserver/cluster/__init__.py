"""Several processes that serve one data folder: how they talk, and what they count together.

links           calls, locks, streams and moved connections between processes
calling         the caller's end of a connection
serving         the callee's end: a task for each call
locks, streams  what more than one message belongs to
connection      messages over a socket
messages        all messages
frames          whole messages in a stream of bytes, with a descriptor
plain_values    the values that can be sent
shared_windows  rate limits that hold for all processes together
supervisor      forks the processes, and forks anew what has ended
"""

from __future__ import annotations

from qserver.cluster.connection import Report
from qserver.cluster.links import Failed, HeldLock, Links, Listeners
from qserver.cluster.locks import RemoteLocks
from qserver.cluster.serving import Handler, Service, StreamHandler, Welcome
from qserver.cluster.shared_windows import SharedWindows
from qserver.cluster.streams import Stream

__all__ = [
    "Failed",
    "Handler",
    "HeldLock",
    "Links",
    "Listeners",
    "RemoteLocks",
    "Report",
    "Service",
    "SharedWindows",
    "Stream",
    "StreamHandler",
    "Welcome",
]
