"""Bases: copies of a family's files at a position of its stream, with which other machines begin.

    make   position written ─► parts of each file ─► manifest ─► older parts and messages dropped
    load   manifest ─► parts, under another name ─► all are whole: files ─► position

A base counts when the manifest names it. Files that are copied while they are written may have more
than the position says: what is read again is skipped by its version. A database that is made
meanwhile is not in the base, and one that is removed may not be: the stream behind the position
says so.

The manifest only goes forward, and the stream is purged up to its position, never beyond. A base's
name begins with the sequence of its position, and whoever has set the manifest removes only bases
that are older. So no maker removes parts of one that can still become the manifest's.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from hashlib import sha256
from typing import Final, Protocol, TypeAlias

import msgspec
import trio

from qserver.durability.pinning import unpin_others
from qserver.errors import DataCorrupted
from qserver.replication.copies import Copies, FileCopy, end_of
from qserver.replication.messages import Branch, Records, Removed
from qserver.replication.patience import PAUSE_SECONDS, Result, patiently
from qserver.replication.port import LogNodes, Refused, Stream, Unanswered
from qserver.replication.position import BEGINNING, Position, position_page, save_position
from qserver.replication.reader import Purged, Reader

PART_BYTES: Final = 512 << 10
BASE_BYTES: Final = 64 << 20
BASE_SHARE: Final = 0.5
"""A base is due when the stream since the last has so many bytes, and this share of the files'."""
LAG_SECONDS: Final = 20.0
"""For so long a node may lack a part that was saved; who asks then, and gets none: it is lost."""


Note: TypeAlias = Callable[[int], None]


def nobody(size: int) -> None:
    """Nobody wants to know."""


class CopiedFile(msgspec.Struct, frozen=True):
    name: str
    size: int
    parts: int
    digest: str


class Manifest(msgspec.Struct, frozen=True):
    base: str
    """Its name: the sequence of its position, and something that no other base has."""
    position: Position
    files: list[CopiedFile]
    """Parents come before their branches, so the root is the first."""


class BaseOf(Protocol):
    """The family of which a base is made."""

    root: str

    @property
    def versions(self) -> dict[str, int]:
        """Its databases; one of them may have no file yet."""

    @property
    def stream(self) -> Stream: ...

    async def save_position(self) -> Position: ...


class Bases:
    def __init__(
        self,
        nodes: LogNodes,
        copies: Copies,
        new_name: Callable[[], str],
        seconds: float,
        *,
        share: float = 0.5,
        note: Note = nobody,
    ) -> None:
        """`new_name` returns one that nobody ever had; `share`: of the time, to make bases in.

        `note` is told of the bytes that were saved or loaded.
        """
        self._nodes = nodes
        self._copies = copies
        self._new_name = new_name
        self._seconds = seconds
        self._pauses = 1 / share - 1
        self._note = note
        self.newest: dict[str, int] = {}
        """By root: the sequence of the last base that was heard of."""

    async def manifest(self, root: str) -> Manifest | None:
        value = await self._ask(root, self._nodes.value, manifest_key(root))
        if value is None:
            return None
        manifest = decode_manifest(value.data, root)
        self.newest[root] = manifest.position.sequence
        return manifest

    async def remove(self, root: str) -> None:
        await self._ask(root, remove_base, self._nodes, root)
        self.newest.pop(root, None)

    def is_due(self, logged: int, names: Iterable[str]) -> bool:
        """Return whether a family of these databases should have a base again."""
        if logged < BASE_BYTES:
            return False
        return logged >= BASE_SHARE * sum(map(self._copies.files.size_bytes, names))

    # --- making ---

    async def make(self, family: BaseOf) -> int:
        """Make a base of the files as they are; return how many bytes of messages it replaces.

        Nothing is purged unless the manifest is known to be set.
        """
        root, saved = family.root, await family.save_position()
        position = msgspec.structs.replace(saved, logged=0)
        before = await self.manifest(root)
        if before is not None and before.position.sequence >= position.sequence:
            return saved.logged
        name = f"{position.sequence}-{_UNFIT.sub('-', self._new_name())}"
        files = []
        for each in (root, *(each for each in position.versions if each != root)):
            copied = await self._save(root, name, each)
            if copied is not None:
                files.append(copied)
            elif each in family.versions:  # its message is there, and its file is being made
                await self._ask(root, self._nodes.remove_parts, f"{root}.{name}.")
                return 0
        manifest = Manifest(name, position, files)
        if not await self._ask(root, self._set, root, manifest):
            await self._ask(root, self._nodes.remove_parts, f"{root}.{name}.")
            return saved.logged
        self.newest[root] = position.sequence
        await self._remove_older(root, manifest)
        await self._ask(root, family.stream.purge, position.sequence)
        return saved.logged

    async def _save(self, root: str, base: str, name: str) -> CopiedFile | None:
        """Save the parts of one file; None if it is removed meanwhile."""
        digest, size, count = sha256(), 0, 0

        async def save(copy: FileCopy) -> None:
            nonlocal size, count
            size = copy.size
            for at in range(0, size, PART_BYTES):
                began = trio.current_time()
                data = await copy.read(at, PART_BYTES)
                digest.update(data)
                key = part_key(root, base, name, count)
                await self._ask(root, self._nodes.save_part, key, data)
                count += 1
                self._note(len(data))
                await trio.sleep(self._pauses * (trio.current_time() - began))

        if not await self._copies.copy(name, save, is_branch=name != root):
            return None
        return CopiedFile(name, size, count, digest.hexdigest())

    async def _set(self, root: str, manifest: Manifest) -> bool:
        """Set the manifest; False if there is one that is as new. An unknown outcome is read."""
        key, data = manifest_key(root), _encode(manifest)
        value = await self._nodes.value(key)
        if value is not None and value.data == data:
            return True
        if value is not None:
            found = decode_manifest(value.data, root)
            if found.position.sequence >= manifest.position.sequence:
                return False
        try:
            await self._nodes.set_value(key, data, 0 if value is None else value.revision)
        except Refused as refused:
            raise Unanswered from refused  # look again
        return True

    async def _remove_older(self, root: str, manifest: Manifest) -> None:
        """Remove what other bases left, whole or not, unless one is newer."""
        keys = await self._ask(root, self._nodes.parts, f"{root}.")
        for base in {key.split(".")[1] for key in keys} - {manifest.base}:
            if int(base.partition("-")[0]) <= manifest.position.sequence:
                prefix = f"{root}.{base}."
                await self._ask(root, self._nodes.remove_parts, prefix)

    # --- loading ---

    async def load_if_needed(self, root: str, stream: Stream, local: Position) -> Position:
        """Return where to read on: files that are not there, or are too old, are a base then."""
        while True:
            bounds = await self._ask(root, stream.bounds)
            is_behind = bounds.first > local.sequence + 1
            manifest = await self.manifest(root)  # after that: it is set before anything is purged
            if manifest is None:
                if is_behind:
                    raise DataCorrupted(
                        f"the stream of {root} begins with message {bounds.first}, and no base has"
                        " what was before",
                        hint="The log lost it. The newest file has it: qserver cluster rescue.",
                    )
                return local
            is_there = local.sequence and await self._copies.files.has_file(root)
            if is_there and not is_behind:
                return local
            if await self.load(root, stream, manifest, local):
                return manifest.position

    async def load_missing(
        self, root: str, stream: Stream, local: Position, missing: set[str]
    ) -> Position | None:
        """Load a base that has files which cannot be made here; None if there is none."""
        manifest = await self.manifest(root)
        if manifest is None or not missing.issubset({file.name for file in manifest.files}):
            return None
        is_loaded = await self.load(root, stream, manifest, local)
        return manifest.position if is_loaded else None

    async def load(self, root: str, stream: Stream, manifest: Manifest, local: Position) -> bool:
        """Replace a family's files, which are not open, by a base.

        False if there was a newer one meanwhile: then nothing has changed. The same after an error.
        """
        names = {root, *local.versions, *manifest.position.versions}
        files = self._copies.files
        try:
            later = await self._check_ends(root, stream, manifest, names)
            for file in manifest.files:
                page = position_page(BEGINNING) if file.name == root else None
                async with aclosing(self._pieces(root, manifest, file)) as pieces:
                    await files.stage(file.name, pieces, page)
        except BaseException as error:
            with trio.CancelScope(shield=True):
                for file in manifest.files:
                    await files.discard(file.name)
            if isinstance(error, Purged):
                return False
            raise
        # All of this is done again until the root's file, which goes last and comes last, is there
        # and has a position.
        for name in (*((names | later) - {root}), root):
            await self._copies.remove_file(name)
        for file in reversed(manifest.files):
            await files.place(file.name)
        for file in manifest.files:
            async with self._copies.hold(file.name) as own:
                await unpin_others(own, manifest.position.versions)
        async with self._copies.hold(root) as own:
            await save_position(own, manifest.position)
        return True

    async def _check_ends(
        self, root: str, stream: Stream, manifest: Manifest, names: set[str]
    ) -> set[str]:
        """Refuse to replace a file that has more than base and stream; return who is in these."""
        ends: dict[str, tuple[int, bytes | None]] = {}
        for name in names:
            if await self._copies.files.has_file(name):
                ends[name] = await self._end_of(name)
        versions = dict(manifest.position.versions)
        reader = Reader(stream, manifest.position)
        await self._ask(root, reader.check_last)
        while ends and (wholes := await self._ask(root, reader.read_towards_end)) is not None:
            for whole in wholes:
                match whole.entry.body:
                    case Records(groups):
                        for group in groups:
                            end, last = ends.get(group.database, (0, None))
                            if last is not None and dict(group.records).get(end, last) != last:
                                raise _beyond(group.database, f"has another version {end}")
                            versions[group.database] = group.records[-1][0]
                    case Branch(name, _, version):
                        versions[name] = version
                    case Removed(name):
                        versions.pop(name, None)
                        ends.pop(name, None)
        for name, (end, _) in ends.items():
            if end > versions.get(name, end):
                raise _beyond(name, f"ends with version {versions[name]}")
        return set(versions)

    async def _end_of(self, name: str) -> tuple[int, bytes | None]:
        """Return the last version of a file that is not open, with its record if it is there."""
        files = self._copies.files
        own = await files.open_file(name, may_make=False)
        try:
            end = await end_of(own, 0)
            return end, dict(await own.read(end - 1, 1)).get(end) or None
        finally:
            with trio.CancelScope(shield=True):
                await files.close_file(name, own)

    async def _pieces(
        self, root: str, manifest: Manifest, file: CopiedFile
    ) -> AsyncGenerator[bytes, None]:
        digest, size = sha256(), 0
        for number in range(file.parts):
            data = await self._part(
                root, manifest, part_key(root, manifest.base, file.name, number)
            )
            if data is None:
                raise _cut(root, f"part {number} of {file.name} is missing")
            digest.update(data)
            size += len(data)
            self._note(len(data))
            yield data
        if (size, digest.hexdigest()) != (file.size, file.digest):
            raise _cut(root, f"{file.name} is not what was saved")

    async def _part(self, root: str, manifest: Manifest, key: str) -> bytes | None:
        """Return a part, also if the node that is asked first lags behind; None: it is lost."""
        began = asked = trio.current_time()
        while (data := await self._ask(root, self._nodes.load_part, key)) is None:
            newest = await self.manifest(root)
            if newest is not None and newest.base != manifest.base:
                raise Purged
            if asked > began + LAG_SECONDS:
                return None
            await trio.sleep(PAUSE_SECONDS)
            asked = trio.current_time()
        return data

    async def _ask(
        self, root: str, call: Callable[..., Awaitable[Result]], *arguments: object
    ) -> Result:
        return await patiently(lambda: call(*arguments), self._seconds, f"the base of {root}")

    def __repr__(self) -> str:
        return f"bases on {self._nodes!r}"


async def remove_base(nodes: LogNodes, root: str) -> None:
    """Remove a family's base: the manifest first, so that nobody begins with half of one."""
    await nodes.remove_value(manifest_key(root))
    await nodes.remove_parts(f"{root}.")


def manifest_key(root: str) -> str:
    return f"manifest.{root}"


def part_key(root: str, base: str, name: str, number: int) -> str:
    return f"{root}.{base}.{name}.{number}"


def decode_manifest(data: bytes, root: str) -> Manifest:
    try:
        return _decode(data)
    except msgspec.MsgspecError as error:
        raise DataCorrupted(
            f"the manifest of {root} cannot be decoded", detail=str(error)
        ) from error


def _beyond(name: str, problem: str) -> DataCorrupted:
    return DataCorrupted(
        f"the file of {name} has more than the replicated log, which {problem}",
        hint="The log lost what it had acknowledged. The file stays as it is: it has what is"
        " missing (qserver cluster rescue).",
    )


def _cut(root: str, problem: str) -> DataCorrupted:
    return DataCorrupted(
        f"the base of {root} is not whole: {problem}",
        hint="The log lost it. Nothing was put in place. A machine that has the files makes another"
        " one; without one, qserver cluster rescue.",
    )


_UNFIT: Final = re.compile("[^A-Za-z0-9_]")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Manifest).decode
