"""Encodes a page of a tree as bytes, and decodes it.

    leaf      L ‖ keys and values, as `values.encoding` writes entries
    branch    B ‖ MessagePack [separators as such entries, [number of each child …]]

Both are sealed with their number. A child always has a smaller number than its parent, because it
is saved first; so pages read in ascending order find their children read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import msgspec

from qserver.durability.seal import sealed, unsealed
from qserver.errors import DataCorrupted
from qserver.limits import PAGE_ENTRIES_MAX
from qserver.storage.btree import Branch, Key, Leaf, Tree, Value, branch_of, leaf_of
from qserver.values.encoding import decode_columns, encode_columns

LEAF: Final = b"L"
BRANCH: Final = b"B"


class StoredBranch(msgspec.Struct, frozen=True, array_like=True):
    separators: bytes
    children: list[int]


def encode_page(page: Tree, number: int, number_of: Mapping[Tree, int]) -> bytes:
    if type(page) is Leaf:
        return sealed(LEAF + encode_columns(page.keys, page.values), number)
    assert type(page) is Branch
    separators = encode_columns(page.separators, [None] * len(page.separators))
    children = [number_of[child] for child in page.children]
    return sealed(BRANCH + _encode(StoredBranch(separators, children)), number)


def decode_page(number: int, data: bytes) -> Leaf | tuple[list[Key], list[int]]:
    """Return a leaf, or separators and children; raise DataCorrupted if it is neither."""
    body = unsealed(data, f"page {number}", number)
    kind, rest = body[:1], body[1:]
    if kind == LEAF:
        keys, values = decode_columns(rest)
        if len(keys) > PAGE_ENTRIES_MAX:
            raise _impossible(number)
        return leaf_of(keys, cast("list[Value]", values))
    if kind != BRANCH:
        raise _impossible(number)
    try:
        branch = _decode(rest)
    except msgspec.MsgspecError as error:
        raise DataCorrupted(f"page {number} cannot be decoded", detail=str(error)) from error
    separators, _ = decode_columns(branch.separators)
    if not len(separators) + 1 == len(branch.children) <= PAGE_ENTRIES_MAX:
        raise _impossible(number)
    return separators, branch.children


def join_branch(number: int, separators: list[Key], children: list[Tree]) -> Branch:
    if any(child.height != children[0].height for child in children):
        raise _impossible(number)
    return branch_of(separators, children)


def _impossible(number: int) -> DataCorrupted:
    return DataCorrupted(
        f"page {number} is none that this release writes",
        hint="Use the release of qserver that wrote the data, or restore a backup.",
    )


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(StoredBranch).decode
