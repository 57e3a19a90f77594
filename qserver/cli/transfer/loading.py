"""Loads statements into a database in batches; a batch is one transaction, all or nothing.

Many statements per request save round trips and disk syncs. When a batch fails, the server names
the statement, and nothing of the batch is applied; earlier batches are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from qserver.cli.shell.failures import StatementFailed, told
from qserver.cli.transfer.reading import Step
from qserver.client import Client, ConnectionFailed, ConnectionLost
from qserver.errors import QserverError, Unauthorized

STATEMENTS_MAX: Final = 100
BYTES_MAX: Final = 1024 * 1024
"""A batch ends after this many statements, or characters."""
_HOPELESS: Final = (ConnectionFailed, ConnectionLost, Unauthorized)


class ImportFailed(QserverError):
    """The file's fault, or the database's: a statement failed, and the message was printed."""

    name = "import_failed"


class Loader:
    """Takes steps, sends batches, and reports failures."""

    def __init__(
        self, client: Client, source: str, say: Callable[[str], None], keep_going: bool
    ) -> None:
        self._client = client
        self._source = source
        self._say = say
        self._keep_going = keep_going
        self._batch: list[Step] = []
        self._size = 0
        self.applied = 0
        """Statements applied to the database."""
        self.failures = 0

    def load(self, steps: Iterator[Step]) -> None:
        """Load all steps; raises ImportFailed at the first failure."""
        for step in steps:
            is_full = self._size + len(step.text) > BYTES_MAX or len(self._batch) >= STATEMENTS_MAX
            if is_full and self._batch:
                self._send()
            self._batch.append(step)
            self._size += len(step.text)
        self.flush()

    def flush(self) -> None:
        if self._batch:
            self._send()

    def _send(self) -> None:
        batch, self._batch, self._size = self._batch, [], 0
        try:
            self._client.transaction([step.text for step in batch])
            self.applied += len(batch)
        except QserverError as error:
            if not self._keep_going or isinstance(error, _HOPELESS):
                raise self._stopped(batch, error) from error
            self._send_one_by_one(batch)

    def _send_one_by_one(self, batch: list[Step]) -> None:
        """Send the statements of a batch that was not applied; report those that fail."""
        for step in batch:
            try:
                self._client.query(step.text)
                self.applied += 1
            except QserverError as error:
                if isinstance(error, _HOPELESS):
                    raise self._stopped([step], error) from error
                self._tell(step, error)

    def _tell(self, step: Step, error: QserverError) -> None:
        self.failures += 1
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
