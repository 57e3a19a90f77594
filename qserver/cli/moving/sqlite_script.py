"""A dump in the SQL of SQLite (`.dump`, `wrangler d1 export`), run into a temporary file.

SQLite reads its own SQL best. It may do nothing there but fill its own tables: other files, and
extensions, are out of reach.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, Final

from qserver.errors import InvalidRequest, ProgramLimitExceeded
from qserver.limits import STATEMENT_BYTES_MAX

STATEMENT_MAX: Final = 16 * STATEMENT_BYTES_MAX
_BEGINS: Final = re.compile(
    rb"(?:\s+|--[^\n]*\n)*(?:PRAGMA\s+(?:foreign_keys|defer_foreign_keys)\b|"
    rb"BEGIN TRANSACTION;\s*CREATE TABLE)",
    re.IGNORECASE,
)
_FORBIDDEN: Final = frozenset({sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH})


def is_sqlite_script(beginning: bytes) -> bool:
    """Does a file that begins so come from SQLite?"""
    return _BEGINS.match(beginning) is not None


@contextmanager
def script_as_file(script: BinaryIO, name: str) -> Iterator[Path]:
    """Run the script; yield the file that it has made."""
    with TemporaryDirectory(prefix="qserver-import-") as folder:
        path = Path(folder) / "script.sqlite"
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.set_authorizer(_authorized)
            database.execute("PRAGMA journal_mode = OFF")
            database.execute("PRAGMA synchronous = OFF")
            for line, statement in _statements(script, name):
                try:
                    database.execute(statement)
                except sqlite3.Error as error:
                    raise InvalidRequest(f"{name}:{line}: {error}") from error
            if database.in_transaction:
                raise InvalidRequest(
                    f"{name} is not whole: its COMMIT is missing", hint="Export it again."
                )
        yield path


def _authorized(action: int, *_: object) -> int:
    return sqlite3.SQLITE_DENY if action in _FORBIDDEN else sqlite3.SQLITE_OK


def _statements(script: BinaryIO, name: str) -> Iterator[tuple[int, str]]:
    """Each statement, with the line of its beginning."""
    first, kept = 1, ""
    for number, raw in enumerate(script, 1):
        try:
            line = raw.decode()
        except UnicodeDecodeError as error:
            raise InvalidRequest(f"{name}:{number}: this is not UTF-8 text") from error
        if not kept:
            first = number
        kept += line
        if len(kept) > STATEMENT_MAX:
            raise ProgramLimitExceeded(f"{name}:{first}: a statement is too long")
        if kept.strip() and line.rstrip().endswith(";") and sqlite3.complete_statement(kept):
            yield first, kept
            kept = ""
        elif not kept.strip():
            kept = ""
    if kept.strip():
        yield first, kept
