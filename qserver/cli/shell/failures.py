"""A failed statement, and its message: the error, its place in the text, and a hint.

schema.sql:12: ERROR 42P01: relation "users" does not exist
LINE 2:   FROM users
               ^
HINT: …
"""

from __future__ import annotations

from typing import Final

from qserver.cli.cells import harmless
from qserver.cli.layouts import width
from qserver.cli.splitting import Statement
from qserver.errors import QserverError

_EXCERPT_MAX: Final = 100
_STATEMENT_LINES_MAX: Final = 3


class StatementFailed(Exception):
    """A statement and its error."""

    def __init__(self, statement: Statement, error: QserverError) -> None:
        super().__init__(str(error))
        self.statement = statement
        self.error = error

    def line(self) -> int:
        """The line in the file, as close to the mistake as is known."""
        position = self.error.position
        return self.statement.line if position is None else self.statement.line_at(position - 1)


def told(failure: StatementFailed, source: str | None = None, verbosity: str = "default") -> str:
    """The message for standard error; `source` is the file, if any."""
    error = failure.error
    place = "" if source is None else f"{source}:{failure.line()}: "
    if verbosity == "sqlstate":
        return f"{place}ERROR {error.code}\n"
    lines = [f"{place}ERROR {error.code}: {error.message}"]
    if verbosity == "terse":
        return f"{harmless(lines[0])}\n"
    if error.position is not None:
        lines += _excerpt(failure.statement.text, error.position - 1)
    elif source is not None:
        lines += _beginning(failure.statement.text)
    lines += [f"ROW {error.row} of the file"] if error.row is not None else []
    lines += [f"DETAIL: {error.detail}"] if error.detail else []
    lines += [f"HINT: {error.hint}"] if error.hint else []
    if verbosity == "verbose":
        named = {"TABLE": error.table, "COLUMN": error.column, "CONSTRAINT": error.constraint}
        lines += [f"{title} NAME: {name}" for title, name in named.items() if name]
        lines.append(f"CONDITION: {error.name}")
    return "".join(f"{harmless(line)}\n" for line in lines)


def _excerpt(text: str, offset: int) -> list[str]:
    """The line of the statement with the mistake, and a caret under it."""
    offset = min(max(offset, 0), len(text))
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    label = f"LINE {text.count(chr(10), 0, offset) + 1}: "
    left = max(start, offset - _EXCERPT_MAX // 2)
    line = text[left : len(text) if end < 0 else end][:_EXCERPT_MAX]
    before = harmless(text[left:offset])
    return [f"{label}{harmless(line)}", " " * (len(label) + width(before)) + "^"]


def _beginning(text: str) -> list[str]:
    lines = text.splitlines()[:_STATEMENT_LINES_MAX]
    return [f"  {line[:_EXCERPT_MAX]}{'…' if len(line) > _EXCERPT_MAX else ''}" for line in lines]
