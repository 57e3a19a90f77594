"""Runs statements from files and pipes of any size: reads pieces, runs statements one by one.

A script stops at its first error and names the file, the line and the statement, unless the
variable ON_ERROR_STOP is off; it always stops when the server is gone or refuses the key. It reads
at most one piece ahead, so `generate | qserver sql` runs each statement as soon as it arrives.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from qserver.cli.shell.failures import StatementFailed
from qserver.cli.shell.progress import Progress
from qserver.cli.shell.script_text import PIECE_BYTES, ScriptText
from qserver.cli.shell.shell import Shell
from qserver.cli.splitting import Statement
from qserver.client import ConnectionFailed, ConnectionLost
from qserver.errors import InvalidRequest, QserverError, Unauthorized

WITHOUT_COMMIT: Final = "BEGIN without COMMIT: nothing of the transaction was applied"
LOST: Final = (ConnectionFailed, ConnectionLost)


class ScriptFailed(QserverError):
    """The script's fault: one of its statements failed, and the message was printed."""

    name = "script_failed"
    connection_failed = False


class Script:
    """One source of statements."""

    def __init__(self, shell: Shell, name: str, text: ScriptText, progress: Progress) -> None:
        self._shell = shell
        self._name = name
        self._text = text
        self._progress = progress
        self._count = 0
        self.failures = 0
        self.stopped = self.connection_failed = False

    def run(self) -> None:
        """Run the script; afterwards `failures` counts the statements that failed."""
        shell = self._shell
        try:
            for statement in self._statements():
                self._progress.update(self._text.bytes, self._count)
                self._count += 1
                try:
                    shell.take(statement)
                except StatementFailed as failure:
                    if not isinstance(failure.error, ScriptFailed):  # its file has told
                        self._tell(shell.failed(failure, self._name))
                    inner = isinstance(failure.error, ScriptFailed) and (
                        failure.error.connection_failed
                    )
                    self.connection_failed = inner or isinstance(failure.error, LOST)
                    hopeless = self.connection_failed or isinstance(failure.error, Unauthorized)
                    if hopeless or shell.variables.is_on("ON_ERROR_STOP"):
                        self.stopped = True
                        return
                if shell.is_over:
                    return
            self._expect_no_block()
        finally:
            self._progress.clear()

    def _statements(self) -> Iterator[Statement]:
        splitter = self._text.splitter = self._shell.splitter()
        try:
            for text in self._text.texts():
                yield from splitter.feed(text)
            yield from splitter.finish()
        except QserverError as error:
            self.stopped = True
            self._tell(f"{self._name}: {error.message}. {error.hint or ''}".rstrip() + "\n")

    def _expect_no_block(self) -> None:
        begun = self._shell.begun
        if self._shell.conditions.is_open:
            self._tell(f"{self._name}: the end was reached without \\endif\n")
        if begun is not None:
            self.stopped = True
            self._tell(f"{self._name}:{begun.line}: {WITHOUT_COMMIT}.\n")

    def _tell(self, text: str) -> None:
        self.failures += 1
        self._progress.clear()
        self._shell.say(text)


def run_file(shell: Shell, path: Path) -> None:
    """Run a file; raises `ScriptFailed` if a statement failed."""
    try:
        file = path.open("rb", buffering=0)
    except OSError as error:
        raise InvalidRequest(f"cannot read {path}: {error.strerror}") from error
    kept, shell.file_folder = shell.file_folder, str(path.parent)
    with file:
        size = os.fstat(file.fileno()).st_size
        try:
            _run(shell, str(path), ScriptText(lambda: file.read(PIECE_BYTES)), size)
        finally:
            shell.file_folder = kept


def run_standard_input(shell: Shell) -> None:
    _run(shell, "standard input", shell.standard_input, None)


def _run(shell: Shell, name: str, text: ScriptText, size: int | None) -> None:
    progress = Progress(sys.stderr, size)
    script = Script(shell, name, text, progress)
    with shell.in_script(text, progress.clear):
        script.run()
    shell.failures += script.failures
    if script.stopped:
        counted = "one error" if script.failures == 1 else f"{script.failures} errors"
        failed = ScriptFailed(f"{name}: {counted}")
        failed.connection_failed = script.connection_failed
        raise failed
