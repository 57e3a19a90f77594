"""PostgreSQL's protocol inside a WebSocket, as `Pool` and `Client` of Neon's driver speak it."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Pong,
    RejectConnection,
    Request,
    TextMessage,
)

from tests.pgwire import wire
from tests.pgwire.wire import Message, messages_of, query, startup
from tests.processes.machine import KEY, port_of_no_client
from tests.web.contract.servers import Server, start

PASSWORD = wire.frame("p", wire.text(KEY))
SECONDS_MAX = 120.0


@contextmanager
def served(folder: Path, **settings: str) -> Iterator[Server]:
    made = start("own", folder, {"QSERVER_API_KEY": KEY, **settings})
    try:
        yield made
        assert made.stop() == 0, made.output
    finally:
        made.kill()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    port = str(port_of_no_client())
    with served(tmp_path_factory.mktemp("tunnel"), QSERVER_PG_PORT=port) as made:
        yield made


class Tunnel:
    """A client's end."""

    def __init__(self, port: int, path: str = "/v2") -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), SECONDS_MAX)
        self._frames = WSConnection(ConnectionType.CLIENT)
        self._events: list[Event] = []
        self.ended: int | None = None
        """The code with which the server has closed."""
        self._data = b""
        self.send(Request("localhost", path))
        self.opened = self.event()

    def send(self, *events: Event) -> None:
        self.send_raw(b"".join([self._frames.send(event) for event in events]))

    def send_raw(self, data: bytes) -> None:
        self._socket.sendall(data)

    def event(self) -> Event:
        while not self._events:
            data = self._socket.recv(65536)
            self._frames.receive_data(data or None)
            self._events += self._frames.events()
        return self._events.pop(0)

    def messages(self) -> list[Message]:
        """What comes until the server waits for the client, or ends."""
        while not self._data.endswith((b"Z\0\0\0\5I", b"Z\0\0\0\5T", b"Z\0\0\0\5E")):
            event = self.event()
            if isinstance(event, CloseConnection):
                self.ended = event.code
                break
            assert isinstance(event, BytesMessage), event
            self._data += event.data
        found, self._data = messages_of(self._data), b""
        return found

    def enter(self, database: str = "main", then: bytes = b"") -> list[Message]:
        hello = startup(user="me", database=database)
        self.send(BytesMessage(hello + PASSWORD + then))
        return self.messages()

    def ask(self, sql: str) -> list[tuple[bytes | None, ...]]:
        self.send(BytesMessage(query(sql)))
        return wire.rows(self.messages())

    def close(self) -> None:
        self._socket.close()


def sizes(data: bytes, size: int) -> Sequence[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def test_everything_may_be_sent_before_anything_is_answered(server: Server) -> None:
    tunnel = Tunnel(server.port)
    assert isinstance(tunnel.opened, AcceptConnection)
    entered = tunnel.enter(then=query("select 7 as n"))
    more = tunnel.messages() if not wire.rows(entered) else entered
    assert wire.rows(more) == [(b"7",)]
    assert tunnel.ask("select 'ä', null") == [("ä".encode(), None)]
    tunnel.close()


def test_frames_may_cut_messages_anywhere(server: Server) -> None:
    for size in (1, 3, 1000):
        tunnel = Tunnel(server.port)
        for part in sizes(startup(user="me", database="main") + PASSWORD, size):
            tunnel.send(BytesMessage(part))
        tunnel.messages()
        for part in sizes(query("select 1; select 2"), size):
            tunnel.send(BytesMessage(part, message_finished=part.endswith(b"\0")))
        assert wire.rows(tunnel.messages()) == [(b"1",), (b"2",)]
        tunnel.close()


def test_long_answers_and_questions_come_whole(server: Server) -> None:
    tunnel = Tunnel(server.port)
    tunnel.enter()
    found = tunnel.ask("select n, repeat('x', 1000) from generate_series(1, 3000) as n")
    assert len(found) == 3000 and found[-1] == (b"3000", b"x" * 1000)
    text = "y" * 2_000_000
    assert tunnel.ask(f"select length('{text}')") == [(b"2000000",)]
    tunnel.close()


def test_a_ping_is_answered_and_a_close_ends_the_session(server: Server) -> None:
    tunnel = Tunnel(server.port)
    tunnel.enter()
    tunnel.send(Ping(b"there?"))
    pong = tunnel.event()
    assert isinstance(pong, Pong) and bytes(pong.payload) == b"there?"
    tunnel.send(CloseConnection(1000))
    assert isinstance(tunnel.event(), CloseConnection)
    tunnel.close()


def test_what_is_no_binary_frame_ends_it_with_its_code(server: Server) -> None:
    tunnel = Tunnel(server.port)
    tunnel.enter()
    tunnel.send(TextMessage("select 1"))
    tunnel.messages()
    assert tunnel.ended == 1003
    tunnel.close()
    tunnel = Tunnel(server.port)
    tunnel.enter()
    tunnel.send_raw(b"\x82\x03abc")  # a client has to mask its frames
    tunnel.messages()
    assert tunnel.ended == 1002
    tunnel.close()


def test_a_client_that_leaves_in_the_middle_is_forgotten(server: Server) -> None:
    for data in (b"", b"\x82", b"\x82\xfe\xff", b"\xff" * 10):
        tunnel = Tunnel(server.port)
        tunnel.enter(then=query("begin"))
        tunnel.send_raw(data)
        tunnel.close()
    tunnel = Tunnel(server.port)
    tunnel.enter()
    assert tunnel.ask("select 1") == [(b"1",)]
    tunnel.close()


def test_a_wrong_key_is_refused_as_over_the_wire(server: Server) -> None:
    tunnel = Tunnel(server.port)
    tunnel.send(BytesMessage(startup(user="me", database="main") + wire.frame("p", b"no\0")))
    assert wire.code(tunnel.messages()) == "28P01"
    tunnel.close()


UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "keep-alive, Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.mark.parametrize(
    "name, value, says",
    [
        ("Upgrade", "h2c", "is for WebSockets"),
        ("Connection", "keep-alive", "Connection: Upgrade"),
        ("Sec-WebSocket-Version", "8", "version 13"),
        ("Sec-WebSocket-Key", "c2hvcnQ=", "16 bytes"),
        ("Sec-WebSocket-Key", "no base64!", "16 bytes"),
    ],
)
def test_a_wrong_handshake_is_told_what_is_wrong(
    server: Server, name: str, value: str, says: str
) -> None:
    answer = httpx.get(f"{server.url}/v2", headers={**UPGRADE, name: value})
    assert answer.status_code == 400
    assert says in answer.json()["error"]["message"]


def test_other_paths_and_methods_are_answered_as_ever(server: Server) -> None:
    for path in ("/health", "/v1/query?sql=select%201"):
        answer = httpx.get(
            f"{server.url}{path}", headers={**UPGRADE, "Authorization": f"Bearer {KEY}"}
        )
        assert answer.status_code == 200, answer.text
    assert httpx.get(f"{server.url}/v2").status_code == 404
    assert httpx.post(f"{server.url}/v2", headers=UPGRADE).status_code == 404


def test_without_the_port_of_postgresql_it_is_not_there(tmp_path: Path) -> None:
    with served(tmp_path) as made:
        tunnel = Tunnel(made.port)
        assert isinstance(tunnel.opened, RejectConnection) and tunnel.opened.status_code == 404
        tunnel.close()


def test_a_server_that_stops_ends_sessions(tmp_path: Path) -> None:
    with served(tmp_path, QSERVER_PG_PORT=str(port_of_no_client())) as made:
        tunnel = Tunnel(made.port)
        tunnel.enter()
        made.process.send_signal(signal.SIGTERM)
        assert wire.code(tunnel.messages()) == "57P01"
        tunnel.close()


@pytest.mark.long
def test_with_several_processes_the_owner_serves_it(tmp_path: Path) -> None:
    settings = {"QSERVER_PG_PORT": str(port_of_no_client()), "QSERVER_PROCESSES": "2"}
    with served(tmp_path, **settings) as made:
        for name in ("a", "b", "c", "d"):
            answer = made.http.post(
                "/v1/databases", json={"name": name}, headers={"Authorization": f"Bearer {KEY}"}
            )
            assert answer.status_code == 201, answer.text
            for at in range(3):
                tunnel = Tunnel(made.port)
                tunnel.enter(name)
                tunnel.ask("create table if not exists t (name text)")
                tunnel.ask(f"insert into t values ('{name}')")
                assert tunnel.ask("select count(*), max(name) from t") == [
                    (str(at + 1).encode(), name.encode())
                ]
                tunnel.close()


_SCRIPT = """
import { Pool, neonConfig } from '@neondatabase/serverless';
import ws from 'ws';
const [, , proxy, url] = process.argv;
neonConfig.webSocketConstructor = ws;
neonConfig.wsProxy = () => proxy;
neonConfig.useSecureWebSocket = false;
const pool = new Pool({ connectionString: url });
const found = [];
await pool.query('CREATE TABLE posts (id serial PRIMARY KEY, tags text[], at timestamptz)');
const client = await pool.connect();
await client.query('BEGIN');
const insert = 'INSERT INTO posts (tags, at) VALUES ($1, $2) RETURNING id, tags, at';
found.push((await client.query(insert, [['a', null], new Date(0)])).rows);
await client.query('ROLLBACK');
client.release();
found.push((await pool.query('SELECT count(*)::int AS n FROM posts')).rows);
try { await pool.query('SELECT * FROM nope'); } catch (error) { found.push(error.code); }
const all = [1, 2, 3, 4].map(n => pool.query('SELECT $1::int * 2 AS n', [n]));
found.push((await Promise.all(all)).map(each => each.rows[0].n));
await pool.end();
console.log(JSON.stringify(found));
"""


@pytest.mark.long
def test_the_pool_of_the_driver_itself(server: Server, tmp_path: Path) -> None:
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    install = ["npm", "install", "--silent", "@neondatabase/serverless", "ws"]
    if subprocess.run(install, cwd=tmp_path, capture_output=True, timeout=300).returncode:
        pytest.skip("npm cannot install @neondatabase/serverless and ws")
    (tmp_path / "try.mjs").write_text(_SCRIPT)
    where = f"postgresql://me:{quote(KEY)}@localhost/main"
    run = ["node", "try.mjs", f"127.0.0.1:{server.port}/v2", where]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        [{"id": 1, "tags": ["a", None], "at": "1970-01-01T00:00:00.000Z"}],
        [{"n": 0}],
        "42P01",
        [2, 4, 6, 8],
    ]
