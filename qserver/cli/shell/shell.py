"""Runs one statement after the other, and prints each result as it arrives.

        take(statement)
          ├─ \\command      commands.py
          ├─ BEGIN         block = []; at the prompt, client.open_transaction
          ├─ in a block    block.append
          ├─ COMMIT        client.transaction(block)
          └─ else          client.stream or client.query ─► layout ─► write

The shell streams a statement that reads, whatever its size: it prints rows in batches and drops
them.

At the prompt, BEGIN opens a transaction on the server: statements run in it as they are typed. In a
script, BEGIN begins a block that the shell only collects: COMMIT sends it as one request, which the
server runs again after a conflict, and which counts as one request for the rate limit. Nothing of
either is applied before its COMMIT.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

from qserver.cli.layouts import LAYOUTS, Expanded, Layout, Row, Write
from qserver.cli.shell.failures import StatementFailed
from qserver.cli.splitting import Statement
from qserver.client import Client, Result
from qserver.errors import (
    InvalidRequest,
    NotFound,
    ProgramLimitExceeded,
    QserverError,
    RateLimited,
)
from qserver.limits import SCRIPT_DEPTH_MAX, TRANSACTION_STATEMENTS_MAX

_Answer = TypeVar("_Answer")

BATCH_ROWS: Final = 1000
BATCH_SECONDS: Final = 0.25
"""The longest delay before slowly arriving rows are shown."""

IDLE_MS: Final = 600_000
"""How long the server keeps an open transaction while a person thinks."""

TRANSACTION_GONE: Final = "QS030"

_READS: Final = frozenset({"select", "with", "values", "table", "explain", "show", ""})
"""The first words of statements that are streamed; the empty word is a parenthesis."""

_DEFINES: Final = frozenset({"create", "alter", "drop"})
_BEGINS: Final = frozenset({("begin",), ("start", "transaction")})
_COMMITS: Final = frozenset({"commit", "end"})
_DROPS: Final = frozenset({"rollback", "abort"})
_TAGGED: Final = frozenset({"insert", "update", "delete", "merge"})


class Shell:
    """The state of `qserver sql` between two statements."""

    def __init__(
        self,
        client: Client,
        run_command: Callable[[Shell, str], None],
        write: Write,
        say: Write,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.client = client
        self.database = client.database or ""
        self.layout_name = "aligned"
        self.is_expanded = False
        self.is_timed = False
        self.is_quiet = False
        """Statements without rows print nothing, as files want."""
        self.is_patient = False
        """Wait when the server asks to, instead of failing: for scripts."""
        self.opens_transactions = False
        """BEGIN opens a transaction at once, instead of collecting a block: for people."""
        self.is_over = False
        self.last_query = ""
        """The last statement that read, for \\watch."""
        self.names_are_stale = True
        self._run_command = run_command
        self._write = write
        self._say = say
        self._pause = pause
        self._before_output: Callable[[], None] = _nothing
        self._scripts = 0
        self._file: TextIO | None = None
        self._block: list[Statement] | None = None
        self._transaction: str | None = None

    @property
    def in_transaction(self) -> bool:
        """Is there a block, or an open transaction?"""
        return self._block is not None or self._transaction is not None

    @property
    def block(self) -> list[Statement] | None:
        """The statements since BEGIN, with BEGIN itself; None outside of a block."""
        return self._block

    def write(self, text: str) -> None:
        if self._file is None:
            self._before_output()
            self._write(text)
        else:
            self._file.write(text)

    def say(self, text: str) -> None:
        """Print a text that is not a result: notes, timings, errors."""
        self._before_output()
        self._say(text)

    def write_to(self, path: Path | None) -> None:
        """Write results to this file from now on; None: to the terminal again."""
        file = None if path is None else path.open("w", encoding="utf-8")
        if self._file is not None:
            self._file.close()
        self._file = file

    @contextmanager
    def in_script(self, before_output: Callable[[], None]) -> Iterator[None]:
        """Run a script quietly and patiently, and clear its progress bar before output."""
        if self._scripts == SCRIPT_DEPTH_MAX:
            raise InvalidRequest(f"files include each other more than {SCRIPT_DEPTH_MAX} deep")
        if self.in_transaction:
            raise InvalidRequest(
                "a transaction is open", hint="End it with COMMIT or ROLLBACK first."
            )
        kept = self.is_quiet, self.is_patient, self.opens_transactions, self._before_output
        self.is_quiet, self.is_patient, self.opens_transactions = True, True, False
        self._before_output = before_output
        self._scripts += 1
        try:
            yield
        finally:
            self._block = None
            self._scripts -= 1
            self.is_quiet, self.is_patient, self.opens_transactions, self._before_output = kept

    def take(self, statement: Statement) -> None:
        """Run one statement or command; raises `StatementFailed` with the statement and error."""
        started = time.perf_counter()
        try:
            if statement.is_command:
                self._run_command(self, statement.text)
                return
            self._take_statement(statement)
        except QserverError as error:
            raise StatementFailed(statement, error) from error
        if self.is_timed:
            self.say(f"Time: {(time.perf_counter() - started) * 1000:.3f} ms\n")

    def _take_statement(self, statement: Statement) -> None:
        words = statement.words(3)
        first = words[0] if words else ""
        if (first,) in _BEGINS or words[:2] in _BEGINS:
            self._begin(statement)
        elif first in _COMMITS:
            self._commit()
        elif first in _DROPS and "to" not in words[1:]:
            self._drop()
        elif self._block is not None:
            self._collect(statement, self._block)
        else:
            self._run(statement, first)

    # --- a block ---------------------------------------------------------------------------------

    def _begin(self, statement: Statement) -> None:
        if self.in_transaction:
            raise InvalidRequest(
                "a transaction is open already",
                hint="End it with COMMIT or ROLLBACK; blocks do not nest.",
            )
        if self.opens_transactions:
            opened = self.client.open_transaction(idle_ms=IDLE_MS)
            self._transaction = opened["id"]
            self._note("BEGIN\n")
            return
        self._block = [statement]
        self._note("BEGIN: what follows is sent together at COMMIT.\n")

    def _collect(self, statement: Statement, block: list[Statement]) -> None:
        if len(block) > TRANSACTION_STATEMENTS_MAX:
            self._block = None
            raise ProgramLimitExceeded(
                f"a transaction has at most {TRANSACTION_STATEMENTS_MAX} statements",
                detail="Nothing of it was sent.",
                hint="Use several transactions, or INSERT several rows with one statement.",
            )
        block.append(statement)

    def _commit(self) -> None:
        if self._transaction is not None:
            transaction, self._transaction = self._transaction, None
            self.client.commit_transaction(transaction)
            self._note("COMMIT\n")
            return
        if self._block is None:
            self.say("There is no transaction to commit.\n")
            return
        statements, self._block = self._block[1:], None
        try:
            done = self.patiently(
                lambda: self.client.transaction([each.text for each in statements])
            )
        except QserverError as error:
            if error.statement is not None and error.statement < len(statements):
                raise StatementFailed(statements[error.statement], error) from error
            raise
        for statement, result in zip(statements, done.results, strict=True):
            self._print(statement, result)
        self._note("COMMIT\n")

    def _drop(self) -> None:
        if self._transaction is not None:
            self.leave_transaction()
            self._note("ROLLBACK\n")
            return
        if self._block is None:
            self.say("There is no transaction to roll back.\n")
            return
        self._block = None
        self._note("ROLLBACK: nothing of it was sent.\n")

    def leave_transaction(self) -> bool:
        """Roll back the open transaction, if there is one; it may be gone already."""
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            with suppress(NotFound):
                self.client.roll_back_transaction(transaction)
        return transaction is not None

    # --- one statement ---------------------------------------------------------------------------

    def _run(self, statement: Statement, first: str) -> None:
        try:
            self._run_one(statement, first)
        except QserverError as error:
            if error.code == TRANSACTION_GONE:
                self._transaction = None
                self._say("The transaction is gone: nothing of it was applied.\n")
            raise

    @property
    def _options(self) -> dict[str, Any]:
        return {} if self._transaction is None else {"transaction": self._transaction}

    def _run_one(self, statement: Statement, first: str) -> None:
        if first in _READS:
            self.last_query = statement.text
            self.patiently(lambda: self._stream(statement))
        else:
            result = self.patiently(lambda: self.client.query(statement.text, **self._options))
            self._print(statement, result)

    def patiently(self, call: Callable[[], _Answer]) -> _Answer:
        """Make a call; in a script, again when the server's rate limit allows it."""
        while True:
            try:
                return call()
            except RateLimited as error:
                # The server refused the request unread: sending it again is safe.
                if not self.is_patient:
                    raise
                seconds = vars(error).get("retry_after_seconds", 1)
                self.say(f"The server asks to wait {seconds} s (rate limit).\n")
                self._pause(float(seconds))

    def _stream(self, statement: Statement) -> None:
        with self.client.stream(statement.text, **self._options) as rows:
            if not rows.columns:
                for _ in rows:
                    raise AssertionError("rows without columns")
                self._tag(statement, rows.affected_rows)
                return
            layout = self._layout()
            layout.begin(rows.columns, rows.types)
            count = 0
            for batch in _gathered(rows.batches()):
                layout.rows(batch)
                count += len(batch)
            layout.end(count)
        self._finish_result()

    def watch(self, sql: str) -> None:
        """Print a live query: its rows, then whatever changes, until it fails."""
        with self.client.live(sql) as query:
            self._print_rows(query.columns, query.types, query.rows)
            for version, deleted, inserted in query:
                self.say(f"Version {version}:\n")
                rows = [("delete", *row) for row in deleted] + [
                    ("insert", *row) for row in inserted
                ]
                self._print_rows(("op", *query.columns), ("text", *query.types), rows)

    def _print_rows(
        self, columns: tuple[str, ...], types: tuple[str, ...], rows: list[Row]
    ) -> None:
        layout = self._layout()
        layout.begin(columns, types)
        layout.rows(rows)
        layout.end(len(rows))
        self._finish_result()

    def _print(self, statement: Statement, result: Result) -> None:
        if result.columns:
            self._print_rows(result.columns, result.types, result.rows)
        else:
            self._tag(statement, result.affected_rows)

    def _layout(self) -> Layout:
        if self.is_expanded and self.layout_name == "aligned":
            return Expanded(self.write)
        return LAYOUTS[self.layout_name](self.write)

    def _finish_result(self) -> None:
        if self.layout_name == "aligned":
            self.write("\n")

    def _tag(self, statement: Statement, affected_rows: int) -> None:
        """`INSERT 3`, `CREATE TABLE`: printed as a note, so that output files hold only rows."""
        words = statement.words(2)
        if words and words[0] in _DEFINES:
            self.names_are_stale = True
        if words and words[0] in _TAGGED:
            self._note(f"{words[0].upper()} {affected_rows}\n")
        else:
            self._note(" ".join(words).upper() + "\n")

    def _note(self, text: str) -> None:
        if not self.is_quiet:
            self.say(text)


def _nothing() -> None:
    """The default `before_output`: no bar to clear."""


def _gathered(batches: Iterable[list[Row]]) -> Iterator[list[Row]]:
    """Merge batches into larger ones: many rows, or those of a quarter of a second."""
    gathered: list[Row] = []
    since = time.monotonic()
    for batch in batches:
        gathered += batch
        if len(gathered) >= BATCH_ROWS or time.monotonic() - since > BATCH_SECONDS:
            yield gathered
            gathered, since = [], time.monotonic()
    if gathered:
        yield gathered
