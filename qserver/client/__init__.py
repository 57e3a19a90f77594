"""The Python client: SQL over HTTP, as functions.

    from qserver.client import Client

    with Client("http://127.0.0.1:8000", key) as client:
        for name, in client.query("SELECT name FROM users WHERE id = ?", [1]).rows:
            print(name)

There are two flavours: `Client`, and `AsyncClient` for programs on asyncio or Trio. They differ in
`await` alone. What they do is written once, and each sends and receives in its own way:

    calls.py ──► requests.py ──► Request ──► caller.py ──► synchronous.py, awaiting.py ──► server
    calls.py ◄── answers.py, events.py (streams) ◄── status, headers, body ◄─────────────────┘

A failure raises the exception of `qserver.errors` that the server raised, found by its code; a
network failure raises `ConnectionFailed` or `ConnectionLost`. Values are as JSON carries them
(docs/http.md has the table): NUMERIC and dates are strings, exact to the last digit.

The client never writes to a log, and no message contains the key.
"""

from __future__ import annotations

from qserver.client.answers import Result, TransactionResult
from qserver.client.awaiting import (
    AsyncClient,
    AsyncFeed,
    AsyncLive,
    AsyncStream,
    AsyncTransaction,
    TrioClient,
    TrioFeed,
    TrioLive,
    TrioStream,
    TrioTransaction,
)
from qserver.client.columns import Columns
from qserver.client.failures import ConnectionFailed, ConnectionLost, UnexpectedAnswer
from qserver.client.feed import Version
from qserver.client.live import Change
from qserver.client.requests import Named, Statement
from qserver.client.synchronous import Client, Feed, Live, Stream, Transaction

__all__ = [
    "AsyncClient",
    "AsyncFeed",
    "AsyncLive",
    "AsyncStream",
    "AsyncTransaction",
    "Change",
    "Client",
    "Columns",
    "ConnectionFailed",
    "ConnectionLost",
    "Feed",
    "Live",
    "Named",
    "Result",
    "Statement",
    "Stream",
    "Transaction",
    "TransactionResult",
    "TrioClient",
    "TrioFeed",
    "TrioLive",
    "TrioStream",
    "TrioTransaction",
    "UnexpectedAnswer",
    "Version",
]
