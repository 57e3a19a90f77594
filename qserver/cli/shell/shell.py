"""Runs one statement after the other, and prints each result as it arrives.

        take(statement)
          ├─ \\command      commands
          ├─ BEGIN         block = []; at the prompt, client.open_transaction
          ├─ in a block    block.append
          ├─ COMMIT        client.transaction(block)
          ├─ COPY          commands, as it reads the script; a block is opened first
          └─ else          client.stream or client.query ─► layout ─► write

The shell streams a statement that reads, whatever its size: it prints rows in batches and drops
them.

At the prompt, BEGIN opens a transaction on the server: statements run in it as they are typed. In a
script, BEGIN begins a block that the shell only collects: COMMIT sends it as one request, which the
server runs again after a conflict, and which counts as one request for the rate limit. COPY has a
request of its own, so a block with one becomes an open transaction there: the statements before it
run in it, and those behind it as they come. Nothing of either is applied before its COMMIT. BEGIN
READ ONLY opens a transaction in a script, too: it meets no conflict.

The shell forgets an open transaction when the server has ended it, and not before: a COMMIT that
was refused (rate limit, no connection) can be sent again, and so can one whose answer was lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

from qserver.cli.layouts import Write
from qserver.cli.shell.arguments import arguments_of
from qserver.cli.shell.conditions import WORDS, Conditions
from qserver.cli.shell.failures import StatementFailed, told
from qserver.cli.shell.output import Output, PagerLeft
from qserver.cli.shell.printing import Consume, Counted, Printer
from qserver.cli.shell.script_text import ScriptText, read_standard_input
from qserver.cli.shell.session_settings import SETTINGS_NOW, SessionSettings, SettingWords
from qserver.cli.shell.tags import defines, tag
from qserver.cli.shell.transaction_words import Act, act_of, check_count
from qserver.cli.shell.variables import Variables, is_true
from qserver.cli.splitting import Splitter, Statement
from qserver.client import Client, Result
from qserver.errors import (
    Applied,
    InvalidRequest,
    NotFound,
    QserverError,
    RateLimited,
)
from qserver.limits import SCRIPT_DEPTH_MAX, TRANSACTION_STATEMENTS_MAX
from qserver.values.keys import Row

_Answer = TypeVar("_Answer")

IDLE_MS: Final = 600_000
"""How long the server keeps an open transaction while a person thinks."""

WATCH_RETRY_SECONDS: Final = 60.0
"""How long \\live waits for a server that is gone; a restart takes less."""

TRANSACTION_GONE: Final = "QS030"
TRANSACTION_FAILED: Final = "25P02"
_CONFLICT: Final = "40001"
_ASK_AGAIN: Final = "COMMIT again asks the server what became of it."

_READS: Final = frozenset({"select", "with", "values", "table", "explain", "show"})
"""The first words of statements that are streamed, as is one that begins with a parenthesis."""


class Shell:
    """The state of `qserver sql` between two statements."""

    def __init__(
        self,
        client: Client,
        run_command: Callable[[Shell, Statement], None],
        write: Write,
        say: Write,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.client = client
        self._database = client.database or ""
        self.output = Output(write)
        self.printer = Printer(self.output)
        self.variables = Variables()
        self.conditions = Conditions()
        self.settings = SessionSettings()
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
        """The last statement that read, for \\live."""
        self.last_statement: Statement | None = None
        """The last statement, which \\g without one runs again."""
        self.last_failure: StatementFailed | None = None
        self.standard_input = self.script = ScriptText(read_standard_input)
        """What the process is given, and what runs: where rows behind COPY are read."""
        self.file_folder: str | None = None
        """The folder of the script that runs, for \\ir."""
        self.line = 1
        """The line of the statement that is running."""
        self.failures = 0
        """How many statements of scripts have failed."""
        self.edited: str | None = None
        """What \\e brought back, to be run or gone on with."""
        self.names_are_stale = True
        self.restricted_by: str | None = None
        """The key of \\restrict, which \\unrestrict has to name before another command may run."""
        self._run_command = run_command
        self._say = say
        self.pause = pause
        self._before_output: Callable[[], None] = _nothing
        self._scripts = 0
        self._block: list[Statement] | None = None
        self._transaction: str | None = None
        self._begun: Statement | None = None
        """BEGIN, of the block or of the open transaction."""
        self._has_failed = False
        self._is_in_doubt = False
        """Whether a COMMIT was sent, and no answer came."""
        self._sets = SettingWords()
        """The settings that the open transaction has changed."""

    @property
    def database(self) -> str:
        """The name of the database, which the server knows where nobody has said it."""
        if not self._database:
            self.learn_database()
        return self._database

    @database.setter
    def database(self, name: str) -> None:
        self._database = name

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
    def begun(self) -> Statement | None:
        """BEGIN, while what it began has no end."""
        return self._begun if self.in_transaction else None

    @property
    def is_in_script(self) -> bool:
        return self._scripts > 0

    def splitter(self) -> Splitter:
        return Splitter(self.variables.expanded, lambda: self.conditions.is_active)

    def write(self, text: str) -> None:
        if not self.output.is_redirected:
            self._before_output()
        self.output.write(text)

    def say(self, text: str) -> None:
        """Print a text that is not a result: notes, timings, errors."""
        self._before_output()
        self._say(text)

    def note(self, text: str) -> None:
        """Say what was done, unless nobody wants to know."""
        if not self.is_quiet and not self.variables.is_on("QUIET"):
            self.say(text)

    def failed(self, failure: StatementFailed, source: str | None = None) -> str:
        """The message of a failure, which \\errverbose can repeat."""
        self.last_failure = failure
        return told(failure, source, self.variables["VERBOSITY"])

    @contextmanager
    def in_script(self, text: ScriptText, before_output: Callable[[], None]) -> Iterator[None]:
        """Run a script quietly and patiently, and clear its progress bar before output."""
        if self._scripts == SCRIPT_DEPTH_MAX:
            raise InvalidRequest(f"files include each other more than {SCRIPT_DEPTH_MAX} deep")
        if self.in_transaction:
            raise InvalidRequest(
                "a transaction is open", hint="End it with COMMIT or ROLLBACK first."
            )
        kept = self.is_quiet, self.is_patient, self.opens_transactions, self._before_output
        conditions, self.conditions = self.conditions, Conditions()
        script, self.script = self.script, text
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
            self.conditions, self.script = conditions, script
            self.is_quiet, self.is_patient, self.opens_transactions, self._before_output = kept

    def take(self, statement: Statement) -> None:
        """Run one statement or command; raises `StatementFailed` with the statement and error."""
        self.line = statement.first_line
        try:
            if not statement.is_command:
                self.run(statement)
                return
            word = statement.text.split(maxsplit=1)[0]
            if self.restricted_by is not None and word != "\\unrestrict":
                raise InvalidRequest("only \\unrestrict may run here")
            if word in WORDS:
                self.conditions.take(word, lambda: self._holds(statement.text))
            elif self.conditions.is_active:
                self._run_command(self, statement)
        except QserverError as error:
            self._has_failed = self._has_failed or self._block is not None
            raise StatementFailed(statement, error) from error

    def _holds(self, command: str) -> bool:
        name, _, condition = command.partition(" ")
        words = arguments_of(condition, self.variables)
        return is_true(" ".join(words), f"{name} expression")

    def run(self, statement: Statement, consume: Consume | None = None) -> None:
        """Run a statement of SQL, and print its result or give it to `consume`."""
        if consume is not None and self._block is not None:
            raise InvalidRequest(
                "the statements of a block are sent at COMMIT, and have no result yet",
                hint="\\set BLOCKS off lets BEGIN open a transaction in a script, too.",
            )
        started = time.perf_counter()
        self.last_statement = statement
        if self.variables["ECHO"] == "queries":
            self.write(f"{statement.text};\n")
        try:
            self._take_statement(statement, consume or self._print)
        except QserverError as error:
            self._tell_failed(statement, error)
            raise
        except StatementFailed as failure:
            self._tell_failed(failure.statement, failure.error)
            raise
        except PagerLeft:
            pass
        self.variables.tell(ERROR="false", SQLSTATE="00000")
        if self.is_timed:
            self.say(f"Time: {(time.perf_counter() - started) * 1000:.3f} ms\n")

    def _tell_failed(self, statement: Statement, error: QserverError) -> None:
        self.variables.tell(
            ERROR="true",
            SQLSTATE=error.code,
            ROW_COUNT=0,
            LAST_ERROR_SQLSTATE=error.code,
            LAST_ERROR_MESSAGE=error.message,
        )
        if self.variables["ECHO"] == "errors":
            self.say(f"STATEMENT:  {statement.text};\n")

    def _take_statement(self, statement: Statement, consume: Consume) -> None:
        act = act_of(statement)
        if act is Act.COMMIT:
            self._commit()
        elif act is Act.ROLL_BACK:
            self._roll_back()
        elif act is not None:
            self._begin(statement, act is Act.BEGIN_READ_ONLY)
        elif statement.words(1) == ("copy",):
            self._run_command(self, statement)
        elif self._block is not None:
            self._collect(statement, self._block)
        else:
            self._run(statement, consume)

    # --- a transaction ---------------------------------------------------------------------------

    def _begin(self, statement: Statement, read_only: bool) -> None:
        if self.in_transaction:
            raise InvalidRequest(
                "a transaction is open already",
                hint="End it with COMMIT or ROLLBACK; blocks do not nest.",
            )
        if self.opens_transactions or read_only or not self.variables.is_on("BLOCKS"):
            self._open(read_only)
            self._has_failed = False
            self.note("BEGIN\n")
        else:
            self._block, self._has_failed = [], False
            self.note("BEGIN: what follows is sent together at COMMIT.\n")
        self._begun = statement

    def _open(self, read_only: bool) -> None:
        options = {
            "as_of": self.as_of,
            "read_only": read_only or None,
            "idle_ms": IDLE_MS,
            "settings": self.settings.values or None,
        }
        opened = self.patiently(lambda: self.client.open_transaction(**options))
        self._transaction = opened["id"]

    def _open_block(self, statements: list[Statement]) -> None:
        """Open a transaction, and run what the block has collected in it."""
        if self._has_failed:
            raise InvalidRequest("a statement of the block failed, and nothing of it is sent")
        check_count(statements)
        self._open(read_only=False)
        self._block = None
        for statement in statements:
            try:
                self._run(statement, self._print)
            except QserverError as error:
                raise StatementFailed(statement, error) from error

    def _collect(self, statement: Statement, block: list[Statement]) -> None:
        # One too many is enough for COMMIT to refuse the block; a statement of it never runs alone.
        if len(block) <= TRANSACTION_STATEMENTS_MAX:
            block.append(statement)

    def _commit(self) -> None:
        if self._transaction is not None:
            self._commit_open(self._transaction)
        elif self._block is not None and self._has_failed:
            self._block = None
            self.say("ROLLBACK: a statement of it failed, and nothing of it was sent.\n")
        elif self._block is not None:
            self._send_block(self._block)
        else:
            self.say("There is no transaction to commit.\n")

    def _commit_open(self, transaction: str) -> None:
        kept = self._settings_of(transaction)
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
        self.settings = kept
        self.note("COMMIT\n")

    def _settings_of(self, transaction: str) -> SessionSettings:
        """What the transaction has set, which holds after it."""
        if self._sets.is_empty or self._is_in_doubt or self._has_failed:
            return self.settings
        found = self.patiently(lambda: self.client.query(SETTINGS_NOW, transaction=transaction))
        return self._sets.merged(self.settings, found.rows)

    def _send_block(self, statements: list[Statement]) -> None:
        self._block = None
        check_count(statements)
        if statements:
            self._send(statements)
        self.note("COMMIT\n")

    def _send(self, statements: list[Statement]) -> None:
        texts = [each.text for each in statements]
        sets = SettingWords.of(statements)
        if not sets.is_empty:
            texts.append(SETTINGS_NOW)
        options = self._options
        try:
            done = self.patiently(lambda: self.client.transaction(texts, **options))
        except QserverError as error:
            if error.statement is not None and error.statement < len(statements):
                raise StatementFailed(statements[error.statement], error) from error
            raise
        for statement, result in zip(statements, done.results, strict=False):
            self._show(statement, result, self._print)
        if not sets.is_empty:
            self.settings = sets.merged(self.settings, done.results[-1].rows)

    def _roll_back(self) -> None:
        if self._transaction is not None:
            self._check_no_doubt()
            self.leave_transaction()
            self.note("ROLLBACK\n")
        elif self._block is not None:
            self._block = None
            self.note("ROLLBACK: nothing of it was sent.\n")
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
        self._sets = SettingWords()

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

    def _run(self, statement: Statement, consume: Consume) -> None:
        self.attempt(lambda: self._run_one(statement, consume))

    def attempt(self, call: Callable[[], _Answer]) -> _Answer:
        """Make a call that runs a statement, where statements run now: that of a block opens it."""
        if self._block is not None:
            self._open_block(self._block)
        self._check_no_doubt()
        try:
            done = self.patiently(call)
        except QserverError as error:
            if error.code == TRANSACTION_GONE:
                self._tell_gone(error)
            elif not error.code.startswith(("QS", "08")):  # those ran no statement
                self._has_failed = True
            raise
        self._has_failed = False
        return done

    @property
    def place(self) -> dict[str, Any]:
        """Where statements run: in the open transaction, or of the version that is read."""
        if self._transaction is not None:
            return {"transaction": self._transaction}
        return {} if self.as_of is None else {"as_of": self.as_of}

    @property
    def _options(self) -> dict[str, Any]:
        is_sent = self._transaction is None and self.settings.values
        return self.place | ({"settings": self.settings.values} if is_sent else {})

    def _run_one(self, statement: Statement, consume: Consume) -> None:
        words = statement.words(1)
        sets = SettingWords.of([statement])
        if not sets.is_empty and self._transaction is None:
            self._send([statement])
        elif not words or words[0] in _READS:
            self.last_query = statement.text
            self._stream(statement, consume)
        else:
            result = self.client.query(statement.text, **self._options)
            self._sets = self._sets.with_more(sets)
            self._show(statement, result, consume)

    def query(self, sql: str, params: list[Any] | None = None) -> Result:
        """Run a query of the shell's own, where the person's would run."""
        return self.patiently(lambda: self.client.query(sql, params, **self._options))

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
                self.pause(float(seconds))

    def _stream(self, statement: Statement, consume: Consume) -> None:
        with self.client.stream(statement.text, **self._options) as rows:
            if not rows.columns:
                empty = list(rows)
                if not empty:
                    self._tag(statement, rows.affected_rows)
                    return
                consume((), (), [empty])
                return
            counted = Counted(rows.batches())
            consume(rows.columns, rows.types, counted)
        self.variables.tell(ROW_COUNT=counted.rows)

    def watch(self, sql: str) -> None:
        """Print a live query: its rows, then whatever changes, until it fails."""
        if self.in_transaction or self.as_of is not None:
            raise InvalidRequest(
                "a live query follows what is committed",
                hint="End the transaction first." if self.in_transaction else "\\asof now, first.",
            )
        with self.client.live(sql, retry_seconds=WATCH_RETRY_SECONDS) as query:
            self._print(query.columns, query.types, [query.rows])
            for version, deleted, inserted in query:
                self.say(f"Version {version}:\n")
                rows = [("delete", *row) for row in deleted] + [
                    ("insert", *row) for row in inserted
                ]
                self._print(("op", *query.columns), ("text", *query.types), [rows])

    def described(self, statement: Statement) -> tuple[Sequence[str], Sequence[str]]:
        """The columns of a statement's result, and their types; it changes nothing."""
        words = statement.words(1)
        if words and words[0] not in _READS:
            found = self.client.query(statement.text, **self._options, dry_run=True)
            return found.columns, found.types
        with self.client.stream(statement.text, **self._options) as rows:
            return rows.columns, rows.types

    def print_table(
        self,
        columns: Sequence[str],
        types: Sequence[str],
        rows: list[Row],
        title: str | None = None,
        footers: tuple[str, ...] | None = None,
        expands: bool = True,
    ) -> None:
        """Print a table of the shell's own; `footers` instead of the number of rows."""
        if not self.output.is_redirected:
            self._before_output()
        self.printer.print(columns, types, [rows], title, footers, expands)

    def use_database(self, name: str) -> None:
        """Use another database; if it is not there, the one before stays."""
        before, self.client.database = self.client.database, name
        try:
            self.learn_database()
        except BaseException:
            self.client.database = before
            raise
        self.names_are_stale = True
        self.as_of = None  # versions are those of one database

    def learn_database(self) -> None:
        self._database = self.client.tables()["database"]
        self.variables.tell(DBNAME=self._database)

    def _print(
        self, columns: Sequence[str], types: Sequence[str], batches: Iterable[list[Row]]
    ) -> None:
        if not self.output.is_redirected:
            self._before_output()
        self.printer.print(columns, types, batches)

    def _show(self, statement: Statement, result: Result, consume: Consume) -> None:
        self.variables.tell(ROW_COUNT=len(result.rows) or result.affected_rows)
        if result.columns or result.rows:
            consume(result.columns, result.types, [result.rows])
        else:
            self._tag(statement, result.affected_rows)

    def _tag(self, statement: Statement, affected_rows: int) -> None:
        """A note, so that output files hold only rows."""
        words = statement.words(8)
        self.variables.tell(ROW_COUNT=affected_rows)
        self.names_are_stale = self.names_are_stale or defines(words)
        self.note(f"{tag(words, affected_rows)}\n")


def _nothing() -> None:
    """The default `before_output`: no bar to clear."""
