"""Loads statements into a database in batches; a batch is one transaction, all or nothing.

Many statements per request save round trips and disk syncs. When a batch fails, the server names
the statement, and nothing of the batch is applied; earlier batches are. Rows of COPY go in bulk,
between two batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from qserver.cli.errors import sentence
from qserver.cli.shell.failures import StatementFailed, told
from qserver.cli.transfer.batches import batches, insert_batch
from qserver.cli.transfer.dumps import (
    is_harmless,
    makes_a_relation,
    relation_of,
    search_path_of,
    sets_a_sequence,
)
from qserver.cli.transfer.sql_text import Copy, Cut, Step
from qserver.client import Client, ConnectionFailed, ConnectionLost
from qserver.errors import QserverError, Unauthorized
from qserver.values.identifiers import PUBLIC, qualified, quoted

STATEMENTS_MAX: Final = 100
BYTES_MAX: Final = 1024 * 1024
"""A batch ends after this many statements, or characters."""
_HOPELESS: Final = (ConnectionFailed, ConnectionLost, Unauthorized)
_COLUMNS: Final = (
    "SELECT column_name FROM information_schema.columns WHERE table_schema = $1 AND table_name = $2"
    " AND is_generated = 'NEVER' ORDER BY ordinal_position"
)


class ImportFailed(QserverError):
    """The file's fault, or the database's: a statement failed, and the message was printed."""

    name = "import_failed"


class Loader:
    """Takes steps, sends batches, and reports failures.

    Of a dump of PostgreSQL (`is_dump`) what means nothing here is skipped and counted, and failures
    are listed, for the end.
    """

    def __init__(
        self,
        client: Client,
        source: str,
        say: Callable[[str], None],
        keep_going: bool,
        is_dump: bool = False,
    ) -> None:
        self._client = client
        self._source = source
        self._say = say
        self._keep_going = keep_going
        self._is_dump = is_dump
        self._batch: list[Step] = []
        self._size = 0
        self._settings: dict[str, Any] | None = None
        self._made: set[str] = set()
        """Tables that this file has made."""
        self._refused: dict[str, int] = {}
        """Tables that it could not make, and the lines."""
        self.applied = 0
        """Statements applied to the database."""
        self.rows = 0
        """Rows of COPY."""
        self.skipped = 0
        """Statements that mean nothing here."""
        self.failures = 0
        self.listed: list[str] = []
        """Failures of a dump, one line each."""

    def load(self, steps: Iterator[Step]) -> None:
        """Load all steps; raises ImportFailed at the first failure."""
        for step in steps:
            if isinstance(step, Copy):
                self.flush()
                self._copy(step)
            elif not (self._is_dump and self._means_nothing(step)):
                self._add(step)
        self.flush()

    def _add(self, step: Step) -> None:
        is_full = self._size + len(step.text) > BYTES_MAX or len(self._batch) >= STATEMENTS_MAX
        if is_full and self._batch:
            self._send()
        self._batch.append(step)
        self._size += len(step.text)

    def flush(self) -> None:
        if self._batch:
            self._send()

    def _means_nothing(self, step: Step) -> bool:
        if not is_harmless(step.statement):
            return False
        path = search_path_of(step.statement)
        if path is not None:
            self.flush()
            self._settings = {"search_path": path}
        self.skipped += 1
        return True

    # --- statements -------------------------------------------------------------------------------

    def _send(self) -> None:
        batch, self._batch, self._size = self._batch, [], 0
        if any(self._is_refused(step) for step in batch):
            self._send_one_by_one(batch)
            return
        try:
            self._client.transaction([step.text for step in batch], settings=self._settings)
            self.applied += len(batch)
            for step in batch:
                self._note_made(step)
        except QserverError as error:
            if not self._keep_going or isinstance(error, _HOPELESS):
                raise self._stopped(batch, error) from error
            self._send_one_by_one(batch)

    def _send_one_by_one(self, batch: list[Step]) -> None:
        """Send the statements of a batch that was not applied; report those that fail."""
        for step in batch:
            if self._is_refused(step):
                self._refuse(step)
                continue
            try:
                self._client.query(step.text, settings=self._settings)
                self.applied += 1
                self._note_made(step)
            except QserverError as error:
                if isinstance(error, _HOPELESS):
                    raise self._stopped([step], error) from error
                self._tell(step, error)
                if self._is_dump and makes_a_relation(step.statement):
                    self._refused[relation_of(step.statement) or ""] = step.line

    def _note_made(self, step: Step) -> None:
        if self._is_dump and makes_a_relation(step.statement):
            self._made.add(relation_of(step.statement) or "")

    def _is_refused(self, step: Step) -> bool:
        """Is it about a table that another than this file has made, or perhaps its sequence?"""
        if not self._refused:
            return False
        return relation_of(step.statement) in self._refused or sets_a_sequence(step.statement)

    def _refuse(self, step: Step) -> None:
        first = next(iter(self._refused.values()))
        line = self._refused.get(relation_of(step.statement) or "", first)
        self.failures += 1
        self.listed.append(
            f"{self._source}:{step.line}: its table or sequence was not made, see line {line}"
        )

    # --- rows -------------------------------------------------------------------------------------

    def _copy(self, step: Copy) -> None:
        if self._is_refused(step):
            self._refuse(step)
            return
        *schemas, name = step.copy.table
        schema = schemas[-1] if schemas else PUBLIC
        loaded = 0
        try:
            columns = step.copy.columns or self._columns_of(schema, name)
            for body, count in batches(columns, step.rows(columns)):
                insert_batch(self._client, f"{quoted(schema)}.{quoted(name)}", body)
                loaded += count
        except Cut:
            raise  # nothing comes behind it
        except QserverError as error:
            if error.row is not None:
                error.row += loaded
            if loaded and relation_of(step.statement) in self._made:
                self._client.query(f"TRUNCATE {qualified(schema, name)}")
                loaded = 0
            if not self._keep_going or isinstance(error, _HOPELESS):
                raise self._stopped([step], error) from error
            self._tell(step, error)
        self.rows += loaded

    def _columns_of(self, schema: str, name: str) -> tuple[str, ...]:
        return tuple(column for (column,) in self._client.query(_COLUMNS, [schema, name]).rows)

    # --- failures ---------------------------------------------------------------------------------

    def _tell(self, step: Step, error: QserverError) -> None:
        self.failures += 1
        if self._is_dump and self._keep_going:
            row = f"row {error.row}: " if error.row is not None else ""
            self.listed.append(f"{self._source}:{step.line}: {row}{sentence(error)}")
            return
        failure = StatementFailed(step.statement, error)
        lines = "" if step.line == step.last_line else f"(lines {step.place}) "
        self._say(lines + told(failure, self._source))

    def _stopped(self, batch: list[Step], error: QserverError) -> ImportFailed:
        at = vars(error).get("statement")
        is_known = isinstance(at, int) and 0 <= at < len(batch)
        self._tell(batch[at if is_known else 0], error)  # type: ignore[index]
        unsure = isinstance(error, ConnectionLost)
        self._say(
            f"{self.applied} statements before it were applied;"
            f" lines {batch[0].line} to {batch[-1].last_line}"
            f" {'may have been: look before you go on' if unsure else 'were not'}.\n"
        )
        return ImportFailed(f"{self._source}: stopped at line {batch[0].line}")
