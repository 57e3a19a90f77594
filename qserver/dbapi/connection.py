"""A connection: a client, and the transaction that is open between two commits.

    no transaction ──► first statement: POST /v1/transaction/open ──► open
    open ──► commit(), rollback() ──► no transaction

With `autocommit` each statement is a request of its own, and a transaction to itself; then the
server runs one that meets a conflict again, as it does for every request. In an open transaction
the conflict shows at the commit: `OperationalError` with sqlstate 40001, and nothing was applied.

A transaction that the server has ended (idle for ten minutes, a restart) stays this connection's
until `rollback()`: every statement fails, so that no half of it can be taken for the whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

from qserver.client import Client, ConnectionLost, Statement, Stream
from qserver.client.answers import Result
from qserver.client.failures import ended_by
from qserver.client.requests import Parameters
from qserver.dbapi import exceptions
from qserver.dbapi.cursor import Cursor
from qserver.dbapi.exceptions import InterfaceError, ProgrammingError, errors_of_pep_249
from qserver.errors import QserverError

IDLE_MS: Final = 600_000
"""How long the server lets a transaction rest: the most that it grants."""


class Connection:
    """One user of a database. Not for several threads at once."""

    Warning = exceptions.Warning
    Error = exceptions.Error
    InterfaceError = exceptions.InterfaceError
    DatabaseError = exceptions.DatabaseError
    DataError = exceptions.DataError
    OperationalError = exceptions.OperationalError
    IntegrityError = exceptions.IntegrityError
    InternalError = exceptions.InternalError
    ProgrammingError = exceptions.ProgrammingError
    NotSupportedError = exceptions.NotSupportedError

    def __init__(
        self,
        client: Client,
        *,
        autocommit: bool = False,
        read_only: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._client = client
        self._autocommit = autocommit
        self._read_only = read_only
        self.settings = dict(settings or {})
        """Of the session, by their names; what is changed holds from the next transaction on."""
        self._transaction: str | None = None
        self._unread: Cursor | None = None
        self.closed = False

    def __repr__(self) -> str:
        state = "closed" if self.closed else "in a transaction" if self._transaction else "idle"
        return f"<connection to {self._client.url}, {state}>"

    @property
    def in_transaction(self) -> bool:
        return self._transaction is not None

    @property
    def autocommit(self) -> bool:
        """Whether each statement is a transaction of its own."""
        return self._autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        self._refuse_in_transaction("autocommit")
        self._autocommit = value

    @property
    def read_only(self) -> bool:
        """Whether transactions refuse to write."""
        return self._read_only

    @read_only.setter
    def read_only(self, value: bool) -> None:
        self._refuse_in_transaction("read_only")
        self._read_only = value

    def cursor(self, *, streaming: bool = False) -> Cursor:
        """A cursor. One that streams reads rows as they are fetched, and has no `rowcount`."""
        self._check_open()
        return Cursor(self, streaming=streaming)

    def commit(self) -> None:
        """Apply what the open transaction did; without one it does nothing.

        If the answer is lost (sqlstate 08006) the outcome is unknown: `commit()` again asks for it.
        """
        self._check_open()
        self._read_rest()
        if self._transaction is None:
            return
        try:
            with errors_of_pep_249():
                self._client.commit_transaction(self._transaction)
        except exceptions.DatabaseError as error:
            cause = error.__cause__
            assert isinstance(cause, QserverError)
            if ended_by(cause) and not isinstance(cause, ConnectionLost):
                self._transaction = None
            raise
        self._transaction = None

    def rollback(self) -> None:
        """Undo what the open transaction did; without one it does nothing."""
        self._check_open()
        with suppress(exceptions.Error):
            self._read_rest()  # a cursor keeps its rows
        transaction, self._transaction = self._transaction, None
        if transaction is None:
            return
        # One that the server has ended, or ends when nobody uses it, is rolled back as well.
        with suppress(QserverError):
            self._client.roll_back_transaction(transaction)

    def ping(self) -> None:
        """Ask the server for an answer, outside of the transaction."""
        self._check_open()
        with errors_of_pep_249():
            self._client.query("SELECT 1")

    def close(self) -> None:
        """Roll back what is open; then every use raises `InterfaceError`."""
        if not self.closed:
            self.rollback()
            self.closed = True
            self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Commit, or roll back after an exception; then close."""
        try:
            if kind is None and not self.closed:
                self.commit()
        finally:
            self.close()

    # What cursors do.

    def run(self, sql: str, params: Parameters | None, **options: Any) -> Result:
        """Run one statement, in the transaction."""
        with errors_of_pep_249():
            return self._client.query(sql, params, **self._place(), **options)

    def stream(self, sql: str, params: Parameters | None) -> Stream:
        """Run one statement whose rows come in a stream, in the transaction."""
        with errors_of_pep_249():
            return self._client.stream(sql, params, format="arrays", **self._place())

    def run_together(self, statements: Sequence[Statement]) -> int:
        """Run statements in one request, all or none of them; how many rows they affected."""
        with errors_of_pep_249():
            return self._client.transaction(statements, **self._place()).affected_rows

    def begin(self) -> None:
        """Open a transaction if there is none, whatever `autocommit` says."""
        self._check_open()
        if self._transaction is None:
            with errors_of_pep_249():
                opened = self._client.open_transaction(
                    idle_ms=IDLE_MS,
                    read_only=self._read_only or None,
                    settings=self.settings or None,
                )
            self._transaction = opened["id"]

    def rolled_back_by_statement(self) -> None:
        """ROLLBACK as a statement ends a transaction as `rollback()` does."""
        self._transaction = None

    def wait_for(self, cursor: Cursor | None) -> None:
        """Let what comes next wait until the cursor has its rows; None: it has."""
        self._unread = cursor

    def _place(self) -> dict[str, Any]:
        """Where the next statement runs, as options of a request."""
        self._check_open()
        self._read_rest()
        if not self._autocommit:
            self.begin()
        if self._transaction is not None:
            return {"transaction": self._transaction}
        settings = dict(self.settings)
        if self._read_only:
            settings["default_transaction_read_only"] = "on"
        return {"settings": settings} if settings else {}

    def _read_rest(self) -> None:
        if self._unread is not None:
            self._unread.read_rest()

    def _check_open(self) -> None:
        if self.closed:
            raise InterfaceError("the connection is closed")

    def _refuse_in_transaction(self, name: str) -> None:
        self._check_open()
        if self._transaction is not None:
            raise ProgrammingError(f"{name} cannot be set inside of a transaction")
