"""A data folder moves into a real log, is served from there, and moves out while it is served."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import trio

from qserver.cli import main
from tests.cli.folders.test_folders import served
from tests.processes.machine import Machine
from tests.replication.campaign import settings_of
from tests.replication.nodes import Nodes, log_nodes
from tests.replication.test_served import rows


@pytest.fixture
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with log_nodes(1, tmp_path_factory.mktemp("nodes")) as started:
        yield started


@pytest.mark.long
async def test_a_folder_is_served_from_a_log_and_copied_out_of_it(
    nodes: Nodes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = settings_of(nodes, "one")
    for name in ("QSERVER_LOG_TOKEN", "QSERVER_LOG_COPIES"):
        monkeypatch.setenv(name, settings[name])
    log = ["--log", settings["QSERVER_LOG"]]
    await trio.to_thread.run_sync(fill, tmp_path / "data")
    assert await command("restore", str(tmp_path / "data"), *log) == 0
    (tmp_path / "one").mkdir()
    machine = Machine(tmp_path / "one", settings, processes=1, prepare=None)
    try:
        await machine.start()
        async with machine.connected() as wire:
            assert await rows(wire, "SELECT count(*), sum(n) FROM t") == [[3000, "4501500"]]
            await rows(wire, "INSERT INTO t VALUES (0, 1)")
            await wire.made("/v1/databases", name="late", branch_of="main")
            assert await command("backup", str(tmp_path / "copy"), *log) == 0
            assert await command("check", *log) == 0
            await rows(wire, "INSERT INTO t VALUES (-1, 1)")
        assert await machine.stop() == 0
    finally:
        machine.kill()
    assert "DAMAGED" not in capsys.readouterr().out
    await trio.to_thread.run_sync(look, tmp_path / "copy")


async def command(*arguments: str) -> int:
    return await trio.to_thread.run_sync(partial(main, arguments))


def fill(folder: Path) -> None:
    with served(folder) as client:
        client.query("CREATE TABLE t (id bigint PRIMARY KEY, n bigint)")
        client.query("INSERT INTO t SELECT g, g FROM generate_series(1, 3000) g")
        client.create_database("branch", "main")
        client.query("DELETE FROM t WHERE id > 10", database="branch")


def look(folder: Path) -> None:
    with served(folder) as client:
        assert sorted(each["name"] for each in client.databases()) == ["branch", "late", "main"]
        for name, count in (("main", 3001), ("late", 3001), ("branch", 10)):
            assert client.query("SELECT count(*) FROM t", database=name).rows == [(count,)]
