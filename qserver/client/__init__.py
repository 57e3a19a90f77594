"""The Python client: SQL over HTTP, as functions.

    from qserver.client import Client

    with Client("http://127.0.0.1:8000", key) as client:
        for name, in client.query("SELECT name FROM users WHERE id = ?", [1]).rows:
            print(name)

There are two flavours, `Client` and, for programs that run on Trio, `TrioClient`; they differ in
`await` only. What is sent and how an answer reads is decided once, in modules that do no I/O:

    calls.py ──► requests.py ──► Request ──► synchronous.py ──► status, headers, body ─┐
    calls.py ◄── answers.py, events.py (streams) ◄── with_trio.py ◄────────────────────┘

A failure is an exception of `qserver.errors`, the class that the server raised, found by its code;
what happens between the two machines is `ConnectionFailed` or `ConnectionLost`. Values are what
JSON carries (docs/http.md has the table): NUMERIC and dates are strings, exact to the last digit.

The client never writes to a log, and the key is in none of its texts.
"""

from __future__ import annotations

from qserver.client.answers import Result, TransactionResult
from qserver.client.failures import ConnectionFailed, ConnectionLost, UnexpectedAnswer
from qserver.client.requests import Statement
from qserver.client.synchronous import Client, Stream
from qserver.client.with_trio import TrioClient, TrioStream

__all__ = [
    "Client",
    "ConnectionFailed",
    "ConnectionLost",
    "Result",
    "Statement",
    "Stream",
    "TransactionResult",
    "TrioClient",
    "TrioStream",
    "UnexpectedAnswer",
]
