"""A continuous backup to a server that speaks S3, which fails and goes away now and then."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import httpx
import pytest

from qserver.archive.objects import ObjectMissing, TargetAway
from qserver.archive.s3_objects import S3Objects
from qserver.cli import main
from qserver.errors import InvalidRequest
from tests.cli.continuous.backups import (
    Backup,
    backing_up,
    client_at,
    contents_at,
    contents_of,
    moment_of,
)
from tests.cli.real_server import real_server
from tests.patience import eventually

KEYS = {
    "AWS_ACCESS_KEY_ID": "someone",
    "AWS_SECRET_ACCESS_KEY": "something",
    "AWS_REGION": "eu-central-1",
}
pytestmark = [
    pytest.mark.skipif(find_spec("moto") is None, reason="moto is not installed"),
    pytest.mark.skipif(find_spec("obstore") is None, reason="obstore is not installed"),
]


class Moto:
    """A server with a bucket, at the same port whenever it is started. It keeps nothing."""

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        self._settings = settings or {}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-p", str(self.port)]
        nothing = subprocess.DEVNULL
        self._process = subprocess.Popen(
            command, stdout=nothing, stderr=nothing, env={**os.environ, **self._settings}
        )
        eventually(self._makes_bucket, "moto does not begin")

    def _makes_bucket(self) -> bool:
        try:
            return httpx.put(f"{self.url}/bucket", content=b"", timeout=600).status_code == 200
        except httpx.TransportError:
            return False

    def stop(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="module")
def moto() -> Iterator[Moto]:
    moto = Moto()
    moto.start()
    yield moto
    moto.stop()


@pytest.fixture
def environment(moto: Moto, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    environment = {**KEYS, "AWS_ENDPOINT_URL": moto.url}
    for name, text in environment.items():
        monkeypatch.setenv(name, text)
    return environment


@pytest.mark.long
def test_objects_are_written_listed_read_and_removed(environment: dict[str, str]) -> None:
    objects = S3Objects("s3://bucket/some/prefix/", environment)
    assert objects.place == "s3://bucket/some/prefix" and objects.keys() == []
    names = [f"20300101T000000.000Z-0f/segments/{number:012}" for number in range(1100)]
    for name in names[:3]:
        objects.save(name, name.encode())
    assert [(key.name, key.size) for key in objects.keys()] == [(n, len(n)) for n in names[:3]]  # noqa: SIM118
    assert objects.load(names[1]) == names[1].encode()
    assert S3Objects("s3://bucket/some", environment).keys()[0].name == f"prefix/{names[0]}"
    with pytest.raises(ObjectMissing):
        objects.load("nothing")
    objects.remove([*names, "nothing"])
    assert objects.keys() == []


@pytest.mark.long
def test_a_bucket_that_is_not_there_and_a_place_that_is_none_are_told(
    environment: dict[str, str],
) -> None:
    nowhere = S3Objects("s3://nobody-has-this/x", environment)
    for call in (lambda: nowhere.save("a", b""), lambda: nowhere.load("a"), nowhere.keys):
        with pytest.raises(TargetAway, match=r"bucket does not exist \(NoSuchBucket\)") as caught:
            call()
        assert "AWS_REGION" in str(caught.value.hint)
    with pytest.raises(InvalidRequest, match="names no bucket"):
        S3Objects("s3:///x", environment)
    with pytest.raises(TargetAway, match=r"nothing answers at http://127\.0\.0\.1:9$"):
        S3Objects("s3://bucket/x", environment, "http://127.0.0.1:9").keys()


@pytest.mark.long
def test_keys_that_are_wrong_are_told_and_end_the_command(
    tmp_path: Path, environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Only a service that asks for keys can refuse them."""
    asking = Moto({"INITIAL_NO_AUTH_ACTION_COUNT": "1"})
    asking.start()
    try:
        flags = ("--data", str(tmp_path / "new"), "--endpoint-url", asking.url)
        assert main(["restore", "s3://bucket/x", *flags]) == 1
    finally:
        asking.stop()
    said = capsys.readouterr().err
    assert "does not exist in our records (InvalidAccessKeyId)" in said
    assert "AWS_ACCESS_KEY_ID" in said and "Traceback" not in said
    assert not (tmp_path / "new").exists()


class Failing(BaseHTTPRequestHandler):
    """Every answer is an internal error."""

    def do_PUT(self) -> None:
        self.send_error(500)

    def log_message(self, format: str, *args: object) -> None:
        """Nobody wants to know."""


@pytest.mark.long
def test_a_service_that_fails_is_tried_again_later(environment: dict[str, str]) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Failing) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        objects = S3Objects("s3://bucket/x", environment, f"http://127.0.0.1:{server.server_port}")
        with pytest.raises(TargetAway, match="500"):
            objects.save("a", b"text")
        server.shutdown()
        thread.join()


@pytest.mark.long
def test_what_is_written_while_the_bucket_is_away_is_restored_from_it(
    tmp_path: Path, environment: dict[str, str], moto: Moto
) -> None:
    data, target = tmp_path / "data", "s3://bucket/shop"
    backup = Backup(data, target, tmp_path / "said", environment)
    with real_server(data) as url, client_at(url) as client:
        client.query("CREATE TABLE t (id bigint PRIMARY KEY, n bigint)")
        with backing_up(backup, "--every", "0.1"):
            backup.wait_until(1.0)
            client.query("INSERT INTO t VALUES (1, 1)")
            first, at = moment_of(client)
            backup.wait_until(at)
            httpx.post(f"{moto.url}/moto-api/reset", timeout=600)  # the bucket is gone
            client.query("INSERT INTO t VALUES (2, 2)")
            eventually(lambda: backup.trouble, "it does not notice that the bucket is gone")
            client.query("INSERT INTO t VALUES (3, 3)")
            assert httpx.put(f"{moto.url}/bucket", content=b"", timeout=600).status_code == 200
            _, at = moment_of(client)
            backup.wait_until(at)
            assert "the target is there again" in backup.lines
        # What was in the bucket is gone with it, so the next process begins anew.
        with backing_up(backup, "--every", "0.1"):
            _, at = moment_of(client)
            backup.wait_until(at)
            client.query("INSERT INTO t VALUES (4, 4)")
            second, at = moment_of(client)
            client.query("DELETE FROM t")
            backup.wait_until(at)
        expected = contents_at(client, second, ["main"])
    flags = ("--data", str(tmp_path / "new"), "--at", second)
    assert main(["restore", target, *flags]) == 0
    assert contents_of(tmp_path / "new") == expected == {"main": [(n, n) for n in range(1, 5)]}
    assert main(["restore", target, "--data", str(tmp_path / "none"), "--at", first]) == 1
    assert main(["check", target]) == 0
