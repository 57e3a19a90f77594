"""A disk that refuses to write or to sync, under the real server: reads go on, and so does it."""

from __future__ import annotations

import errno
import shutil
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import trio

from qserver.client import Client
from qserver.durability.branch_log import begin_branch
from qserver.durability.sqlite import open_log
from qserver.errors import QserverError
from tests.cli.real_server import KEY, ROOT, real_server
from tests.durability.test_check_history import Kepts
from tests.patience import eventually
from tests.powerloss.journal import COMPILER, Recorder, build_library

FAILURES = {
    "a sync fails": {"sync_errno": errno.EIO},
    "a write fails": {"write_errno": errno.EIO},
    "the disk is full": {"write_errno": errno.ENOSPC},
    "nothing can be written, synced or read": {
        "write_errno": errno.EIO,
        "sync_errno": errno.EIO,
        "read_errno": errno.EIO,
    },
}

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


@contextmanager
def served(recorder: Recorder) -> Iterator[str]:
    """The address of a server whose files are under the recorder."""
    with real_server(recorder.root / "data", recorder.environment()) as url:
        try:
            yield url
        finally:
            recorder.control.set()


def health(url: str) -> int:
    return httpx.get(f"{url}/health", timeout=60).status_code


def count(client: Client) -> int:
    ((found,),) = client.query("SELECT count(*) FROM t").rows
    return int(found)


def fail_and_go_on(
    recorder: Recorder, url: str, client: Client, failure: Mapping[str, int]
) -> None:
    client.query("CREATE TABLE t (id integer PRIMARY KEY)")
    client.query("INSERT INTO t VALUES (1)")
    recorder.control.set(**failure)
    with pytest.raises(QserverError) as caught:
        client.query("INSERT INTO t VALUES (1001)")
    assert caught.value.code == "08007", "its outcome is unknown"
    for _ in range(3):
        assert count(client) == 1
    assert health(url) == 503
    with pytest.raises(QserverError):
        client.query("INSERT INTO t VALUES (2000)", timeout_ms=200)
    assert count(client) == 1, "what was refused is not there"
    recorder.control.set()
    client.query("DELETE FROM t WHERE id >= 1000")
    eventually(lambda: health(url) == 200, "it does not get well")  # a test is good for a second


@pytest.mark.long
def test_reads_go_on_while_the_disk_fails_and_writes_when_it_is_well(tmp_path: Path) -> None:
    root = tmp_path / "disk"
    root.mkdir()
    recorder = Recorder(build_library(tmp_path), root, tmp_path / "notes")
    with served(recorder) as url, Client(url, KEY) as admin:
        for number, failure in enumerate(FAILURES.values()):
            # Each has its own: one that has failed again and again pauses longer each time.
            name = admin.create_database(f"d{number}")["name"]
            with Client(url, KEY, database=name) as client:
                fail_and_go_on(recorder, url, client, failure)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in root.rglob("*")}
        assert modes.pop("data") == 0o700
        assert set(modes.values()) == {0o600}, "only the owner may read what the server keeps"
    recorder.control.close()


async def write_family(folder: Path) -> None:
    """Write a parent with history, and a branch whose newest commits are in its write-ahead log."""
    made = folder / "made"
    made.mkdir()
    parent = Kepts(made / "main.qserver")
    await parent.write()
    async with await open_log(parent.path) as log:
        kept = await parent.pin(log, "trial")
        async with await open_log(made / "trial.qserver") as own:
            await begin_branch(own, log, "main", kept, 5)
            shutil.copytree(made, folder / "template")


@pytest.mark.long
def test_a_read_that_fails_is_never_taken_for_damage(tmp_path: Path) -> None:
    """Each read of opening, recovery and loading fails once, with all files as they were before."""
    trio.run(write_family, tmp_path)
    root = tmp_path / "disk"
    root.mkdir()
    recorder = Recorder(build_library(tmp_path), root, tmp_path / "notes")
    command = [sys.executable, "-m", "tests.powerloss.read_errors"]
    done = subprocess.run(
        [*command, str(tmp_path / "template"), str(root)],
        env=recorder.environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    recorder.control.close()
    assert done.returncode == 0, done.stderr
    *each, all_fail, again = done.stdout.splitlines()
    counts = Counter(each)
    assert set(counts) == {"read", "LogFailed", "PageUnreadable"}
    assert min(counts.values()) > 5
    assert (all_fail, again) == ("all: LogFailed, LogFailed", "again: read")


@pytest.mark.long
def test_a_server_whose_disk_cannot_be_read_says_so_and_goes_on_when_it_can(tmp_path: Path) -> None:
    root = tmp_path / "disk"
    root.mkdir()
    recorder = Recorder(build_library(tmp_path), root, tmp_path / "notes")
    with served(recorder) as url, Client(url, KEY) as client:
        client.query("CREATE TABLE t (id integer PRIMARY KEY)")
        client.query("INSERT INTO t VALUES (1)")
        (database,) = [each["id"] for each in client.databases()]
    with served(recorder) as url, Client(url, KEY) as client:
        recorder.control.set(f"{database}.qserver", read_errno=errno.EIO)
        for _ in range(2):
            with pytest.raises(QserverError) as caught:
                client.query("SELECT count(*) FROM t", timeout_ms=2000)
            assert caught.value.code == "57P03", "not XX001, which would be damage"
        assert health(url) == 503
        recorder.control.set()
        assert count(client) == 1
        assert health(url) == 200
    recorder.control.close()
