"""Sections 2 and 10: the first start, what a restart keeps, and how a process ends.

One life of a data folder, told in order; each chapter needs what those before it have made:

    first start ─► a key, a pasted line ─► a second process is refused ─► SIGTERM while requests
    are under way ─► restart ─► everything is there ─► no secret in any file
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from qserver.web.description.welcome import ADDRESS_UNKNOWN
from tests.web.contract.connections import HalfARequest, OpenStream
from tests.web.contract.servers import (
    KINDS,
    Client,
    Kind,
    Server,
    error_of,
    launch,
    start,
)

ROWS = 20_000


@pytest.fixture(params=KINDS)
def first(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """A process with nothing but PORT and a data folder, as a platform would start it."""
    server = start(request.param, tmp_path)
    yield server
    server.kill()


@pytest.mark.long
def test_a_data_folder_outlives_its_processes(first: Server) -> None:
    key, curl = what_was_printed(first)
    assert_pasted_line_works(curl)
    admin = Client(first, key)
    other_key = admin.new_key(scopes=["data:read"])["key"]
    session = admin.new_session()["token"]
    assert admin.post("/v1/databases", {"name": "second"}).status_code == 201
    for database in ("main", "second"):
        admin.query("create table t (a int primary key, x text)", database=database)
        sql = f"insert into t select n, repeat('x', 200) from generate_series(1, {ROWS}) as n"
        admin.query(sql, database=database)
    error_of(Client(first, None).post("/v1/signup", {"organization": "acme"}), 403, "QS005")
    assert_second_process_is_refused(first)
    assert_requests_under_way_are_answered(admin)
    output_before = first.output

    again = start(first.kind, first.folder, {"QSERVER_DEFAULT_TIER": "free"})
    try:
        for token in (key, other_key, session):
            client = Client(again, token)
            assert client.value("select count(*) from t") == ROWS
            answer = client.query_response("select count(*) from t", database="second")
            assert answer.json()["success"] is True
            assert answer.headers["ratelimit-policy"] == '"free";q=200;w=60'
        assert Client(again, key).get("/v1/organization").json()["tier"] == "free"
        assert again.stop() == 0, again.output
    finally:
        again.kill()
    output_after = again.output.removeprefix(output_before)
    assert "Traceback" not in again.output
    for secret in (key, other_key, session):
        assert secret not in output_after, "a secret is shown once"
        for path in again.data.rglob("*"):
            assert secret.encode() not in path.read_bytes(), f"{secret} is in {path}"


def test_processes_that_cannot_begin_end(tmp_path: Path) -> None:
    """The first fails again and again, while the others wait for it."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "control.qserver").write_bytes(b"this is no database" * 1000)
    server = launch("processes", tmp_path)
    assert server.wait() == 1
    assert "giving up" in server.output
    assert "Traceback" not in server.output, server.output


def what_was_printed(server: Server) -> tuple[str, str]:
    """The key and the line to paste; both stand once on the terminal."""
    found = re.search(r"Your API key, shown only now: (svc_k_\S+)\n\nTry it:\n", server.output)
    assert found, server.output
    lines = server.output[found.end() :].splitlines()[:2]
    assert ("3 processes" in server.output) == (server.kind == "processes")
    named = f"at {server.url}, data in" in server.output
    assert named == (server.kind != "hypercorn"), "who is not told where it listens does not guess"
    curl = "\n".join(line.strip() for line in lines)
    return found[1], curl.replace(ADDRESS_UNKNOWN, server.url)


def assert_pasted_line_works(line: str) -> None:
    done = subprocess.run(["bash", "-c", line], capture_output=True, timeout=240, check=True)
    answer = json.loads(done.stdout)
    assert answer["success"] is True and answer["rows"] == [{"one": 1}]


def assert_second_process_is_refused(server: Server) -> None:
    second = launch(server.kind, server.folder)
    before = len(server.output)
    code = second.wait()
    said = server.output[before:]
    assert f"data folder {server.data} is in use by process" in said, said
    assert "Stop that process, or name another folder." in said
    if server.kind != "hypercorn":
        assert code == 1 and "Traceback" not in said, said
    else:
        assert "Traceback" in said, said  # it ends, though hypercorn calls that success
        with (server.folder / "output").open("r+b") as output:  # hypercorn's own way of saying it
            output.truncate(before)


def assert_requests_under_way_are_answered(admin: Client) -> None:
    """A stream of which most is to come, and a request of which the body is to come."""
    server = admin.server
    with (
        OpenStream(admin, "/*+ STREAM */ select a, x from t") as stream,
        HalfARequest(admin, "POST", "/v1/query", b'{"sql": "select count(*) as n from t"}') as half,
    ):
        events = stream.events()
        next(events)
        assert admin.value("select 1") == 1, "by now the server has seen what came before"
        server.process.send_signal(signal.SIGTERM)
        answer = half.complete()  # at once: a server that stops waits for bodies for a second
        assert answer.startswith(b"HTTP/1.1 200") and b'"rows":[{"n":20000}]' in answer
        *_, last = events
        assert (last.kind, last.data["row_count"]) == ("done", ROWS)
    assert server.wait() == 0, server.output


def test_a_setting_that_is_unknown_or_wrong_keeps_the_server_from_starting(tmp_path: Path) -> None:
    own: Kind = "own"
    folders = [tmp_path / name for name in ("unknown", "wrong")]
    settings = [{"QSERVER_DATADIR": "x"}, {"QSERVER_DEFAULT_TIER": "golden"}]
    for folder in folders:
        folder.mkdir()
    started = [launch(own, *each) for each in zip(folders, settings, strict=True)]
    assert [server.wait() for server in started] == [1, 1]
    unknown, wrong = (server.output for server in started)
    assert "unknown setting QSERVER_DATADIR" in unknown and "QSERVER_DATA_DIR" in unknown
    assert "QSERVER_DEFAULT_TIER 'golden' is wrong" in wrong and "unlimited" in wrong
    assert "Traceback" not in unknown + wrong
    assert not any(server.data.exists() for server in started), "nothing was begun"


def test_signups_from_one_address_are_limited(tmp_path: Path) -> None:
    settings = {"QSERVER_OPEN_SIGNUP": "1", "QSERVER_SIGNUPS_PER_ADDRESS": "2"}
    server = start("own", tmp_path, settings)
    try:
        client = Client(server, None)
        for name in ("one", "two"):
            assert client.post("/v1/signup", {"organization": name}).status_code == 201
        answer = client.post("/v1/signup", {"organization": "three"})
        error_of(answer, 429)
        assert 0 < int(answer.headers["retry-after"]) <= 3600
        assert server.stop() == 0
    finally:
        server.kill()
