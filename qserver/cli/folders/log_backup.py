"""Makes a data folder of what a replicated log has, while its databases are served.

Families are read one after the other, each as it is at one moment; what was made or deleted
meanwhile is left out as in a backup of a folder that is in use, see `backup`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from qserver.archive.listed import Listed, ancestors
from qserver.cli.folders.backup import Backup
from qserver.cli.folders.log_nodes import LogAddress
from qserver.control.plane import CONTROL
from qserver.durability.data_folder import DataFolder
from qserver.replication.bases import Note, nobody
from qserver.replication.moving import read_family


class LogBackup(Backup):
    def __init__(self, log: LogAddress, target: Path, note: Note = nobody) -> None:
        super().__init__(target, target)
        self._log = log
        self._note = note
        self._listed: Mapping[str, Listed] = {}
        self._read: set[str] = set()

    def _first_list(self) -> dict[str, Listed]:
        found = super()._first_list()
        self._listed = found
        return found

    def _strays(self, listed: Mapping[str, Listed]) -> set[str]:
        return set()

    def _copy_file(self, name: str, target: Path) -> bool:
        """Read the whole family of a database, unless that was done."""
        above = ancestors(self._listed, name) if name in self._listed else []
        root = above[-1] if above else name
        if name == CONTROL or root not in self._read:
            self._read.add(root)
            folder = DataFolder(target.parent)
            self._log.run(lambda nodes: read_family(nodes, folder, root, note=self._note))
        return target.exists()
