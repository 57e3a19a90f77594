"""The preloaded library as Python sees it: built, put before a process, its journal read."""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Final

SOURCE: Final = Path(__file__).parent / "recorder.c"
CONTROL: Final = "RECORDER_CONTROL"
COMPILER: Final = shutil.which("gcc") or shutil.which("cc")
_HEAD: Final = Struct("<c3xIQQQ")
_FIELDS: Final = (
    "operations",
    "kill_at",
    "kill_half",
    "write_errno",
    "sync_errno",
    "read_errno",
    "fail_at",
    "fail_errno",
    "kill_sync",
    "fail_read",
    "refused",
)
_ONLY_BYTES: Final = 256


@dataclass(frozen=True, slots=True)
class Operation:
    """One line of the journal.

    C create, D make a folder, O open, W write, T truncate, R rename, U unlink, B a sync begins,
    E it has ended, F it has failed, A something is acknowledged.
    """

    kind: str
    inode: int
    offset: int
    path: str
    data: bytes

    def __str__(self) -> str:
        size = f", {len(self.data)} bytes" if self.kind == "W" else ""
        return f"{self.kind} {self.path or self.inode} at {self.offset}{size}"


def build_library(folder: Path) -> Path:
    """Compile the library into a folder."""
    assert COMPILER is not None, "this needs a C compiler"
    library = folder / "recorder.so"
    options = ["-O1", "-Wall", "-Wextra", "-Wno-format-truncation", "-Werror", "-shared", "-fPIC"]
    command = [COMPILER, *options, "-o", str(library), str(SOURCE), "-ldl", "-lpthread"]
    subprocess.run(command, check=True)
    return library


class Control:
    """The page by which a process is told where to die and what to refuse."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), 4096)

    def set(self, only: str = "", /, **fields: int) -> None:
        """What is not named is taken back."""
        numbers = [self.get("operations"), *(fields.pop(name, 0) for name in _FIELDS[1:-1])]
        assert not fields, f"the control page has no {', '.join(fields)}"
        packed = Struct(f"<{len(_FIELDS)}Q").pack(*numbers, self.get("refused"))
        end = only.encode().ljust(_ONLY_BYTES, b"\0")
        self._page[: len(packed) + _ONLY_BYTES] = packed + end

    def get(self, name: str) -> int:
        at = 8 * _FIELDS.index(name)
        return int.from_bytes(self._page[at : at + 8], "little")

    def close(self) -> None:
        self._page.close()


class Recorder:
    """The journal and the control page of processes that work under one folder."""

    def __init__(self, library: Path, root: Path, place: Path) -> None:
        self._library = library
        self.root = root.resolve()
        place.mkdir(parents=True, exist_ok=True)
        self._journal = place / "journal"
        self._control = place / "control"
        self._journal.write_bytes(b"")
        self._control.write_bytes(bytes(4096))
        self.control = Control(self._control)

    def environment(self) -> dict[str, str]:
        clean = {name: text for name, text in os.environ.items() if not name.startswith("QSERVER_")}
        return {
            **clean,
            "LD_PRELOAD": str(self._library),
            "RECORDER_ROOT": str(self.root),
            "RECORDER_JOURNAL": str(self._journal),
            CONTROL: str(self._control),
        }

    def operations(self) -> Iterator[Operation]:
        data = memoryview(self._journal.read_bytes())
        at = 0
        while at < len(data):
            kind, path_bytes, inode, offset, data_bytes = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            path = str(data[at : at + path_bytes], "utf-8")
            at += path_bytes
            content = bytes(data[at : at + data_bytes])
            at += data_bytes
            yield Operation(kind.decode(), inode, offset, path, content)
