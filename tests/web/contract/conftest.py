"""One server of each kind for all tests of the contract; each test runs against all.

By day only some run against several processes and against hypercorn: little differs there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.sampling import SEED
from tests.web.contract.servers import KINDS, Client, Kind, Server, launch

FOLDER: Final = Path(__file__).parent
SERVERS: Final = pytest.StashKey[Mapping[Kind, Server]]()
ADMIN_KEY = "svc_k_contract_0123456789"
DATA, ALIAS, CONTROL = "data.example.test", "alias.example.test", "control.example.test:8443"
SETTINGS = {
    "QSERVER_API_KEY": ADMIN_KEY,
    "QSERVER_OPEN_SIGNUP": "1",
    "QSERVER_SIGNUPS_PER_ADDRESS": "1000",
    "QSERVER_SIGNUPS_PER_HOUR": "1000",
    "QSERVER_DATA_URL": f"https://{DATA}",
    "QSERVER_ALIAS_URL": f"https://{ALIAS}",
    "QSERVER_CONTROL_URL": f"http://{CONTROL}",
}
BUSY = "trio.BusyResourceError: another task is currently sending data on this SocketStream"
"""How a trace of hypercorn ends that closes a connection, without a lock, while it sends to it."""

OTHER_SERVER_SHARE = 0.06
"""Of the tests that take a server, those that are run by day against each other kind, too."""

_numbers = count(1)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        given = item.callspec.params.values() if hasattr(item, "callspec") else ()
        drawn = Random(f"{SEED} {item.nodeid}").random() < OTHER_SERVER_SHARE
        if not drawn and ("hypercorn" in given or "processes" in given):
            item.add_marker(pytest.mark.nightly)


@contextmanager
def serving(folders: pytest.TempPathFactory) -> Iterator[Mapping[Kind, Server]]:
    """All, started at the same time, because a start takes seconds.

    They must end well, and must have written no secret and no trace of a bug.
    """
    started = {
        kind: launch(kind, folders.mktemp(kind), SETTINGS, by_command=True) for kind in KINDS
    }
    try:
        for server in started.values():
            server.wait_until_ready()
            server.secrets.add(ADMIN_KEY)
        yield started
        for server in started.values():
            assert server.stop() == 0, server.output
            assert_nothing_secret(server)
            excused = server.output.count(BUSY) if server.kind == "hypercorn" else 0
            assert server.output.count("Traceback") == excused, server.output
    finally:
        for server in started.values():
            server.kill()


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """One of those that end with the last test of this folder: also servers at rest take time."""
    folder: pytest.Collector = next(
        node for node in request.node.iter_parents() if node.path == FOLDER
    )
    if SERVERS not in folder.stash:
        life = ExitStack()
        folder.stash[SERVERS] = life.enter_context(serving(tmp_path_factory))
        folder.addfinalizer(life.close)
        folder.addfinalizer(partial(folder.stash.__delitem__, SERVERS))
    kind: Kind = request.param
    return folder.stash[SERVERS][kind]


@pytest.fixture
def admin(server: Server) -> Client:
    """The client with the first key. Its host is an address: all routes are served there."""
    return Client(server, ADMIN_KEY)


@pytest.fixture
def anonymous(server: Server) -> Client:
    return Client(server, None)


@pytest.fixture
def fresh(admin: Client) -> Iterator[Client]:
    """The same key with an empty database of its own."""
    name = f"fresh-{next(_numbers)}"
    assert admin.post("/v1/databases", {"name": name}).status_code == 201
    yield Client(admin.server, admin.token, database=name)
    assert admin.delete(f"/v1/databases/{name}").status_code == 204


@pytest.fixture
def organization(anonymous: Client) -> Client:
    """The first key of another organization, new and of the free tier."""
    name = f"organization-{next(_numbers)}"
    answer = anonymous.post("/v1/signup", {"organization": name})
    assert answer.status_code == 201, answer.text
    secret = answer.json()["key"]
    anonymous.server.secrets.add(secret)
    return anonymous.with_token(secret)


def assert_nothing_secret(server: Server) -> None:
    """No secret is in what the process wrote to its terminal or to any of its files."""
    files = [path for path in server.folder.rglob("*") if path.is_file()]
    assert len(files) >= 3, files
    for path in files:
        content = path.read_bytes()
        for secret in server.secrets:
            assert secret.encode() not in content, f"{secret} is in {path}"
