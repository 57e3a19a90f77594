"""Encodes changes of rows as JSON: `{"table", "op", "key", "before", "after"}`.

All routes use this form. Rows have their visible columns, with the same values as in answers. `key`
has the columns of the primary key, and is null for a table without one. A change of schema has
neither key nor rows. In the feed it has the statement that made it; in a comparison, the statements
that would create the definition as it was and as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, Final

from msgspec import UNSET

from qserver.engine.feed import StatedChange
from qserver.limits import ANSWER_PART_BYTES
from qserver.query.definition_texts import statements_of
from qserver.query.results import Diff, Redefinition
from qserver.storage.changes import Change, Changes
from qserver.values.identifiers import name_of_key
from qserver.values.keys import Row
from qserver.values.schema import Table
from qserver.web.description.shapes import DefinitionChange, RowChange
from qserver.web.statements.json_values import Converter, converter, encode_json

CHANGES_ENCODED_AT_ONCE: Final = 250
"""Changes of an answer that are encoded without yielding: about half a millisecond."""

FORMS_KEPT_MAX: Final = 1000
"""Definitions of tables that an encoder knows; then it begins anew."""


class ChangeEncoder:
    """Turns changes into objects for JSON; caches what depends on a table's definition."""

    def __init__(self) -> None:
        self._forms: dict[int, tuple[Table, _TableForm]] = {}

    def encoded(self, change: Change, redefined: Redefinition | None = None) -> RowChange:
        table = change.table
        if isinstance(table, str):
            statement = change.statement if isinstance(change, StatedChange) else UNSET
            definition = UNSET if redefined is None else _definition(redefined)
            return RowChange(table, change.op, None, None, None, statement, definition)
        form = self._form_of(table)
        form_before = form if change.table_before is None else self._form_of(change.table_before)
        if change.after is not None:
            key = form.key(change.after)
        else:
            assert change.before is not None, "a row is there before or after"
            key = form_before.key(change.before)
        return RowChange(
            form.name,
            change.op,
            key,
            None if change.before is None else form_before.row(change.before),
            None if change.after is None else form.row(change.after),
        )

    def _form_of(self, table: Table) -> _TableForm:
        known = self._forms.get(id(table))
        if known is None:
            if len(self._forms) >= FORMS_KEPT_MAX:
                self._forms.clear()
            known = self._forms[id(table)] = (table, _TableForm(table))
        return known[1]


def _definition(redefined: Redefinition) -> DefinitionChange:
    return DefinitionChange(
        statements_of(redefined.before, redefined.key),
        statements_of(redefined.after, redefined.key),
    )


class _TableForm:
    def __init__(self, table: Table) -> None:
        self.name = name_of_key(table.key)
        visible = [at for at, column in enumerate(table.columns) if not column.hidden]
        self._columns = [_field(table, at) for at in visible]
        self._has_key = not table.has_row_id
        self._key = [_field(table, at) for at in table.primary_key]

    def row(self, row: Row) -> dict[str, Any]:
        return _object(self._columns, row)

    def key(self, row: Row) -> dict[str, Any] | None:
        return _object(self._key, row) if self._has_key else None


_Field = tuple[int, str, Converter | None]


def _field(table: Table, at: int) -> _Field:
    column = table.columns[at]
    return at, column.name, converter(column.type)


def _object(fields: Sequence[_Field], row: Row) -> dict[str, Any]:
    return {
        name: row[at] if convert is None or row[at] is None else convert(row[at])
        for at, name, convert in fields
    }


def is_long(diff: Diff | None) -> bool:
    """Return whether there are too many changes to encode without yielding."""
    return diff is not None and (
        len(diff.changes) > CHANGES_ENCODED_AT_ONCE or diff.held_bytes > ANSWER_PART_BYTES
    )


def changes_in_parts(changes: Changes, redefined: Sequence[Redefinition] = ()) -> Iterator[bytes]:
    """The changes as a JSON array in parts, each encoded on demand."""
    encoder = ChangeEncoder()
    between, part = b"[", []
    size = 0
    for change, schema in zip_longest(changes, redefined[: len(changes)]):
        part.append(encode_json(encoder.encoded(change, schema)))
        size += len(part[-1])
        if size > ANSWER_PART_BYTES or len(part) >= CHANGES_ENCODED_AT_ONCE:
            yield between + b",".join(part)
            between, size = b",", 0
            part.clear()
    yield (between + b",".join(part) if part else b"[" * (between == b"[")) + b"]"


def tail_in_parts(tail: bytes, diff: Diff | None) -> Iterator[bytes]:
    """The end of an answer in parts, with the changes of a dry run as its last field."""
    if diff is None:
        yield tail
        return
    yield tail[:-1] + b',"diff":'
    yield from changes_in_parts(diff.changes, diff.redefined)
    yield b',"diff_truncated":true}' if diff.truncated else b"}"


def with_diff(tail: bytes, diff: Diff) -> bytes:
    return b"".join(tail_in_parts(tail, diff))
