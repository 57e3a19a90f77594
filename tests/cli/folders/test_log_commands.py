"""A data folder moves into a replicated log and out of it, with all that is in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import copytree

import pytest
import trio

from qserver.cli import main
from qserver.cli.folders import log_nodes
from qserver.client import Client
from qserver.durability.data_folder import DataFolder
from qserver.errors import LogFailed
from qserver.replication import bases
from qserver.replication.memory import MemoryNodes
from qserver.replication.port import LogNodes
from tests.cli.folders.test_folders import served

SUM = "SELECT count(*), sum(n)::bigint FROM t"
LOG = ["--log", "nats://memory:4222"]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with history, branches of it, and one that is deleted except for its file."""
    folder = tmp_path_factory.mktemp("filled") / "data"
    with served(folder) as client:
        client.query("CREATE TABLE t (id bigint PRIMARY KEY, n bigint)")
        client.query("INSERT INTO t SELECT g, g FROM generate_series(1, 3000) g")
        client.create_database("other")
    with served(folder) as client:
        client.query("DELETE FROM t WHERE id > 2000")
        client.create_database("one", "main", as_of=2)
        client.create_database("two", "main")
        client.create_database("three", "two")
        client.query("UPDATE t SET n = 0 WHERE id <= 10", database="three")
        client.delete_database("two")
    return folder


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> MemoryNodes:
    nodes = MemoryNodes()

    @asynccontextmanager
    async def nodes_of(url: str, token: str, copies: int) -> AsyncIterator[LogNodes]:
        assert (url, copies) == (LOG[1], 3)
        yield nodes

    monkeypatch.setattr(log_nodes, "nodes_of", nodes_of)
    return nodes


@pytest.fixture
def data(filled: Path, tmp_path: Path) -> Path:
    copytree(filled, tmp_path / "data")
    return tmp_path / "data"


def contents(client: Client) -> dict[str, object]:
    return {
        "names": sorted(each["name"] for each in client.databases()),
        "main": client.query(SUM).rows,
        "before": client.query(SUM, as_of=2).rows,
        "one": client.query(SUM, database="one").rows,
        "three": client.query(SUM, database="three").rows,
    }


@pytest.mark.long
def test_a_folder_is_the_same_after_it_was_in_a_log(
    nodes: MemoryNodes, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["restore", str(data), *LOG]) == 0
    assert "6 databases" in capsys.readouterr().out
    assert main(["check", *LOG]) == 0
    said = capsys.readouterr().out
    assert said.count("ok, version") == 6 and said.count("a branch of db_") == 3
    assert "warning" not in said
    again = tmp_path / "again"
    assert main(["backup", str(again), *LOG]) == 0
    assert main(["check", "--data", str(again)]) == 0
    assert "warning" not in capsys.readouterr().out
    with served(data) as client:
        expected = contents(client)
    with served(again) as client:
        assert contents(client) == expected
        client.query("DELETE FROM t", database="one")
        assert contents(client)["main"] == expected["main"], "branches are independent"
        client.delete_database("three")


@pytest.mark.long
def test_a_log_that_has_databases_is_not_replaced(
    nodes: MemoryNodes, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trio.run(nodes.open_stream, "db_a")
    assert main(["restore", str(data), *LOG]) == 1
    assert "the log has databases already: db_a" in capsys.readouterr().err
    assert trio.run(nodes.streams) == ["db_a"]


@pytest.mark.long
def test_a_restore_that_fails_leaves_nothing_in_the_log(
    nodes: MemoryNodes, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real, saved = nodes.save_part, 0

    async def save_part(key: str, data: bytes) -> None:
        nonlocal saved
        saved += 1
        if saved == 3:
            raise LogFailed("the log's disks are full")
        await real(key, data)

    nodes.save_part = save_part  # type: ignore[method-assign]
    assert main(["restore", str(data), *LOG]) == 1
    assert "disks are full" in capsys.readouterr().err
    assert trio.run(nodes.streams) == []
    assert not nodes._values and not nodes._parts


def test_a_folder_with_damage_does_not_get_into_a_log(
    nodes: MemoryNodes, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    some = next(each for each in sorted(data.glob("db_*.qserver")))
    some.write_bytes(some.read_bytes()[:5000])
    assert main(["restore", str(data), *LOG]) == 1
    assert "damaged" in capsys.readouterr().err
    assert trio.run(nodes.streams) == []


@pytest.mark.half
def test_a_log_is_checked_to_its_last_part(
    nodes: MemoryNodes, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["restore", str(data), *LOG]) == 0
    key = min(key for key in nodes._parts if key.startswith("db_"))
    nodes._parts[key] = nodes._parts[key][:-1]
    capsys.readouterr()
    assert main(["check", *LOG]) == 1
    assert "DAMAGED: the base of db_" in capsys.readouterr().out
    assert main(["backup", str(tmp_path / "copy"), *LOG]) == 1
    assert "is not whole" in capsys.readouterr().err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["data"]
    root = key.split(".")[0]
    trio.run(nodes.remove_stream, root)
    assert main(["check", *LOG]) == 1
    assert f"{root}: DAMAGED: the log has nothing of it" in capsys.readouterr().out


@pytest.mark.long
def test_a_family_is_rescued_from_its_files(
    nodes: MemoryNodes,
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bases, "LAG_SECONDS", 0.1)  # parts that are gone are waited for
    assert main(["restore", str(data), *LOG]) == 0
    root = next(name for name in trio.run(nodes.streams) if f"{name}-" not in name != "control")
    rescue = ["cluster", "rescue", root, "--data", str(data), *LOG]
    nodes._parts.clear()
    capsys.readouterr()
    assert main(rescue) == 1
    said = capsys.readouterr().err
    assert f"{root}: the log cannot be read: the base of {root} is not whole" in said
    assert f"{root}: the file ends with version" in said
    assert "Pass --yes" in said
    assert main([*rescue, "--yes"]) == 0
    assert f"The stream of {root} begins anew" in capsys.readouterr().out
    assert main(["cluster", "rescue", "db_x", "--data", str(data), "--yes", *LOG]) == 1
    assert "db_x is no database without a parent" in capsys.readouterr().err
    for name in trio.run(nodes.streams):
        if name != root:
            assert main(["cluster", "rescue", name, "--data", str(data), "--yes", *LOG]) == 0
    capsys.readouterr()
    assert main(["check", *LOG]) == 0
    assert main(["check", "--data", str(data)]) == 0
    assert "warning" not in capsys.readouterr().out, "a copy is a folder like others"
    assert main(["backup", str(tmp_path / "again"), *LOG]) == 0
    assert DataFolder(tmp_path / "again").names() == DataFolder(data).names()
