"""`qserver cluster up`: log nodes and nodes on this machine with one command, for trials and tests.

All is in one folder. A second `up` on it goes on with the data.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import trio

from qserver import limits
from qserver.cli.folders.log_nodes import nodes_of
from qserver.cli.log_config import PROGRAM, find_server, share_of_disk, write_private
from qserver.cli.nodes.folder import (
    API_KEY_FILE,
    CLUSTER_KEY_FILE,
    FOLDER_DEFAULT,
    TOKEN_FILE,
    ClusterFacts,
    ClusterFolder,
)
from qserver.cli.nodes.layout import HOST, Layout, NodePlace, layout_at
from qserver.cli.nodes.process import ClusterProcess
from qserver.cli.nodes.starting import Crew, answers, steps_on_stdout
from qserver.config import load
from qserver.durability.folder import lock_folder
from qserver.errors import InvalidRequest, first_of
from qserver.replication.nats.configuration import LogNode, configuration
from qserver.web.description.welcome import curl_lines
from qserver.web.service.machine import half_of_memory

LOG_NODES_DEFAULT: Final = 3
READY: Final = b"GET /ready HTTP/1.1\r\nHost: up\r\nConnection: close\r\n\r\n"
_NOT_THEIRS: Final = {
    *("PORT", "QSERVER_DATA_DIR", "QSERVER_NODE_URL", "QSERVER_TAKE_OVER", "QSERVER_URL"),
    *("QSERVER_TLS_CERTIFICATE", "QSERVER_TLS_KEY", "QSERVER_DATA_URL", "QSERVER_CONTROL_URL"),
    *("QSERVER_ALIAS_URL", "QSERVER_PROCESSES"),
}
"""Settings that are not those of nodes on one machine."""


def run_up(options: argparse.Namespace) -> int:
    program = find_server()
    if program is None:
        raise InvalidRequest(
            f"{PROGRAM} is not installed, which keeps the log",
            hint="Install it: pip install 'qserver[cluster]'",
        )
    folder = ClusterFolder(Path(options.data or FOLDER_DEFAULT))
    folder.check_kind()
    with lock_folder(folder.path, datetime.now(UTC).isoformat(timespec="seconds")):
        count = _log_nodes(folder, options.log_nodes)
        layout = layout_at(options.port, options.nodes, count)
        folder.keep(ClusterFacts(layout.log_url, count))
        cluster = _Cluster(folder, layout, program, os.environ)
        try:
            return trio.run(cluster.run)
        except ExceptionGroup as group:
            raise first_of(group) from group


def _log_nodes(folder: ClusterFolder, wanted: int | None) -> int:
    kept = folder.facts()
    if kept is None:
        return wanted or LOG_NODES_DEFAULT
    if wanted not in (None, kept.log_nodes):
        raise InvalidRequest(
            f"the cluster in {folder.path} has {kept.log_nodes} log nodes, and keeps them",
            hint="Leave out --log-nodes, or name another folder with --data.",
        )
    return kept.log_nodes


class _Cluster:
    def __init__(
        self, folder: ClusterFolder, layout: Layout, program: str, environ: Mapping[str, str]
    ) -> None:
        self._folder = folder
        self._layout = layout
        self._program = program
        self._token, _ = folder.secret(TOKEN_FILE)
        self._cluster_key, _ = folder.secret(CLUSTER_KEY_FILE)
        given = environ.get("QSERVER_API_KEY") or None
        self._api_key, self._is_new = folder.secret(API_KEY_FILE, "svc_k_", given)
        self._environ = {each: text for each, text in environ.items() if each not in _NOT_THEIRS}
        load(self._settings(layout.nodes[0]))  # raises here, and not in each process
        self._steps = steps_on_stdout()
        self._crew = Crew(self._steps)

    async def run(self) -> int:
        return await self._crew.run(self._start)

    async def _start(self) -> None:
        began, path = trio.current_time(), self._folder.path
        self._steps.begin(f"Starting {_counted(len(self._layout.log), 'log node')} in {path}")
        log_nodes = [self._log_node(name) for name in self._layout.log]
        await self._crew.start(
            [
                (process, str(server), partial(answers, server.host, server.port, b"", b"INFO "))
                for process, server in zip(log_nodes, self._layout.log.values(), strict=True)
            ],
            began,
        )
        async with nodes_of(self._layout.log_url, self._token, len(self._layout.log)):
            self._steps.done("log", "ready for streams", began)
        self._steps.begin(f"Starting {_counted(len(self._layout.nodes), 'node')}")
        await self._crew.start(
            [
                (self._node(each), each.url, partial(answers, HOST, each.port, READY, _OK))
                for each in self._layout.nodes
            ],
            began,
        )
        self._steps.say(self._welcome(trio.current_time() - began))

    # --- processes ---

    def _log_node(self, name: str) -> ClusterProcess:
        path = self._folder.path.absolute()
        file = path / f"{name}.conf"
        node = LogNode(
            name=name,
            peers=self._layout.log,
            token=self._token,
            data=str(path / name),
            data_bytes_max=share_of_disk(path) // len(self._layout.log),
        )
        write_private(file, configuration(node))
        command = [self._program, "-c", str(file)]
        return ClusterProcess(name, command, self._environ, self._folder.path / f"{name}.log")

    def _node(self, node: NodePlace) -> ClusterProcess:
        # Not from a folder `qserver` that happens to be here.
        command = [sys.executable, "-P", "-m", "qserver", "serve"]
        output = self._folder.path / f"{node.name}.log"
        return ClusterProcess(node.name, command, self._settings(node), output)

    def _settings(self, node: NodePlace) -> dict[str, str]:
        memory = max(half_of_memory() // len(self._layout.nodes), limits.CACHE_BYTES_MIN)
        return {
            "QSERVER_MEMORY": str(memory),
            **self._environ,
            "QSERVER_HOST": HOST,
            "QSERVER_PORT": str(node.port),
            "QSERVER_DATA_DIR": str(self._folder.path / node.name),
            "QSERVER_API_KEY": self._api_key,
            "QSERVER_LOG": self._layout.log_url,
            "QSERVER_LOG_TOKEN": self._token,
            "QSERVER_LOG_COPIES": str(len(self._layout.log)),
            "QSERVER_NODE": node.name,
            "QSERVER_LINK": f"{HOST}:{node.link}",
            "QSERVER_CLUSTER_KEY": self._cluster_key,
        }

    # --- text ---

    def _welcome(self, seconds: float) -> str:
        path, url = self._folder.path, self._layout.nodes[0].url
        data = "" if path == Path(FOLDER_DEFAULT) else f" --data {path}"
        kept = f"kept in {path / API_KEY_FILE}"
        return "\n".join(
            [
                "",
                f"Ready after {seconds:.1f} s. Every node answers for all databases:",
                *(f"  {node.name}   {node.url}" for node in self._layout.nodes),
                "",
                f"Your API key, {kept}: {self._api_key}"
                if self._is_new
                else f"The API key is {kept}.",
                "",
                "Try it:",
                *(f"  {line}" for line in curl_lines(url, self._shown_key())),
                f"  qserver sql --url {url} --key-file {path / API_KEY_FILE}",
                f"  qserver cluster status{data}",
                "",
                "Ctrl-C stops all; another `up` goes on with the data.",
            ]
        )

    def _shown_key(self) -> str:
        return self._api_key if self._is_new else f"'$(cat {self._folder.path / API_KEY_FILE})'"


_OK: Final = b"HTTP/1.1 200"


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
