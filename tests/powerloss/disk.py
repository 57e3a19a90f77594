"""What a disk holds when the power fails: the journal of a process, replayed on a strict model.

    journal ─► replay, one operation after the other ─► at any of them: `survivors` ─► a folder

A file has its durable bytes, and for every sector that was written since the values that it went
through. A power failure may leave any of these in each sector, whatever it leaves in the others;
the length of the file is one more such value. To cut a file is one change of its length and of what
falls away. A folder has its durable names, and the changes since; any of them may be lost.

A sync makes durable what was there when it began, and of a folder that is its names alone: a new
file that was synced is still lost with its name. After a sync that has failed, the system takes
what it could not write for written (as Linux does), so no later sync writes it.

This is stricter than most file systems, and no stricter than POSIX.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from random import Random
from typing import Final, NamedTuple

from tests.powerloss.journal import Operation

SECTOR: Final = 512
Survivors = dict[str, bytes | None]
"""Files by path; None is a folder, which comes before what is in it."""
_ZEROS: Final = bytes(SECTOR)


class Value(NamedTuple):
    """What a sector held, or how long the file was."""

    cuts: int
    """How often the file had been cut by then."""
    content: bytes
    is_cut: bool = False
    """It came with the cut itself, not by a write."""


class Length(NamedTuple):
    cuts: int
    length: int


class File:
    def __init__(self) -> None:
        self.durable: dict[int, bytes] = {}
        self.length = Length(0, 0)
        self.now: dict[int, bytes] = {}
        self.length_now = self.length
        self.values: dict[int, list[Value]] = {}
        """What sectors went through since they were durable."""
        self.lengths: list[Length] = []
        self._unwritten: set[int] = set()
        """Sectors that the next sync has to write."""
        self._begun: tuple[dict[int, int], int] | None = None

    def write(self, offset: int, data: bytes) -> None:
        for sector in range(offset // SECTOR, -(-(offset + len(data)) // SECTOR)):
            first = sector * SECTOR
            old = bytearray(self.now.get(sector, _ZEROS))
            start, end = max(offset - first, 0), min(offset + len(data) - first, SECTOR)
            old[start:end] = data[first + start - offset : first + end - offset]
            self._set(sector, bytes(old))
        self._resize(max(self.length_now.length, offset + len(data)))

    def cut(self, length: int) -> None:
        if length < self.length_now.length:
            self.length_now = Length(self.length_now.cuts + 1, self.length_now.length)
            for sector in [each for each in self.now if (each + 1) * SECTOR > length]:
                kept = self.now[sector][: max(length - sector * SECTOR, 0)]
                self._set(sector, kept.ljust(SECTOR, b"\0"), is_cut=True)
        self._resize(length)

    def _set(self, sector: int, content: bytes, is_cut: bool = False) -> None:
        self.now[sector] = content
        value = Value(self.length_now.cuts, content, is_cut)
        self.values.setdefault(sector, []).append(value)
        self._unwritten.add(sector)

    def _resize(self, length: int) -> None:
        if length != self.length_now.length:
            self.length_now = Length(self.length_now.cuts, length)
            self.lengths.append(self.length_now)

    def sync_begins(self) -> None:
        counts = {each: len(self.values[each]) for each in self._unwritten}
        self._begun = counts, len(self.lengths)

    def sync_ends(self) -> None:
        assert self._begun is not None, "a sync ends that has not begun"
        counts, lengths = self._begun
        for sector, count in counts.items():
            values = self.values[sector]
            self.durable[sector] = values[count - 1].content
            del values[:count]
            if not values:
                del self.values[sector]
                self._unwritten.discard(sector)
        if lengths:
            self.length = self.lengths[lengths - 1]
            del self.lengths[:lengths]

    def sync_fails(self) -> None:
        assert self._begun is not None, "a sync fails that has not begun"
        self._unwritten -= self._begun[0].keys()

    def survivor(self, choose: Callable[[int, int], int]) -> bytes:
        """What is left; `choose` says for a sector how many of its values, -1 for the length."""
        kept = choose(-1, len(self.lengths))
        cuts, length = self.lengths[kept - 1] if kept else self.length
        content = dict(self.durable)
        for sector, values in self.values.items():
            possible = [value for value in values if value.cuts <= cuts]
            forced = max([n for n, value in enumerate(possible, 1) if value.is_cut], default=0)
            kept = forced + choose(sector, len(possible) - forced)
            if kept:
                content[sector] = possible[kept - 1].content
        whole = b"".join(content.get(each, _ZEROS) for each in range(-(-length // SECTOR)))
        return whole[:length]


@dataclass(slots=True)
class Folder:
    durable: dict[str, Node] = field(default_factory=dict)
    now: dict[str, Node] = field(default_factory=dict)
    changes: list[tuple[str | None, str | None, Node]] = field(default_factory=list)
    """A name that goes, a name that comes, and whose."""
    _begun: int = 0

    def change(self, gone: str | None, come: str | None, node: Node) -> None:
        self.changes.append((gone, come, node))
        _apply(self.now, self.changes[-1:])

    def sync_begins(self) -> None:
        self._begun = len(self.changes)

    def sync_ends(self) -> None:
        _apply(self.durable, self.changes[: self._begun])
        del self.changes[: self._begun]
        self._begun = 0

    def sync_fails(self) -> None:
        """Names are the file system's own: it tries again, and the next sync may succeed."""

    def survivor(self, keeps: Callable[[], bool]) -> dict[str, Node]:
        names = dict(self.durable)
        _apply(names, [change for change in self.changes if keeps()])
        return names


Node = File | Folder


def _apply(names: dict[str, Node], changes: Iterable[tuple[str | None, str | None, Node]]) -> None:
    for gone, come, node in changes:
        if gone is not None:
            names.pop(gone, None)
        if come is not None:
            names[come] = node


class Disk:
    """A folder that is durable and empty, or holds what is given, and what happens to it."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self.root = Folder()
        self._by_inode: dict[int, Node] = {}

    def load(self, content: Survivors) -> None:
        """Begin with this, all of it durable."""
        for path, data in content.items():
            parent, name = self._parent(f"{self._root}/{path}")
            parent.durable[name] = parent.now[name] = Folder() if data is None else _durable(data)

    def replay(self, operation: Operation) -> None:
        kind, node = operation.kind, self._by_inode.get(operation.inode)
        if kind == "O":
            self._by_inode[operation.inode] = self._at(operation.path)
        elif kind in "CD":
            node = File() if kind == "C" else Folder()
            self._by_inode[operation.inode] = node
            parent, name = self._parent(operation.path)
            parent.change(None, name, node)
        elif kind == "U":
            parent, name = self._parent(operation.path)
            parent.change(name, None, parent.now[name])
        elif kind == "R":
            parent, name = self._parent(operation.path)
            new_parent, new_name = self._parent(operation.data.decode())
            assert parent is new_parent, "a file is only renamed inside of its folder"
            parent.change(name, new_name, parent.now[name])
        elif kind == "B":
            _known(node, operation).sync_begins()
        elif kind == "E":
            _known(node, operation).sync_ends()
        elif kind == "F":
            _known(node, operation).sync_fails()
        else:
            assert isinstance(node, File), f"{operation} is on no file that is known"
            if kind == "W":
                node.write(operation.offset, operation.data)
            else:
                node.cut(operation.offset)

    def _at(self, path: str) -> Node:
        node: Node = self.root
        for name in PurePosixPath(path).relative_to(self._root).parts:
            assert isinstance(node, Folder)
            node = node.now[name]
        return node

    def _parent(self, path: str) -> tuple[Folder, str]:
        whole = PurePosixPath(path)
        folder = self._at(str(whole.parent))
        assert isinstance(folder, Folder)
        return folder, whole.name

    def survivors(self, luck: Luck) -> Survivors:
        """What is there after a power failure now."""
        return dict(_survivors(self.root, "", luck))


def _known(node: Node | None, operation: Operation) -> Node:
    assert node is not None, f"{operation} is on nothing that is known"
    return node


def _durable(data: bytes) -> File:
    file = File()
    file.write(0, data)
    file.sync_begins()
    file.sync_ends()
    return file


def _survivors(folder: Folder, under: str, luck: Luck) -> Iterator[tuple[str, bytes | None]]:
    for name, node in sorted(folder.survivor(luck.keeps_name).items(), key=lambda pair: pair[0]):
        if isinstance(node, File):
            yield under + name, node.survivor(luck.of_file())
        else:
            yield under + name, None
            yield from _survivors(node, f"{under}{name}/", luck)


class Luck:
    """What a power failure spares of that which was not synced: nothing, all, or as a seed has it.

    All is also what a process leaves that was killed: the system's cache survives it.
    """

    def __init__(self, seed: int | str) -> None:
        self.seed = seed
        self._chance = Random(seed)

    def keeps_name(self) -> bool:
        return self.seed == "all" or (self.seed != "nothing" and self._chance.random() < 0.5)

    def of_file(self) -> Callable[[int, int], int]:
        if self.seed == "nothing":
            return lambda sector, count: 0
        if self.seed == "all":
            return lambda sector, count: count
        chance = self._chance
        whole = chance.choice(("nothing", "all", "pages", "sectors", "sectors"))
        if whole in ("nothing", "all"):
            return lambda sector, count: count * (whole == "all")
        pages: dict[int, float] = {}

        def choose(sector: int, count: int) -> int:
            place = sector // 8 if whole == "pages" and sector >= 0 else sector
            share = pages.setdefault(place, chance.random())
            return round(share * count)

        return choose

    def __repr__(self) -> str:
        return f"what was not synced survives: {self.seed}"


def put_down(survivors: Survivors, folder: Path) -> None:
    """Make a folder that holds this and nothing else."""
    folder.mkdir()
    for path, content in survivors.items():
        if content is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(content)
