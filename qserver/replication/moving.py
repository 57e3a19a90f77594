"""Moves whole families between a log and files that no server uses.

begin_family   files ─► claim, base and manifest of a new stream
read_family    base and stream ─► files, as of now; the log is only read
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from qserver.durability.branch_log import read_base
from qserver.durability.column_numbers import POSITION
from qserver.errors import DataCorrupted, LogFailed
from qserver.replication.bases import Bases, Note, nobody, remove_base
from qserver.replication.copies import CatchUp, Copies, LocalFiles, end_of
from qserver.replication.messages import Claim, checksum_of, encode
from qserver.replication.patience import patiently
from qserver.replication.port import LogNodes, Refused, Stream
from qserver.replication.position import BEGINNING, Position, save_position
from qserver.replication.reader import Purged, Reader

ANSWER_SECONDS: Final = 60.0


async def families_of(files: LocalFiles, names: Iterable[str]) -> dict[str, list[str]]:
    """Return the roots of files, each with its family; parents come before their branches."""
    parents: dict[str, str | None] = {}
    for name in names:
        own = await files.open_file(name, may_make=False)
        try:
            base = read_base(own)
            parents[name] = None if base is None else base.parent
        finally:
            await files.close_file(name, own)

    def line(name: str) -> list[str]:
        parent = parents.get(name)
        return [*line(parent), name] if parent is not None else [name]

    families: dict[str, list[str]] = {}
    for above in sorted(map(line, parents), key=len):
        families.setdefault(above[0], []).append(above[-1])
    return families


async def versions_of(files: LocalFiles, names: Iterable[str]) -> dict[str, int]:
    """Return the last version of each file."""
    versions = {}
    for name in names:
        own = await files.open_file(name, may_make=False)
        try:
            versions[name] = await end_of(own, 0)
        finally:
            await files.close_file(name, own)
    return versions


class _Beginning(msgspec.Struct):
    """A family whose files are the content of a new stream."""

    root: str
    stream: Stream
    position: Position

    @property
    def versions(self) -> dict[str, int]:
        return self.position.versions

    async def save_position(self) -> Position:
        return self.position


async def begin_family(
    nodes: LogNodes,
    files: LocalFiles,
    family: list[str],
    new_name: Callable[[], str],
    *,
    note: Note = nobody,
    keeps_position: bool = False,
) -> None:
    """Begin the stream of a family, which must not be there, with files that nobody else uses.

    `keeps_position`: the files are a copy of the stream from then on, and say so.
    """
    root, copies = family[0], Copies(files)
    what = f"stream {root}"
    versions = await versions_of(files, family)
    stream = await patiently(lambda: nodes.open_stream(root), ANSWER_SECONDS, what)
    claim = new_name()
    data = encode(0, claim, Claim())
    try:
        await patiently(lambda: stream.append(data, 0), ANSWER_SECONDS, what)
    except Refused:  # an own attempt whose answer was lost, or another process
        found = await patiently(lambda: stream.read(1, 1), ANSWER_SECONDS, what)
        if not found or found[0].data != data:
            raise LogFailed(
                f"another process writes the stream {root}",
                hint="Stop all servers of the log, and begin again with an empty one.",
            ) from None
    position = Position(1, checksum_of(data), claim, versions)
    bases = Bases(nodes, copies, new_name, ANSWER_SECONDS, share=1.0, note=note)
    await bases.make(_Beginning(root, stream, position))
    if keeps_position:
        async with copies.hold(root) as own:
            await save_position(own, position)


async def remove_family(nodes: LogNodes, root: str) -> None:
    """Remove all that the log has of a family."""
    what = f"stream {root}"
    await patiently(lambda: nodes.remove_stream(root), ANSWER_SECONDS, what)
    await patiently(lambda: remove_base(nodes, root), ANSWER_SECONDS, what)


async def read_family(
    nodes: LogNodes, files: LocalFiles, root: str, *, note: Note = nobody
) -> dict[str, int]:
    """Make the files of a family, of which there are none; return their versions.

    Empty if the log has no such family.
    """
    what = f"stream {root}"
    while True:
        stream = await patiently(lambda: nodes.find_stream(root), ANSWER_SECONDS, what)
        if stream is None:
            return {}
        copies = Copies(files)
        bases = Bases(nodes, copies, str, ANSWER_SECONDS, note=note)
        position = await bases.load_if_needed(root, stream, BEGINNING)
        catch_up = CatchUp(copies, dict(position.versions), (), set())
        reader = Reader(stream, position)
        try:
            await patiently(reader.check_last, ANSWER_SECONDS, what)
            while True:
                wholes = await patiently(reader.read_towards_end, ANSWER_SECONDS, what)
                if wholes is None:
                    break
                await catch_up.apply(wholes)
        except Purged:  # a newer base was made meanwhile
            for name in (*catch_up.versions, root):
                await files.remove(name)
            continue
        if catch_up.missing:
            raise DataCorrupted(f"the log has no files of {', '.join(sorted(catch_up.missing))}")
        async with copies.hold(root, may_make=True) as own:
            await own.forget(0, [POSITION])
        return {root: 0} | catch_up.versions
