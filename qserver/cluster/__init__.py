"""Several processes, of one machine or of several: how they talk, and what they count together.

links           calls, locks, streams and moved connections between processes
ways            what links need of the world: how a connection begins
doors           the ways in to processes of one machine, which outlive them
remote_doors    the ways between nodes, processes of different machines: TCP
handshake       how nodes prove to each other that they have the cluster's key
sparing_reports of what strangers can cause as often as they like
calling         the caller's end of a connection
serving         the callee's end: a task for each call
locks, streams  what more than one message belongs to
connection      messages over a socket
outgoing        messages that wait to be sent, in turns
pieces          large messages in several frames
messages        all messages
frames          messages and pieces in a stream of bytes, with a descriptor
plain_values    the values that can be sent
shared_connections how many connections each process has
shared_versions durable versions that followers of databases read
shared_windows  rate limits that hold for all processes together
supervisor      forks the processes, and forks anew what has ended
"""

from __future__ import annotations

from qserver.cluster.connection import Report
from qserver.cluster.doors import Doors, LocalDoors
from qserver.cluster.links import Failed, HeldLock, Links
from qserver.cluster.locks import RemoteLocks
from qserver.cluster.remote_doors import AddressOf, Relay, RemoteDoors
from qserver.cluster.serving import Handler, Service, StreamHandler, Welcome
from qserver.cluster.shared_connections import OwnConnections, SharedConnections
from qserver.cluster.shared_versions import OwnVersions, SharedVersions, digest_of
from qserver.cluster.shared_windows import SharedWindows
from qserver.cluster.streams import Stream
from qserver.cluster.ways import Ways

__all__ = [
    "AddressOf",
    "Doors",
    "Failed",
    "Handler",
    "HeldLock",
    "Links",
    "LocalDoors",
    "OwnConnections",
    "OwnVersions",
    "Relay",
    "RemoteDoors",
    "RemoteLocks",
    "Report",
    "Service",
    "SharedConnections",
    "SharedVersions",
    "SharedWindows",
    "Stream",
    "StreamHandler",
    "Ways",
    "Welcome",
    "digest_of",
]
