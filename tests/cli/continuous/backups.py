"""A continuous backup as a process, and what is in a folder that was restored from it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from signal import SIGTERM
from typing import Any

import trio

from qserver.archive.listed import databases_in
from qserver.archive.status import statuses_in
from qserver.client import Client
from qserver.durability.branch_files import open_with_parents
from qserver.durability.data_folder import DataFolder
from qserver.durability.recovery import recover
from tests.cli.real_server import KEY, ROOT
from tests.forked import Forked
from tests.patience import eventually

Contents = dict[str, list[tuple[Any, ...]]]
"""The rows of the table t, by the name of a database."""


class Backup:
    """The command, started and killed as often as somebody likes."""

    def __init__(
        self, data: Path, target: str, said: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.data = data
        self.target = target
        self.said = said
        self._environment = dict(environment or {})
        self._process: Forked | None = None

    def start(self, *flags: str) -> None:
        clean = {name: value for name, value in os.environ.items() if "QSERVER_" not in name}
        command = ["backup", "--continuous", self.target, "--data", str(self.data), *flags]
        output = os.open(self.said, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._process = Forked(command, ROOT, clean | self._environment, output)
        os.close(output)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        assert self._process is not None
        self._process.send_signal(SIGTERM)
        return self._process.wait()

    @property
    def until(self) -> float:
        return max((each.until for each in statuses_in(self.data)), default=0.0)

    @property
    def trouble(self) -> str | None:
        return next((each.trouble for each in statuses_in(self.data)), None)

    @property
    def lines(self) -> str:
        return self.said.read_text(encoding="utf-8") if self.said.exists() else ""

    def wait_until(self, moment: float) -> None:
        """Return when it says that it has everything up to a moment."""
        eventually(lambda: self.until >= moment, f"it does not come to {moment}: {self.lines}")


@contextmanager
def backing_up(backup: Backup, *flags: str) -> Iterator[Backup]:
    backup.start(*flags)
    try:
        yield backup
    finally:
        backup.kill()


class Server:
    """A real server that can be killed."""

    def __init__(self, data: Path, said: Path) -> None:
        clean = {name: value for name, value in os.environ.items() if "QSERVER_" not in name}
        command = ["serve", "--port", "0", "--data", str(data)]
        output = os.open(said, os.O_WRONLY | os.O_CREAT, 0o600)
        self._process = Forked(command, ROOT, {**clean, "QSERVER_API_KEY": KEY}, output)
        os.close(output)
        eventually(lambda: _address_in(said), "it does not begin")
        self.url = _address_in(said) or ""

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def _address_in(said: Path) -> str | None:
    found = re.search(r"http://[\d.:]+\d", said.read_text(encoding="utf-8"))
    return None if found is None else found.group()


def client_at(url: str) -> Client:
    return Client(url, KEY)


def moment_of(client: Client) -> tuple[str, float]:
    """The server's clock, as text and as a number."""
    ((number,),) = client.query("SELECT extract(epoch FROM clock_timestamp())::float8").rows
    ((text,),) = client.query(
        "SELECT to_char(to_timestamp($1) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')",
        [number],
    ).rows
    return text, float(number)


def contents_at(client: Client, moment: str, names: list[str]) -> Contents:
    """What the server itself says of a moment."""
    return {
        name: client.query("SELECT * FROM t ORDER BY 1", database=name, as_of=moment).rows
        for name in names
    }


def contents_of(folder: Path) -> Contents:
    """What is in the files of a folder that nobody serves."""
    return trio.run(_contents_of, folder)


async def _contents_of(folder: Path) -> Contents:
    files = DataFolder(folder)
    found: Contents = {}
    for name, listed in (await databases_in(files.file_of("control"))).items():
        if listed.state != "ready":
            continue
        async with open_with_parents(files.file_of(name)) as opened:
            snapshot = (await recover(opened.log, 2)).snapshot
            tables = [each for key, each in snapshot.catalog.tables.items() if key[-1] == "t"]
            rows = [row for table in tables for _, some in snapshot.pages(table.id) for row in some]
        found[listed.called] = sorted(tuple(row) for row in rows)
    return found
