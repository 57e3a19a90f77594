"""A backup while databases and branches come and go holds what was there all the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import httpx
import pytest

from qserver.cli import main
from qserver.cli.folders.backup import Backup
from qserver.client import Client
from qserver.errors import QserverError
from tests.cli.folders.test_folders import served
from tests.cli.real_server import KEY, real_server

SUM = "SELECT count(*), sum(n)::bigint FROM t"


def restored(copy: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Restore a copy that `check` finds nothing wrong with."""
    capsys.readouterr()
    assert main(["check", "--data", str(copy)]) == 0, capsys.readouterr().out
    assert main(["restore", str(copy), "--data", str(folder)]) == 0
    return folder


def names(client: Client) -> list[str]:
    return sorted(each["name"] for each in client.databases())


def filled(folder: Path) -> None:
    """A database with a checkpoint, and three branches of it."""
    with served(folder) as client:
        client.query("CREATE TABLE t (id bigint PRIMARY KEY, n bigint)")
        client.query("INSERT INTO t SELECT g, g FROM generate_series(1, 3000) g")
    with served(folder) as client:
        for name in ("one", "two", "three"):
            client.create_database(name, "main")
        client.query("UPDATE t SET n = 0 WHERE id <= 10", database="two")


@pytest.mark.long
def test_a_backup_holds_what_was_there_from_its_beginning_to_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    filled(data)
    with served(data) as client:
        actions: list[Callable[[], object]] = [
            lambda: client.delete_database("one"),
            lambda: client.create_database("late-branch", "two"),
            lambda: client.create_database("late"),
            lambda: client.delete_database("main"),
            lambda: client.query("UPDATE t SET n = n + 1", database="two"),
        ]

        def named(found: list[str]) -> Iterator[str]:
            assert len(found) == 4
            for name in found:
                actions.pop(0)()
                yield name
            for action in actions:
                action()

        assert len(Backup(data, copy).copy(named)) == 5, "control, main for its branches, 3 others"
    again = restored(copy, tmp_path / "again", capsys)
    with served(again) as client:
        assert names(client) == ["late", "three", "two"]
        assert client.query(SUM, database="three").rows == [(3000, 4501500)]
        assert client.query(SUM, database="two").rows[0][0] == 3000
        client.query("DELETE FROM t", database="three")
        assert client.query(SUM, database="two").rows[0][0] == 3000, "branches are independent"
        client.delete_database("three")
    assert main(["check", "--data", str(again)]) == 0
    assert "warning" not in capsys.readouterr().out, "nothing is held for those that are not there"


@contextmanager
def churning(url: str, client: Client) -> Iterator[None]:
    """Commits, trims, and branches that are made and deleted, until the block ends."""
    stop = Event()
    failures: list[Exception] = []

    def run(step: Callable[[int], object]) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            try:
                step(number)
            except QserverError as error:
                if not error.retryable:
                    failures.append(error)
                    return

    def branches(number: int) -> None:
        client.create_database(f"b{number}", "main" if number % 2 else "three")
        if number > 2:
            client.delete_database(f"b{number - 2}")

    def writes(number: int) -> None:
        client.transaction(
            ["UPDATE t SET n = n + 1 WHERE id % 50 = 0", "UPDATE t SET n = n - 1 WHERE id % 50 = 1"]
        )

    def trims(number: int) -> None:
        httpx.patch(
            f"{url}/v1/databases/three",
            json={"history": number % 2},
            headers={"Authorization": f"Bearer {KEY}"},
            timeout=240,
        ).raise_for_status()
        client.query("UPDATE t SET n = n", database="three")

    threads = [Thread(target=run, args=(step,)) for step in (branches, writes, trims)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []


@pytest.mark.long
def test_a_backup_beside_writes_trims_and_branches_that_come_and_go(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    filled(data)
    with real_server(data) as url, Client(url, KEY) as client:
        before = client.query(SUM, database="main").version
        client.query("INSERT INTO t VALUES (4002, 0)")
        with churning(url, client):
            assert main(["backup", "--data", str(data), str(tmp_path / "copy")]) == 0
    again = restored(tmp_path / "copy", tmp_path / "again", capsys)
    with served(again) as client:
        assert {"main", "two", "three"} <= set(names(client))
        for name in names(client):
            ((count, total),) = client.query(SUM, database=name).rows
            assert count in (3000, 3001) and (name == "two" or total == 4501500)
        assert client.query(SUM, as_of=before).rows == [(3000, 4501500)]
        assert client.query("SELECT count(*) FROM t").rows == [(3001,)]
