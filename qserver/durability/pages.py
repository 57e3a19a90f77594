"""Encodes and decodes pages of trees.

    leaf      L ‖ keys and values, as `values.encoding` writes entries
    branch    B ‖ MessagePack [separators as such entries, [number of each child …], [length …]]

Both are sealed with their number. A leaf stays packed in memory until it is read often, so it is
checked when it is loaded and decoded later. A child has a smaller number than its parent, because
it is saved first. A branch has the number of entries below each child, so counting reads no child.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

import msgspec

from qserver.durability.seal import check_seal, sealed, unsealed
from qserver.errors import DataCorrupted
from qserver.limits import PAGE_ENTRIES_MAX
from qserver.storage.page import (
    Branch,
    BranchEntries,
    Key,
    Leaf,
    LeafEntries,
    PageStore,
    Tree,
    Value,
)
from qserver.values.encoding import (
    count_entries,
    decode_columns,
    decode_stored_rows,
    encode_columns,
    find_row,
)

LEAF: Final = b"L"
BRANCH: Final = b"B"
ENTRIES_AT: Final = 5
"""Where the entries of a stored leaf begin: behind its checksum and its kind."""
LEAF_BYTES_MIN: Final = 8


class StoredBranch(msgspec.Struct, frozen=True, array_like=True):
    separators: bytes
    children: list[int]
    lengths: list[int] = []
    """How many entries are below each child; releases before loading on demand wrote none."""


def encode_page(page: Tree, number: int, number_of: Callable[[Tree], int]) -> bytes:
    if type(page) is Leaf:
        return sealed(LEAF + encode_columns(page.keys, page.values), number)
    assert type(page) is Branch
    separators = encode_columns(page.separators, [None] * len(page.separators))
    children = page.children
    stored = StoredBranch(
        separators, list(map(number_of, children)), [child.length for child in children]
    )
    return sealed(BRANCH + _encode(stored), number)


def decode_page(number: int, data: bytes) -> LeafEntries | StoredChildren:
    """Return the entries of a leaf, or the contents of a branch; raise DataCorrupted."""
    body = unsealed(data, f"page {number}", number)
    kind, rest = body[:1], body[1:]
    if kind == LEAF:
        keys, values = decode_columns(rest)
        if len(keys) > PAGE_ENTRIES_MAX:
            raise impossible(number)
        return keys, cast("list[Value]", values)
    if kind != BRANCH:
        raise impossible(number)
    try:
        branch = _decode(rest)
    except msgspec.MsgspecError as error:
        raise DataCorrupted(f"page {number} cannot be decoded", detail=str(error)) from error
    separators, _ = decode_columns(branch.separators)
    if not len(separators) + 1 == len(branch.children) <= PAGE_ENTRIES_MAX:
        raise impossible(number)
    return StoredChildren(separators, branch.children, branch.lengths)


class StoredChildren(msgspec.Struct, frozen=True):
    """A stored branch: the numbers of its children, and their lengths if known."""

    separators: list[Key]
    numbers: list[int]
    lengths: list[int]


def check_leaf(leaf: Leaf, data: bytes) -> None:
    """Raise DataCorrupted if these are not the saved bytes of a leaf."""
    check_seal(data, f"page {leaf.number}", leaf.number)
    if (
        len(data) < LEAF_BYTES_MIN
        or data[ENTRIES_AT - 1 : ENTRIES_AT] != LEAF
        or count_entries(data, ENTRIES_AT) != leaf.length
    ):
        raise impossible(leaf.number)


def decode_leaf(leaf: Leaf, data: bytes) -> LeafEntries:
    """Return the entries of a checked leaf."""
    keys, values = decode_columns(memoryview(data)[ENTRIES_AT:])
    if len(keys) != leaf.length:
        raise impossible(leaf.number)
    return keys, cast("list[Value]", values)


def decode_stored_leaf(leaf: Leaf, data: bytes) -> list[Value]:
    """Return the values of a checked leaf, with extensions as they are stored."""
    values = decode_stored_rows(memoryview(data)[ENTRIES_AT:])
    if len(values) != leaf.length:
        raise impossible(leaf.number)
    return values


def find_in_leaf(data: bytes, key: Key) -> Value | None:
    """Return the value at a key of a checked leaf; decodes no other value."""
    return find_row(memoryview(data)[ENTRIES_AT:], key)


def decode_branch(branch: Branch, data: bytes) -> BranchEntries:
    """Return the entries of a branch: separators and unloaded children."""
    found = decode_page(branch.number, data)
    if not isinstance(found, StoredChildren) or len(found.lengths) != len(found.numbers):
        raise impossible(branch.number)
    if sum(found.lengths) != branch.length or max(found.numbers) >= branch.number:
        raise impossible(branch.number)
    height = branch.height - 1
    return found.separators, [
        page_without_entries(number, length, height, branch.store)
        for number, length in zip(found.numbers, found.lengths, strict=True)
    ]


def page_without_entries(number: int, length: int, height: int, store: PageStore | None) -> Tree:
    if height == 0:
        return Leaf(None, None, length, number, store)
    return Branch(None, None, length, height, number, store)


def impossible(number: int) -> DataCorrupted:
    return DataCorrupted(
        f"page {number} is none that this release writes",
        hint="Use the release of qserver that wrote the data, or restore a backup.",
    )


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(StoredBranch).decode
