"""COPY FROM in the statistics of statements: one run with all its rows; its inserts do not count.

It counts from its first to its last piece of data, as in PostgreSQL, so the time in which a
client had nothing to send is in its total; `cpu_time` is without that.
"""

from __future__ import annotations

from qserver.lexing.fingerprint import parameterize
from qserver.query.cursor import Cursor, Heading, rows_at_once
from qserver.query.open_transaction import OpenTransaction
from qserver.query.request import Request, RequestContext


class CopyClock:
    """Measures one COPY FROM."""

    def __init__(self, request: Request, transaction: OpenTransaction, text: str) -> None:
        self._request = request
        self._transaction = transaction
        self._text = text
        self._now = request.environment.now
        self._began = self._now()
        self._worked = 0.0
        self._since = self._began

    def works(self) -> None:
        """Note that there is work from now on."""
        self._since = self._now()

    def waits(self) -> None:
        """Note that there was work until now."""
        self._worked += max(0.0, self._now() - self._since)

    def count(self, rows: int) -> None:
        """Count the run, which has come to its end."""
        counters = self._request.environment.statements
        if counters is None:
            return
        counter = counters.counter_of(parameterize(self._text).fingerprint)
        seconds = max(0.0, self._now() - self._began)
        context = RequestContext(self._request, self._transaction.transaction.snapshot)
        cursor = Cursor(rows_at_once([]), context, self._text, Heading(counter=counter))
        cursor.waited = max(0.0, seconds - self._worked)
        cursor.count(seconds, rows)
