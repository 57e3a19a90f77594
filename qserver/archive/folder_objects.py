"""Objects as files in a folder, which may be that of a disk that is mounted, and may go away.

A folder whose disk is not mounted is there, and empty. Files that are written then would fill the
disk below. So nothing is written unless the mark is there, which only `begin` makes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from qserver.archive.objects import MARK, Key, ObjectMissing, TargetAway
from qserver.durability.files import FILE_MODE, make_folder, publish_file, remove_files

UNFINISHED: Final = ".unfinished"


class FolderObjects:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def place(self) -> str:
        return str(self._folder)

    def save(self, name: str, data: bytes) -> None:
        with self._away():
            if name == MARK:
                make_folder(self._folder)
            elif not (self._folder / MARK).exists():
                raise TargetAway(
                    f"{self._folder} has no {MARK} any more",
                    hint="Is its disk mounted? It is tried again.",
                )
            path = self._folder / name
            make_folder(path.parent)
            unfinished = path.with_name(path.name + UNFINISHED)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            try:
                with os.fdopen(os.open(unfinished, flags, FILE_MODE), "wb") as file:
                    file.write(data)
                publish_file(unfinished, path)
            except OSError:
                with suppress(OSError):
                    unfinished.unlink()
                raise

    def load(self, name: str) -> bytes:
        with self._away():
            try:
                return (self._folder / name).read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                raise ObjectMissing(f"{self._folder / name} is not there") from None

    def keys(self) -> list[Key]:
        with self._away():
            found = []
            for folder, _, files in os.walk(self._folder, onerror=_unless_gone):
                inner = Path(folder).relative_to(self._folder)
                for each in files:
                    with suppress(FileNotFoundError):  # the backup has just removed it
                        if not each.endswith(UNFINISHED):
                            size = Path(folder, each).stat().st_size
                            found.append(Key(f"{inner}/{each}".removeprefix("./"), size))
            return sorted(found)

    def remove(self, names: Sequence[str]) -> None:
        with self._away():
            paths = [self._folder / name for name in names]
            remove_files(paths)
            folders = {above for path in paths for above in path.relative_to(self._folder).parents}
            for folder in sorted(folders, key=lambda each: -len(each.parts))[:-1]:
                with suppress(OSError):  # it has others
                    for left in (self._folder / folder).glob(f"*{UNFINISHED}"):
                        left.unlink()  # by a process that was killed
                    (self._folder / folder).rmdir()

    @contextmanager
    def _away(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise TargetAway(
                f"{self._folder} cannot be used: {error.strerror or error}",
                hint="See to it that it is there, can be written and has room.",
            ) from error

    def __repr__(self) -> str:
        return f"objects in {self._folder}"


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
