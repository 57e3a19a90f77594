"""PostgreSQL's wire protocol, version 3, on the engine that HTTP serves.

    psql, psycopg, asyncpg, JDBC … ─► socket ─► session ─► SqlDatabase, OpenTransaction

messages, problems      frames and messages, errors with all their fields
types, text_format,     oids, and values in both formats
  binary_format, rows
startup, authentication, how a client enters: TLS, SCRAM or a key, its database
  end_point, settings
session                 one generator from the first byte to the last, without I/O; `waits`
state, transactions,    what it holds, its transaction
  controlling
simple, extended        the two ways to run statements
executing, prepared,    statements and portals
  running, texts, tags
admission               what precedes and follows a statement of either protocol
reading                 a read outside of a transaction, answered in one call
round_trips             prepared reads that come again, recognized by their bytes
copying, …              COPY
connection, listener    sockets, tasks, limits, the end
host                    what all sessions share

Nothing is stored and nothing is planned here: a statement runs as over HTTP, with the same plans,
limits and permissions.
"""

from __future__ import annotations

from qserver.pgwire.end_point import end_point_of as end_point_of
from qserver.pgwire.host import Host as Host
from qserver.pgwire.host import Statistics as Statistics
from qserver.pgwire.listener import MARK as MARK
from qserver.pgwire.listener import Listener as Listener
