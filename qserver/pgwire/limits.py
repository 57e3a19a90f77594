"""The bounds of sessions, with the relations between them."""

from __future__ import annotations

from qserver.limits import STATEMENT_BYTES_MAX

CONNECTIONS_MAX, CONNECTIONS_OF_ORGANIZATION_MAX = 500, 100
"""Connections that are open at once, of all and of an organization; the next is refused with
53300."""

STRANGERS_MAX = 100
"""Connections among them that are not authenticated yet."""

STARTUP_BYTES_MAX, STARTUP_SECONDS_MAX = 10 * 1024, 30.0
"""The longest message of a client that is not authenticated, and how long that may take."""

FAILURES_MAX, FAILURES_SECONDS = 30, 60
"""Failed authentications from one address in a window; then it is refused until one is older."""

MESSAGE_BYTES_MAX = 8 * 1024 * 1024
"""The longest message of parameters."""

COPY_PIECE_BYTES_MAX = 1024 * 1024
"""The longest message of COPY; rows may be cut anywhere between messages."""

OUTPUT_BYTES_MAX = 256 * 1024
"""Bytes of answers that wait for a client to read; then its statement waits."""

SEND_SECONDS_MAX = 60.0
"""A client that reads nothing for so long is cut off."""

TRANSACTION_IDLE_SECONDS = 600.0
"""A session that is idle in a transaction for so long ends, with 25P03."""

assert STARTUP_BYTES_MAX < COPY_PIECE_BYTES_MAX < STATEMENT_BYTES_MAX < MESSAGE_BYTES_MAX
assert STRANGERS_MAX < CONNECTIONS_MAX and CONNECTIONS_OF_ORGANIZATION_MAX < CONNECTIONS_MAX
