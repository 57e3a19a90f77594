"""Columns of pages, as they are saved: a vector of some thousand rows is read without the rows.

    seal ‖ MessagePack [format, page, rows, position, family, scale, vector or None]

None: a value does not fit, so the column has no vector. A saved column is derived from the leaves
below its page. One that is missing, damaged or unknown is made of them again. Columns are saved of
pages that a durable checkpoint has, whose numbers are never used twice: so a column is never that
of another page.

After a checkpoint come the columns of its pages whose rows are new (`loaded_pages`), which are in
memory. A note among the pages says meanwhile that they are to come, so a process that ends before
they are all there leaves the rest to the next one. Where rows change here and there, that would
write a page of columns for each changed row: there, only columns that scans have filled are saved,
once their page has outlived a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from qserver.durability.column_numbers import PENDING, can_be_saved, column_number
from qserver.durability.port import StoredPage
from qserver.durability.seal import sealed, unsealed
from qserver.errors import DataCorrupted, LogFailed
from qserver.limits import VECTOR_ROWS_MIN
from qserver.storage.columns import vectors_of
from qserver.storage.page import Branch, Tree
from qserver.storage.snapshot import Snapshot
from qserver.values.schema import Table
from qserver.values.vector_families import TEXT, ColumnVector, as_texts, column_vector

if TYPE_CHECKING:
    from qserver.values.vectors import Vector

FORMAT: Final = 1


class SavedColumn(NamedTuple):
    format: int
    page: int
    rows: int
    position: int
    family: str
    scale: int
    vector: bytes | None


class UnknownColumn(Exception):
    """A saved column is another one than was looked for, or one of another release."""


def encode_column(page: int, rows: int, wanted: ColumnVector, vector: Vector | None) -> bytes:
    """Return a column of a page; empty if it is not worth its bytes."""
    from qserver.values.saved_vectors import encode_vector  # imports numpy

    data = None
    if vector is not None:
        data = encode_vector(vector, wanted)
        if data is None:
            return b""
    column = SavedColumn(FORMAT, page, rows, *wanted, data)
    return sealed(_encode(column), column_number(page, wanted))


def decode_column(page: int, rows: int, wanted: ColumnVector, data: bytes) -> Vector | None:
    """Return a column of a page; raise DataCorrupted or UnknownColumn."""
    found, vector = read_column(page, rows, column_number(page, wanted), data)
    if found != wanted:
        raise UnknownColumn(f"column {wanted.position} of page {page}")
    return vector


def read_column(
    page: int, rows: int, number: int, data: bytes
) -> tuple[ColumnVector, Vector | None]:
    """Return the column with a number, and what it is; raise DataCorrupted or UnknownColumn."""
    from qserver.values.saved_vectors import decode_vector

    what = f"a saved column of page {page}"
    body = unsealed(data, what, number)
    try:
        column = _decode(body)
        wanted = ColumnVector(column.position, column.family, column.scale)
        if column[:3] != (FORMAT, page, rows) or column_number(page, wanted) != number:
            raise UnknownColumn(what)
        if column.vector is None:
            return wanted, None
        return wanted, decode_vector(column.vector, wanted, rows)
    except (msgspec.MsgspecError, ValueError) as error:
        raise DataCorrupted(f"{what} cannot be decoded", detail=str(error)) from error


# --- what a checkpoint saves ---------------------------------------------------------------------


def pending_after(page: int) -> StoredPage:
    """Return the note that pages after this one may lack columns."""
    return PENDING, sealed(_encode((FORMAT, page)), PENDING)


def read_pending(data: bytes) -> int:
    """Return after which page columns are still to be made; raise DataCorrupted."""
    try:
        return _decode_note(unsealed(data, "the note of columns to be made", PENDING))[1]
    except msgspec.MsgspecError as error:
        raise DataCorrupted("the note of columns cannot be decoded", detail=str(error)) from error


def loaded_pages(
    snapshot: Snapshot, is_done: Callable[[Tree], bool], may_grow: bool = True
) -> Iterator[tuple[Branch, Table] | None]:
    """Yield the pages of tables whose rows were loaded lately, and None where others may run.

    `is_done`: whether a page was there when columns were saved last. All of the leaves are new; or
    some at the end, or none, and no more will come there: only the last page of a table grows, if
    that `may_grow`. An update makes one new leaf, anywhere.
    """
    for table in snapshot.catalog.tables.values():
        roots = snapshot.trees.tree(table.id).roots
        if sum(map(len, roots)) >= VECTOR_ROWS_MIN:
            for root in roots:
                for page in _loaded(root, is_done, may_grow and root is roots[-1]):
                    yield None if page is None else (page, table)


def _loaded(page: Tree, is_done: Callable[[Tree], bool], may_grow: bool) -> Iterator[Branch | None]:
    if type(page) is not Branch or is_done(page):
        return
    try:
        children = page.children
    except (DataCorrupted, LogFailed):
        return  # scans report it
    yield None
    if page.height > 1:
        for child in children:
            yield from _loaded(child, is_done, may_grow and child is children[-1])
        return
    new = 0
    for child in reversed(children):
        if is_done(child):
            break
        new += 1
    old = children[: len(children) - new]
    if not old or (new != 1 and not may_grow and all(map(is_done, old))):
        yield page


def columns_of_loaded(page: Branch, table: Table) -> Iterator[StoredPage | None]:
    """Yield all columns of a page if its rows can be read, and None where others may run."""
    with suppress(DataCorrupted, LogFailed):
        yield from _columns_of_rows(page, table)


def _columns_of_rows(page: Branch, table: Table) -> Iterator[StoredPage | None]:
    columns = [column_vector(position, each.type) for position, each in enumerate(table.columns)]
    wanted = [each for each in columns if each is not None]
    for found in vectors_of(page, wanted):
        if found is not None:
            column, vector = found
            if vector is None and column.family == TEXT:
                wanted.append(as_texts(column))  # which comes up at the end of this loop
            yield from _saved(page, column, vector)
        yield None


def filled_columns(page: Branch) -> Iterator[StoredPage | None]:
    """Yield the columns of a saved page that scans have filled, and that are not saved."""
    for wanted, column in list((page.columns or {}).items()):
        if column.is_filled and not column.is_saved:
            yield from _saved(page, wanted, column.vector)
            yield None


def _saved(page: Branch, wanted: ColumnVector, vector: Vector | None) -> Iterator[StoredPage]:
    number = page.number
    if not can_be_saved(number, wanted):
        return
    data = encode_column(number, page.length, wanted, vector)
    if data:
        yield column_number(number, wanted), data
    kept = (page.columns or {}).get(wanted)
    if kept is not None:
        kept.is_saved = True


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(SavedColumn).decode
_decode_note = msgspec.msgpack.Decoder(tuple[int, int]).decode
