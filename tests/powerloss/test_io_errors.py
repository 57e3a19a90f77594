"""A disk that refuses to write or to sync, under the real server: reads go on, and so does it."""

from __future__ import annotations

import errno
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from qserver.client import Client
from qserver.errors import QserverError
from tests.cli.real_server import KEY, real_server
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


def test_reads_go_on_while_the_disk_fails_and_writes_when_it_is_well(tmp_path: Path) -> None:
    root = tmp_path / "disk"
    root.mkdir()
    recorder = Recorder(build_library(tmp_path), root, tmp_path / "notes")
    with served(recorder) as url, Client(url, KEY) as client:
        client.query("CREATE TABLE t (id integer PRIMARY KEY)")
        for written, failure in enumerate(FAILURES.values(), start=1):
            client.query("INSERT INTO t VALUES ($1)", [written])
            recorder.control.set(**failure)
            with pytest.raises(QserverError) as caught:
                client.query("INSERT INTO t VALUES ($1)", [1000 + written])
            assert caught.value.code == "08007", "its outcome is unknown"
            for _ in range(3):
                assert count(client) == written
            assert health(url) == 503
            with pytest.raises(QserverError):
                client.query("INSERT INTO t VALUES ($1)", [2000], timeout_ms=200)
            assert count(client) == written, "what was refused is not there"
            recorder.control.set()
            client.query("DELETE FROM t WHERE id >= 1000")
            assert health(url) == 200
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in root.rglob("*")}
        assert modes.pop("data") == 0o700
        assert set(modes.values()) == {0o600}, "only the owner may read what the server keeps"
    recorder.control.close()
