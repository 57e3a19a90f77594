"""The record of a checkpoint: everything of a view that is not in its pages.

    checksum ‖ MessagePack array
        [format, version, time, trees used, {name: definition}, [{tree: root page} …], last page]

One map of roots for each shard, so a checkpoint fixes the number of shards: a database that has
one keeps its number for ever. A root of 0 is an empty tree. Sequences are a tree like any other.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from qserver.durability.seal import sealed, unsealed
from qserver.errors import DataCorrupted, DataUnknown
from qserver.storage.catalog import Catalog, changes_from_plain, changes_to_plain
from qserver.storage.view import View

FORMAT: Final = 1


class Checkpoint(msgspec.Struct, frozen=True, array_like=True):
    format: int
    version: int
    time: float
    trees_used: int
    definitions: dict[str, Any]
    roots: list[dict[int, int]]
    last_page: int
    """No page of the checkpoint has a greater number."""


class CheckpointFormat(msgspec.Struct, frozen=True, array_like=True):
    """As much of it as all releases have in common."""

    format: int


def encode_checkpoint(view: View, roots: list[dict[int, int]], last_page: int) -> bytes:
    catalog = view.catalog
    definitions = changes_to_plain({**catalog.tables, **catalog.others})
    return sealed(
        _encode(
            Checkpoint(
                FORMAT, view.version, view.time, catalog.trees_used, definitions, roots, last_page
            )
        )
    )


def decode_checkpoint(version: int, data: bytes) -> Checkpoint:
    """The record that was filed under a version, or DataCorrupted."""
    body = unsealed(data, f"the checkpoint of version {version}")
    try:
        if (found := _decode_format(body).format) != FORMAT:
            raise DataUnknown(
                f"the checkpoint has format {found}, this release knows {FORMAT}",
                hint="The data were written by another release of qserver: use that or a newer"
                " one.",
            )
        checkpoint = _decode(body)
    except msgspec.MsgspecError as error:
        raise DataCorrupted("the checkpoint cannot be decoded", detail=str(error)) from error
    if checkpoint.version != version or not checkpoint.roots:
        raise DataCorrupted(
            f"the checkpoint of version {checkpoint.version} is filed as {version},"
            f" with {len(checkpoint.roots)} shards",
            hint="Restore a backup.",
        )
    return checkpoint


def catalog_of(checkpoint: Checkpoint) -> Catalog:
    return Catalog().changed(changes_from_plain(checkpoint.definitions), checkpoint.trees_used)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Checkpoint).decode
_decode_format = msgspec.msgpack.Decoder(CheckpointFormat).decode
