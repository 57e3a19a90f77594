"""What must hold of bases on the nodes, looked at whenever something there has changed.

- the manifest never goes back, and its position is one of the stream
- all that it names is there and whole: each database of its position, but for one that was removed
  since; each file has what the position says, nothing that the stream has not, and the pins of all
  branches in the base
- the stream has all messages that are behind the manifest's position
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pickle import loads
from typing import Any

from qserver.durability.kept import decode_outline
from qserver.durability.memory import CheckpointRows
from qserver.replication.bases import CopiedFile, Manifest, decode_manifest, manifest_key, part_key
from qserver.replication.messages import Branch, checksum_of, decode
from simulations.stream import SimulatedNodes, Told
from simulations.stream_checks import ReadStream


class BaseChecks:
    def __init__(self, nodes: SimulatedNodes, root: str, complain: Callable[[str], None]) -> None:
        self._nodes = nodes
        self._root = root
        self._complain = complain
        self._checked: Manifest | None = None

    def look(self) -> None:
        value = self._nodes.agreed.value_now(manifest_key(self._root))
        stream = self._nodes.agreed.stream(self._root)
        manifest = None if value is None else decode_manifest(value, self._root)
        if manifest is not None and manifest != self._checked:
            self._check(manifest)
            self._checked = manifest
        if manifest is not None:
            files = (self._parts(manifest, file) for file in manifest.files)
            if any(part is None for parts in files for part in parts):
                self._complain(f"the base {manifest.base} has lost a part")
        if stream is not None:
            until = 0 if manifest is None else manifest.position.sequence
            if stream.first > until + 1:
                self._complain(f"{stream!r} is purged beyond the base at {until}")

    def _parts(self, manifest: Manifest, file: CopiedFile) -> list[bytes | None]:
        keys = (part_key(self._root, manifest.base, file.name, each) for each in range(file.parts))
        return list(map(self._nodes.agreed.part_now, keys))

    def _check(self, manifest: Manifest) -> None:
        world, before = self._nodes.world, self._checked
        position, told = manifest.position, self._nodes.told[self._root]
        names = [file.name for file in manifest.files]
        world.record("durable", f"the base {manifest.base} of {names}")
        world.reach("a base was made")
        if before is not None and before.position.sequence >= position.sequence:
            self._complain(f"the manifest goes back from {before.base} to {manifest.base}")
        if not 0 < position.sequence <= len(told):
            self._complain(f"the base {manifest.base} is of no message")
            return
        if checksum_of(told[position.sequence - 1].message.data) != position.checksum:
            self._complain(f"the base {manifest.base} is of another message")
        if any(map(_is_branch, told[position.sequence :])):
            world.reach("a base was made while a branch was made")
        self._check_files(manifest, told)

    def _check_files(self, manifest: Manifest, told: list[Told]) -> None:
        then, now = ReadStream(), ReadStream()
        then.read_on(told[: manifest.position.sequence])
        now.read_on(told)
        files = {file.name: self._contents(manifest, file) for file in manifest.files}
        for name in then.records.keys() - now.removed - files.keys():
            self._complain(f"the base {manifest.base} has no file of {name}")
        pins = {
            (parent, branch)
            for parent, (_, _, checkpoints) in files.items()
            for version, outline in checkpoints.outlines()
            for branch in decode_outline(version, outline).names
        }
        for name, (records, _, checkpoints) in files.items():
            for each in now.foreign(name, records):
                self._complain(f"the base {manifest.base}: {each}")
            said = manifest.position.versions.get(name, 0)
            if not then.last_version(name) <= said <= now.last_version(name):
                self._complain(f"the base {manifest.base} has {name} at {said}")
            if name in now.parents and not list(checkpoints.outlines()):
                self._complain(f"the base {manifest.base} has {name}, which was made in part")
            parent = now.parents.get(name)
            if parent is not None and (parent, name) not in pins:
                self._complain(f"the base {manifest.base} has no pin of {name} in {parent}")

    def _contents(self, manifest: Manifest, file: CopiedFile) -> Any:
        """Return the records, pages and checkpoints of a file, see `whole_files`."""
        data = b"".join(part or b"" for part in self._parts(manifest, file))
        if sha256(data).hexdigest() != file.digest:
            self._complain(f"the base {manifest.base} has not all of {file.name}")
            return [], {}, CheckpointRows()
        return loads(data)


def _is_branch(told: Told) -> bool:
    return isinstance(decode(told.message.data, "a message").body, Branch)
