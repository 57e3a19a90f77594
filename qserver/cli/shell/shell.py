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
either is applied before its COMMIT. BEGIN READ ONLY opens a transaction in a script, too: it meets
no conflict.

The shell forgets an open transaction when the server has ended it, and not before: a COMMIT that
was refused (rate limit, no connection) can be sent again, and so can one whose answer was lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

from qserver.cli.layouts import LAYOUTS, Expanded, Layout, Write
from qserver.cli.shell.failures import StatementFailed
from qserver.cli.shell.transaction_words import Act, act_of
from qserver.cli.splitting import Statement
from qserver.client import Client, Result
from qserver.errors import (
    Applied,
    InvalidRequest,
    NotFound,
    ProgramLimitExceeded,
    QserverError,
    RateLimited,
)
from qserver.limits import SCRIPT_DEPTH_MAX, TRANSACTION_STATEMENTS_MAX
from qserver.values.keys import Row

_Answer = TypeVar("_Answer")

BATCH_ROWS: Final = 1000
BATCH_SECONDS: Final = 0.25
"""The longest delay before slowly arriving rows are shown."""

IDLE_MS: Final = 600_000
"""How long the server keeps an open transaction while a person thinks."""

WATCH_RETRY_SECONDS: Final = 60.0
"""How long \\watch waits for a server that is gone; a restart takes less."""

TRANSACTION_GONE: Final = "QS030"
TRANSACTION_FAILED: Final = "25P02"
_CONFLICT: Final = "40001"
_ASK_AGAIN: Final = "COMMIT again asks the server what became of it."

_READS: Final = frozenset({"select", "with", "values", "table", "explain", "show"})
"""The first words of statements that are streamed, as is one that begins with a parenthesis."""

_DEFINES: Final = frozenset({"create", "alter", "drop"})
_BESIDES: Final = frozenset(
    {"or", "replace", "unique", "temp", "temporary", "global", "local", "unlogged", "recursive"}
)
"""Words between CREATE and what it creates."""
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
        self.as_of: int | str | None = None
        """The version, or the time, that statements read; None: the newest."""
        self.last_query = ""
        """The last statement that read, for \\watch."""
        self.line = 1
        """The line of the statement that is running."""
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
        self._has_failed = False
        self._is_in_doubt = False
        """Whether a COMMIT was sent, and no answer came."""

    @property
    def mark(self) -> str:
        """For the prompt: `*` in a transaction, `!` if it failed, `?` if its end is unknown."""
        if not self.in_transaction:
            return ""
        return "?" if self._is_in_doubt else "!" if self._has_failed else "*"

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
            with suppress(QserverError):  # the server ends it when it has been idle
                self.leave_transaction()
            self._scripts -= 1
            self.is_quiet, self.is_patient, self.opens_transactions, self._before_output = kept

    def take(self, statement: Statement) -> None:
        """Run one statement or command; raises `StatementFailed` with the statement and error."""
        started = time.perf_counter()
        self.line = statement.first_line
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
        act = act_of(statement)
        if act is Act.COMMIT:
            self._commit()
        elif act is Act.ROLL_BACK:
            self._roll_back()
        elif act is not None:
            self._begin(statement, act is Act.BEGIN_READ_ONLY)
        elif self._block is not None:
            self._collect(statement, self._block)
        else:
            self._run(statement)

    # --- a transaction ---------------------------------------------------------------------------

    def _begin(self, statement: Statement, read_only: bool) -> None:
        if self.in_transaction:
            raise InvalidRequest(
                "a transaction is open already",
                hint="End it with COMMIT or ROLLBACK; blocks do not nest.",
            )
        if self.opens_transactions or read_only:
            options = {"as_of": self.as_of, "read_only": read_only or None, "idle_ms": IDLE_MS}
            opened = self.patiently(lambda: self.client.open_transaction(**options))
            self._transaction, self._has_failed = opened["id"], False
            self._note("BEGIN\n")
            return
        self._block = [statement]
        self._note("BEGIN: what follows is sent together at COMMIT.\n")

    def _collect(self, statement: Statement, block: list[Statement]) -> None:
        # One too many is enough for COMMIT to refuse the block; a statement of it never runs alone.
        if len(block) <= TRANSACTION_STATEMENTS_MAX + 1:
            block.append(statement)

    def _commit(self) -> None:
        if self._transaction is not None:
            self._commit_open(self._transaction)
        elif self._block is not None:
            self._send_block(self._block[1:])
        else:
            self.say("There is no transaction to commit.\n")

    def _commit_open(self, transaction: str) -> None:
        try:
            self.patiently(lambda: self.client.commit_transaction(transaction))
        except KeyboardInterrupt:
            self._is_in_doubt = True
            raise
        except QserverError as error:
            if error.applied is Applied.UNKNOWN:
                self._is_in_doubt, error.hint = True, _ASK_AGAIN
            elif error.code == TRANSACTION_FAILED:
                self.leave_transaction()
                error.hint = "It was rolled back."
            elif error.code in (TRANSACTION_GONE, _CONFLICT):
                self._tell_gone(error)
            raise
        self._forget_transaction()
        self._note("COMMIT\n")

    def _send_block(self, statements: list[Statement]) -> None:
        self._block = None
        if len(statements) > TRANSACTION_STATEMENTS_MAX:
            raise ProgramLimitExceeded(
                f"a transaction has at most {TRANSACTION_STATEMENTS_MAX} statements",
                detail="Nothing of it was sent.",
                hint="Use several transactions, or INSERT several rows with one statement.",
            )
        if statements:
            self._send(statements)
        self._note("COMMIT\n")

    def _send(self, statements: list[Statement]) -> None:
        texts = [each.text for each in statements]
        options = {} if self.as_of is None else {"as_of": self.as_of}
        try:
            done = self.patiently(lambda: self.client.transaction(texts, **options))
        except QserverError as error:
            if error.statement is not None and error.statement < len(statements):
                raise StatementFailed(statements[error.statement], error) from error
            raise
        for statement, result in zip(statements, done.results, strict=True):
            self._print(statement, result)

    def _roll_back(self) -> None:
        if self._transaction is not None:
            self._check_no_doubt()
            self.leave_transaction()
            self._note("ROLLBACK\n")
        elif self._block is not None:
            self._block = None
            self._note("ROLLBACK: nothing of it was sent.\n")
        else:
            self.say("There is no transaction to roll back.\n")

    def _check_no_doubt(self) -> None:
        if self._is_in_doubt:
            raise InvalidRequest(
                "it is not known whether the transaction was committed", hint=_ASK_AGAIN
            )

    def _tell_gone(self, error: QserverError) -> None:
        """The transaction has ended, and nothing of it was applied, unless a COMMIT was lost."""
        if error.code == TRANSACTION_GONE and not self._is_in_doubt:
            self._say("The transaction is gone: nothing of it was applied.\n")
        self._forget_transaction()

    def _forget_transaction(self) -> None:
        self._transaction, self._has_failed, self._is_in_doubt = None, False, False

    def leave_transaction(self) -> None:
        """Roll back the open transaction, if there is one; it may be gone already."""
        transaction, in_doubt = self._transaction, self._is_in_doubt
        self._forget_transaction()
        if transaction is not None and not in_doubt:
            with suppress(NotFound):
                self.client.roll_back_transaction(transaction)

    def leave(self) -> None:
        """End what is open when the person leaves, and tell how."""
        was_open, in_doubt = self._transaction is not None, self._is_in_doubt
        with suppress(QserverError):  # the server rolls it back when it has been idle
            self.leave_transaction()
        if in_doubt:
            self.say("It is not known whether the transaction was committed.\n")
        elif was_open:
            self.say("The open transaction was rolled back.\n")

    # --- one statement ---------------------------------------------------------------------------

    def _run(self, statement: Statement) -> None:
        self._check_no_doubt()
        try:
            self._run_one(statement)
        except QserverError as error:
            if error.code == TRANSACTION_GONE:
                self._tell_gone(error)
            elif not error.code.startswith(("QS", "08")):  # those ran no statement
                self._has_failed = True
            raise
        self._has_failed = False

    @property
    def _options(self) -> dict[str, Any]:
        if self._transaction is not None:
            return {"transaction": self._transaction}
        return {} if self.as_of is None else {"as_of": self.as_of}

    def _run_one(self, statement: Statement) -> None:
        words = statement.words(1)
        if not words or words[0] in _READS:
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
        if self.in_transaction or self.as_of is not None:
            raise InvalidRequest(
                "a live query follows what is committed",
                hint="End the transaction first." if self.in_transaction else "\\as_of now, first.",
            )
        with self.client.live(sql, retry_seconds=WATCH_RETRY_SECONDS) as query:
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
        words = statement.words(8)
        first = words[0] if words else ""
        if first in _TAGGED:
            self._note(f"{first.upper()} {affected_rows}\n")
        elif first in _DEFINES:
            self.names_are_stale = True
            kind = next((each for each in words[1:] if each not in _BESIDES), "")
            self._note(f"{first} {kind}".upper().rstrip() + "\n")
        else:
            self._note(f"{first.upper()}\n")

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
