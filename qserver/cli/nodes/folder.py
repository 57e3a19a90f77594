"""The folder of a cluster on one machine: secrets that are kept, and where its log is.

cluster.json   how many log nodes it has, and where they are
log.token      of the log       ┐
cluster.key    of the nodes     ├ for their owner alone
api.key        the first one    ┘
n1, n2, n3     folders of log nodes, with .conf and .log beside them
q1, q2, q3     data folders of nodes, with .log beside them
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final

import msgspec

from qserver.cli.log_config import write_private
from qserver.control.plane import CONTROL
from qserver.durability.data_folder import SUFFIX
from qserver.durability.folder import LOCK_FILE
from qserver.errors import DataCorrupted, DataInUse, InvalidRequest

FOLDER_DEFAULT: Final = "qserver-cluster"
FACTS_FILE: Final = "cluster.json"
TOKEN_FILE: Final = "log.token"
CLUSTER_KEY_FILE: Final = "cluster.key"
API_KEY_FILE: Final = "api.key"


class ClusterFacts(msgspec.Struct, frozen=True):
    """What is known of a cluster that `up` has started once."""

    log: str
    """The URL of its log nodes, when it was started last."""
    log_nodes: int
    """It never changes: everything is on so many of them."""


class ClusterFolder:
    def __init__(self, path: Path) -> None:
        self.path = path

    def facts(self) -> ClusterFacts | None:
        """Return what is known of the cluster; None in a folder that has none."""
        file = self.path / FACTS_FILE
        try:
            return msgspec.json.decode(file.read_bytes(), type=ClusterFacts)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise InvalidRequest(f"cannot read {file}: {error.strerror}") from None
        except msgspec.MsgspecError as error:
            raise DataCorrupted(f"{file} is damaged: {error}") from None

    def keep(self, facts: ClusterFacts) -> None:
        write_private(self.path / FACTS_FILE, msgspec.json.encode(facts).decode() + "\n")

    def check_kind(self) -> None:
        """Raise DataInUse unless a cluster can be in this folder."""
        if self.path.exists() and not self.path.is_dir():
            raise DataInUse(f"{self.path} is no folder", hint="Name another with --data.")
        if not self.path.exists() or self.facts() is not None:
            return
        there = sorted(each.name for each in self.path.iterdir() if each.name != LOCK_FILE)
        if f"{CONTROL}{SUFFIX}" in there:
            raise DataInUse(
                f"{self.path} is the data folder of one server, and no cluster",
                hint="Name another folder with --data; qserver restore --log moves its databases.",
            )
        if there:
            raise DataInUse(
                f"{self.path} is no cluster: it holds {', '.join(there[:3])}",
                hint="Name another folder with --data, or an empty one.",
            )

    def secret(self, name: str, prefix: str = "", given: str | None = None) -> tuple[str, bool]:
        """Return a secret and whether it is new; a file keeps it. `given` takes its place."""
        kept = self.kept_secret(name)
        if kept and given in (None, kept):
            return kept, False
        made = given or prefix + secrets.token_hex(16)
        write_private(self.path / name, f"{made}\n")
        return made, True

    def kept_secret(self, name: str) -> str:
        """Return a secret; empty if there is none."""
        file = self.path / name
        try:
            return file.read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidRequest(f"cannot read {file}: {error}") from None

    def __repr__(self) -> str:
        return f"a cluster in {self.path}"
