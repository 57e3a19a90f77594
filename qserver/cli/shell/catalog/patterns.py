"""Patterns for names, as psql's commands take them, as conditions of SQL.

    users      the visible one        shop.*      all of a schema
    u*, u?     by regular expressions  "Odd.*"     in quotes, letter by letter

Outside of quotes, names are in lower case, and the rest of regular expressions counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from qserver.cli.shell.shell import Shell
from qserver.errors import InvalidRequest
from qserver.functions.text.quoting import quote_literal

_SPECIAL: Final = frozenset("|*+?()[]{}.^$\\")
_WILD: Final = {"*": ".*", "?": ".", "$": "\\$"}


@dataclass(frozen=True, slots=True)
class Columns:
    """Where the names are in a query, and how it asks whether one is found without its schema."""

    name: str
    schema: str | None = None
    visible: str | None = None
    also: str | None = None
    """Another column whose name may match."""


def parts_of(pattern: str) -> list[str]:
    """The regular expressions of its parts, which dots separate."""
    parts, is_quoted, position = [""], False, 0
    while position < len(pattern):
        character = pattern[position]
        position += 1
        if character == '"':
            if is_quoted and pattern.startswith('"', position):
                parts[-1] += '"'
                position += 1
            else:
                is_quoted = not is_quoted
        elif is_quoted:
            parts[-1] += f"\\{character}" if character in _SPECIAL else character
        elif character == ".":
            parts.append("")
        elif character == "[" and pattern.startswith("]", position):
            parts[-1] += "\\["
        else:
            parts[-1] += _WILD.get(character, character.lower())
    return parts


def conditions(pattern: str | None, columns: Columns, shell: Shell) -> list[str]:
    """The conditions that rows must meet, to be joined by AND."""
    if not pattern:
        return [columns.visible] if columns.visible else []
    parts = parts_of(pattern)
    most = 1 if columns.schema is None else 3
    if len(parts) > most:
        raise InvalidRequest(f"improper qualified name (too many dotted names): {pattern}")
    if len(parts) == 3 and parts[0] != shell.database:
        raise InvalidRequest(
            f"cross-database references are not implemented: {pattern}",
            hint="\\c name uses another database.",
        )
    found = []
    if parts[-1] not in ("", ".*"):
        tests = [_matches(column, parts[-1]) for column in (columns.name, columns.also) if column]
        found.append(f"({' OR '.join(tests)})")
    if len(parts) > 1:
        if parts[-2] not in ("", ".*"):
            assert columns.schema is not None, "one part is the most otherwise"
            found.append(_matches(columns.schema, parts[-2]))
    elif columns.visible:
        found.append(columns.visible)
    return found


def _matches(column: str, expression: str) -> str:
    return f"{column} ~ {quote_literal(f'^({expression})$')} COLLATE pg_catalog.default"
