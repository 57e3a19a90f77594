"""Where results go: standard output, a file or a program (\\o, \\g), and a pager for long ones.

    Output ── Pipe     \\o | program
           ├─ TextIO   \\o file
           └─ Pager    a terminal, and the result is longer than the screen

A pager is started when a result has filled the screen, and gets the rest as it arrives. When it is
left before the end, `PagerLeft` ends the statement.
"""

from __future__ import annotations

import codecs
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TextIO

from qserver.cli.layouts import Write
from qserver.errors import InvalidRequest

PAGER_VARIABLES: Final = ("QSERVER_PAGER", "PSQL_PAGER", "PAGER")


class PagerLeft(Exception):
    """The person has seen enough, which is no failure."""


class Target:
    """A file or a program that results are written to."""

    def __init__(self, name: str) -> None:
        self._process: subprocess.Popen[str] | None = None
        if name.startswith("|"):
            self._process = subprocess.Popen(
                name[1:], shell=True, stdin=subprocess.PIPE, text=True, encoding="utf-8"
            )
            assert self._process.stdin is not None, "it was asked for"
            self._file: TextIO = self._process.stdin  # type: ignore[assignment]
            return
        try:
            self._file = Path(name).expanduser().open("w", encoding="utf-8")
        except OSError as error:
            raise InvalidRequest(f"cannot write to {name}: {error.strerror}") from error

    def write(self, text: str) -> None:
        try:
            self._file.write(text)
        except BrokenPipeError:
            raise PagerLeft from None

    def close(self) -> None:
        with suppress(BrokenPipeError):
            self._file.close()
        if self._process is not None:
            self._process.wait()


class WrittenText:
    """Takes text as UTF-8 in pieces, as a file does, and writes it."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def write(self, piece: bytes) -> int:
        self._write(self._decoder.decode(piece))
        return len(piece)


class Output:
    """Writes to the terminal, unless \\o or \\g names another place."""

    def __init__(self, write: Write) -> None:
        self.write_to_terminal = write
        self._target: Target | None = None
        self._pager: Pager | None = None

    @property
    def is_redirected(self) -> bool:
        return self._target is not None

    def write(self, text: str) -> None:
        if self._target is not None:
            self._target.write(text)
        elif self._pager is not None:
            self._pager.write(text)
        else:
            self.write_to_terminal(text)

    def redirect(self, name: str | None) -> None:
        """Write to a file, or to a program after a `|`, from now on; None: the terminal."""
        target = None if name is None else Target(name)
        if self._target is not None:
            self._target.close()
        self._target = target

    @contextmanager
    def redirected(self, name: str | None) -> Iterator[None]:
        """Write to this place for a while; None: to where it goes anyway."""
        if name is None:
            yield
            return
        kept, self._target = self._target, Target(name)
        try:
            yield
        finally:
            self._target.close()
            self._target = kept

    @contextmanager
    def paged(self, command: str, lines: int) -> Iterator[None]:
        """Show what is written by a pager, if it has more lines."""
        self._pager = Pager(self.write_to_terminal, command, lines)
        try:
            yield
        except PagerLeft:
            pass
        finally:
            pager, self._pager = self._pager, None
            pager.close()


class Pager:
    def __init__(self, write: Callable[[str], object], command: str, lines: int) -> None:
        self._write = write
        self._command = command
        self._lines_left = lines
        self._kept: list[str] = []
        self._target: Target | None = None

    def write(self, text: str) -> None:
        if self._target is not None:
            self._target.write(text)
            return
        self._kept.append(text)
        self._lines_left -= text.count("\n")
        if self._lines_left <= 0:
            self._target = Target(f"|{self._command}")
            self._target.write("".join(self._kept))
            self._kept.clear()

    def close(self) -> None:
        if self._target is not None:
            self._target.close()
        elif self._kept:
            self._write("".join(self._kept))


def pager_command(environ: Mapping[str, str]) -> str | None:
    """The pager of the person; None: an empty variable says that there is none."""
    for name in PAGER_VARIABLES:
        if name in environ:
            return environ[name].strip() or None
    return next((each for each in ("less", "more") if shutil.which(each)), None)


def screen_size() -> tuple[int, int] | None:
    """Columns and lines of the terminal; None: there is none to read on."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    size = shutil.get_terminal_size()
    return size.columns, size.lines
