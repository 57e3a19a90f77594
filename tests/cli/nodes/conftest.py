"""A cluster in memory that the commands reach by --log."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from qserver.cli.folders import log_nodes
from qserver.replication.port import LogNodes
from tests.cli.nodes.memory_cluster import MemoryCluster


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Commands find nothing in the environment, nor in the folder that they are called in."""
    for name in [each for each in os.environ if each.startswith("QSERVER_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> MemoryCluster:
    made = MemoryCluster()

    @asynccontextmanager
    async def nodes_of(url: str, token: str, copies: int) -> AsyncIterator[LogNodes]:
        assert url == "nats://memory:4222"
        yield made.log

    monkeypatch.setattr(log_nodes, "nodes_of", nodes_of)
    return made
