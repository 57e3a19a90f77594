"""A whole cluster of real processes: started, asked, changed, stopped and started again."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from qserver.cli import main
from qserver.cli.log_config import find_server
from qserver.client import Client
from tests.forked import Forked
from tests.patience import eventually

pytestmark = pytest.mark.skipif(
    find_server() is None, reason="nats-server is not installed: pip install qserver[cluster]"
)
ENDING = "Ctrl-C stops all"
URL = re.compile(r"^  (q\d)   (http://\S+)$", re.MULTILINE)


class Up:
    """`qserver cluster up` in a folder, again and again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._output = folder / "output"
        self._process: Forked | None = None

    def start(self) -> None:
        clean = {each: text for each, text in os.environ.items() if not each.startswith("QSERVER_")}
        clean |= {"QSERVER_LEASE_S": "2", "QSERVER_DRAIN_TIMEOUT_S": "60"}
        arguments = ["cluster", "up", "--nodes", "2", "--port", "0", "--data", "trial"]
        if not (self.folder / "trial").exists():
            arguments += ["--log-nodes", "1"]
        with self._output.open("wb") as output:
            self._process = Forked(arguments, self.folder, clean, output.fileno())
        eventually(lambda: ENDING in self.said or not self.runs, "it does not begin")
        assert self.runs, self.said + self.logs

    @property
    def said(self) -> str:
        return self._output.read_text()

    @property
    def logs(self) -> str:
        return "".join(each.read_text() for each in sorted(self.folder.glob("trial/q*.log")))

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def urls(self) -> dict[str, str]:
        return dict(URL.findall(self.said))

    @property
    def key(self) -> str:
        return (self.folder / "trial" / "api.key").read_text().strip()

    @contextmanager
    def clients(self) -> Iterator[dict[str, Client]]:
        with ExitStack() as stack:
            yield {
                name: stack.enter_context(Client(url, self.key)) for name, url in self.urls.items()
            }

    def kill_node(self, name: str) -> None:
        """Kill the process of a node, which is known by the folder in its environment."""
        (pid,) = (pid for pid in self._children() if f"trial/{name}\0" in _environment(pid))
        os.kill(pid, signal.SIGKILL)

    def _children(self) -> list[int]:
        assert self._process is not None
        text = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text()
        return [int(pid) for pid in text.split()]

    def stop(self) -> int:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()


def _environment(pid: int) -> str:
    return Path(f"/proc/{pid}/environ").read_text(errors="replace")


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    made = Up(tmp_path)
    yield made
    made.kill()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: str, fails: bool = False) -> str:
        assert main(["cluster", *arguments, "--data", "trial"]) == int(fails)
        found = capsys.readouterr()
        return found.err if fails else found.out

    return run


def status(run: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("status", "--json"))
    found["nodes"] = {each["name"]: each for each in found["nodes"]}
    return found


@pytest.mark.long
def test_a_cluster_is_started_changed_stopped_and_started_again(up: Up, run: Any) -> None:
    up.start()
    assert "Your API key, kept in trial/api.key: svc_k_" in up.said
    with up.clients() as clients:
        was, other = _change(up, run, clients)

    ports = [int(url.rpartition(":")[2]) for url in up.urls.values()]
    assert up.stop() == 0
    assert up.said.index("Stopping q1, q2 …") < up.said.index("Stopping n1 …")
    for port in [each + far for each in ports for far in (0, 100, 200)]:
        with socket.socket() as asking:
            assert asking.connect_ex(("127.0.0.1", port)) != 0, "it has ended"

    up.start()
    assert "The API key is kept in trial/api.key." in up.said and "svc_k_" not in up.said
    with up.clients() as clients:
        for client in clients.values():
            assert client.query("SELECT n FROM t").rows == [(9,)]
        assert status(run)["nodes"][other]["drained"], "until it is undone"
        up.kill_node(other)
        eventually(lambda: f"{other} has ended (killed by signal 9)" in up.said, up.said)
        clients[was].query("INSERT INTO t VALUES (0)")
    eventually(lambda: status(run)["nodes"][other]["state"] == "ended", "others see that")
    assert up.stop() == 0
    assert "Traceback" not in up.logs


def _change(up: Up, run: Any, clients: dict[str, Client]) -> tuple[str, str]:
    """Move a database and drain its node; return who has it then, and who is drained."""
    clients["q1"].query("CREATE TABLE t (n int PRIMARY KEY)")
    clients["q2"].query("INSERT INTO t VALUES (7)")
    clients["q1"].create_database("twig", "main")
    listed = {each["name"]: each["id"] for each in clients["q2"].databases()}
    found = status(run)
    assert {each["state"] for each in found["nodes"].values()} == {"alive"}
    assert sum(each["databases"] for each in found["nodes"].values()) == 1
    assert {name: each["url"] for name, each in found["nodes"].items()} == up.urls

    (was,) = (name for name, each in found["nodes"].items() if each["databases"])
    other = "q2" if was == "q1" else "q1"
    assert _answerer(up, other) == up.urls[was]
    said = run("move", listed["twig"], other, fails=True)
    assert "is a branch" in said and f"Move {listed['main']}." in said
    assert f"has moved to {other} (version" in run("move", listed["main"], other)
    assert _answerer(up, was) == up.urls[other]
    assert _answerer(up, other) is None, "itself"
    assert status(run)["moved"] == {listed["main"]: other}

    assert f"{other} owns no database" in run("drain", other)
    for client in clients.values():
        client.query("UPDATE t SET n = n + 1")
    after = status(run)["nodes"]
    assert after[other]["drained"] and after[other]["databases"] == 0
    assert after[was]["databases"] == 1 and after[was]["leads"]
    return was, other


def _answerer(up: Up, name: str) -> str | None:
    """Return which other node has answered a request for a node."""
    asking = HTTPConnection(up.urls[name].removeprefix("http://"))
    try:
        headers = {"Authorization": f"Bearer {up.key}"}
        asking.request("GET", "/v1/query?sql=SELECT%20n%20FROM%20t", headers=headers)
        answer = asking.getresponse()
        assert json.loads(answer.read())["rows"] == [{"n": 7}], "also while it moves"
        return answer.getheader("x-qserver-owner")
    finally:
        asking.close()
