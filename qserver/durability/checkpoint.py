"""The record of a checkpoint: everything of a snapshot that is not in its pages.

    checksum ‖ MessagePack array
        [format, version, time, trees used, {name: definition},
         {tree: [bounds, [root page …], [length …], [height …], moment]}, last page, pages,
         [dead page …], {name: moment}, moment]

A tree has a root for each of its ranges, and the bounds between them. The record does not mention
shards. A root of 0 is an empty one. Sequences are a tree like any other. Length and height of a
root are what is known of a page before it is read. Dead pages were named here before they were
named beside the checkpoint, see `kept`. A moment, [version, time], is when a tree, a definition or
any definition was last changed.

Format 2 had neither lengths nor heights. Format 1 had one map of roots for each shard, because keys
were spread by hash. Such checkpoints can still be read, see `loading`; they are never written.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final, TypeAlias

import msgspec

from qserver.durability.seal import sealed, unsealed
from qserver.errors import DataCorrupted, DataUnknown
from qserver.storage.catalog import Catalog, changes_from_plain, changes_to_plain
from qserver.storage.page import Key
from qserver.storage.ranges import RangedTree
from qserver.storage.snapshot import Snapshot
from qserver.storage.writes import Moment
from qserver.values.encoding import decode_columns, encode_columns

FORMAT: Final = 3
FORMAT_OF_NUMBERS: Final = 2
FORMAT_BY_HASH: Final = 1


class StoredTree(msgspec.Struct, frozen=True, array_like=True):
    bounds: bytes
    """The lower bounds of all ranges but the first, as `values.encoding` writes keys."""
    roots: list[int]
    lengths: list[int] = []
    heights: list[int] = []
    last_change: Moment | None = None
    """None in checkpoints of releases that did not know it."""


class Checkpoint(msgspec.Struct, frozen=True, array_like=True):
    format: int
    version: int
    time: float
    trees_used: int
    definitions: dict[str, Any]
    trees: dict[int, StoredTree]
    last_page: int
    """No page of the checkpoint has a greater number."""
    pages: int = 0
    """How many it has."""
    dead: list[int] = []
    """In files of earlier releases: pages that it does not have, and that may still be there."""
    moments: dict[str, Moment] = {}
    """When each definition was last changed, if that is known."""
    last_definition: Moment | None = None


class CheckpointByHash(msgspec.Struct, frozen=True, array_like=True):
    """A checkpoint of format 1."""

    format: int
    version: int
    time: float
    trees_used: int
    definitions: dict[str, Any]
    roots: list[dict[int, int]]
    last_page: int


AnyCheckpoint: TypeAlias = Checkpoint | CheckpointByHash


class CheckpointFormat(msgspec.Struct, frozen=True, array_like=True):
    """The part of a checkpoint that all releases have in common."""

    format: int


def encode_checkpoint(
    snapshot: Snapshot,
    roots: dict[int, list[int]],
    last_page: int,
    pages: int = 0,
) -> bytes:
    catalog = snapshot.catalog
    definitions = changes_to_plain({**catalog.tables, **catalog.others})
    trees = {
        number: _stored_tree(snapshot.trees.tree(number), numbers)
        for number, numbers in roots.items()
    }
    return sealed(
        _encode(
            Checkpoint(
                FORMAT,
                snapshot.version,
                snapshot.time,
                catalog.trees_used,
                definitions,
                trees,
                last_page,
                pages,
                [],
                dict(catalog.moments),
                catalog.last_change,
            )
        )
    )


def _stored_tree(tree: RangedTree, roots: list[int]) -> StoredTree:
    bounds = encode_columns(list(tree.lows), [None] * len(tree.lows))
    lengths = [root.length for root in tree.roots]
    heights = [root.height for root in tree.roots]
    return StoredTree(bounds, roots, lengths, heights, tree.last_change)


def format_of(data: bytes) -> int:
    """Return the format of a checkpoint's record."""
    return _decode_format(unsealed(data, "a checkpoint")).format


def decode_checkpoint(version: int, data: bytes) -> AnyCheckpoint:
    body = unsealed(data, f"the checkpoint of version {version}")
    try:
        found = _decode_format(body).format
        if found not in (FORMAT, FORMAT_OF_NUMBERS, FORMAT_BY_HASH):
            raise DataUnknown(
                f"the checkpoint has format {found}, this release knows {FORMAT}",
                hint="The data were written by another release of qserver: use that or a newer"
                " one.",
            )
        checkpoint = _decode_by_hash(body) if found == FORMAT_BY_HASH else _decode(body)
    except msgspec.MsgspecError as error:
        raise DataCorrupted("the checkpoint cannot be decoded", detail=str(error)) from error
    if checkpoint.version != version:
        raise DataCorrupted(
            f"the checkpoint of version {checkpoint.version} is filed as {version}",
            hint="Restore a backup.",
        )
    return checkpoint


def bounds_of(number: int, tree: StoredTree) -> tuple[Key, ...]:
    """Return the bounds between the ranges of a tree, or raise DataCorrupted."""
    bounds, _ = decode_columns(tree.bounds)
    try:
        ascend = all(one < other for one, other in pairwise(bounds))
    except TypeError:  # they are not even of one type
        ascend = False
    known = tree.lengths, tree.heights
    if not ascend or any(len(each) != len(bounds) + 1 for each in (tree.roots, *known) if each):
        raise DataCorrupted(
            f"the ranges of tree {number} in the checkpoint are not in order",
            hint="Restore a backup.",
        )
    return tuple(bounds)


def roots_of(checkpoint: AnyCheckpoint) -> set[int]:
    if isinstance(checkpoint, Checkpoint):
        return {root for tree in checkpoint.trees.values() for root in tree.roots if root}
    return {root for roots in checkpoint.roots for root in roots.values() if root}


def catalog_of(checkpoint: AnyCheckpoint) -> Catalog:
    """Return the catalog. Definitions of which nothing else is known changed just before."""
    definitions = changes_from_plain(checkpoint.definitions)
    catalog = Catalog().changed(definitions, checkpoint.trees_used)
    catalog = catalog.dated(definitions, (checkpoint.version, checkpoint.time))
    if isinstance(checkpoint, Checkpoint) and checkpoint.last_definition is not None:
        moments = catalog.moments.update(checkpoint.moments)
        return msgspec.structs.replace(
            catalog, moments=moments, last_change=checkpoint.last_definition
        )
    return catalog


def last_change_of(tree: StoredTree, checkpoint: Checkpoint) -> Moment:
    return tree.last_change or (checkpoint.version, checkpoint.time)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Checkpoint).decode
_decode_by_hash = msgspec.msgpack.Decoder(CheckpointByHash).decode
_decode_format = msgspec.msgpack.Decoder(CheckpointFormat).decode
