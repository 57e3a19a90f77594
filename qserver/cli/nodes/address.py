"""Where the log of `qserver cluster status`, `move` and `drain` is.

--log  ─►  --data, a folder of `up`  ─►  QSERVER_LOG  ─►  ./qserver-cluster

The first that is given counts.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from qserver.cli.folders.log_nodes import LogAddress, T, log_address
from qserver.cli.nodes.folder import FOLDER_DEFAULT, TOKEN_FILE, ClusterFolder
from qserver.errors import InvalidRequest
from qserver.replication.port import LogNodes

CONNECT_SECONDS_MAX: Final = 10.0


def run_on_log(options: argparse.Namespace, work: Callable[[LogNodes], Awaitable[T]]) -> T:
    """Return what the work with the log's nodes returns."""
    return address_of(options).run(work, CONNECT_SECONDS_MAX)


def address_of(options: argparse.Namespace) -> LogAddress:
    if options.log is None:
        folder = ClusterFolder(Path(options.data or FOLDER_DEFAULT))
        facts = folder.facts()
        if options.data is not None and facts is None:
            raise InvalidRequest(
                f"there is no cluster in {folder.path}",
                hint="Name the folder of `qserver cluster up`, or a log with --log.",
            )
        if facts is not None and (options.data is not None or not os.environ.get("QSERVER_LOG")):
            return LogAddress(facts.log, folder.kept_secret(TOKEN_FILE), facts.log_nodes)
    return log_address(options)
