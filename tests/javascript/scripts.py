"""Runs scripts of Node with the JavaScript client, beside a real server."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Timer
from typing import Final

import pytest

from tests.dbapi.served import KEY, client_of
from tests.patience import PATIENCE_SECONDS
from tests.web.contract.servers import Server

ROOT: Final = Path(__file__).parents[2]
CLIENT: Final = ROOT / "qserver" / "javascript"
SCRIPTS: Final = Path(__file__).parent / "client"
_numbers: Final = count(1)


def needs_node() -> None:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")


def database_of(server: Server) -> str:
    """The name of a new database."""
    name = f"d{next(_numbers)}"
    with client_of(server) as client:
        client.create_database(name)
    return name


def variables_of(server: Server, database: str | None = None) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "CLIENT": str(CLIENT / "client.js"),
        "URL": server.url,
        "KEY": KEY,
        "DATABASE": database or database_of(server),
    }


@contextmanager
def running(
    command: list[str], folder: Path, variables: Mapping[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """A process that reads and writes lines. One that hangs is ended."""
    with subprocess.Popen(
        command,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=variables,
    ) as process:
        hang = Timer(PATIENCE_SECONDS, process.kill)
        hang.start()
        try:
            yield process
        finally:
            hang.cancel()
            process.kill()


def run_script(
    script: Path,
    variables: Mapping[str, str],
    answers: Mapping[str, Callable[[], str]] | None = None,
    command: Sequence[str] = ("node",),
) -> list[str]:
    """The lines of a script that ends well. It may ask for something by a line of its own."""
    needs_node()
    said = []
    with running([*command, str(script)], script.parent, variables) as process:
        assert process.stdin is not None and process.stdout is not None
        for line in process.stdout:
            said.append(line.rstrip("\n"))
            if answers is not None and said[-1] in answers:
                process.stdin.write(f"{answers[said[-1]]()}\n")
                process.stdin.flush()
        assert process.wait() == 0, "\n".join(said)
    return said


def linked(folder: Path) -> Path:
    """A folder in which `qserver-client` is a package that can be imported."""
    packages = folder / "node_modules"
    packages.mkdir(exist_ok=True)
    (packages / "qserver-client").symlink_to(CLIENT)
    return folder
