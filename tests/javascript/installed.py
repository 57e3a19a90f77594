"""A folder of JavaScript with its packages, at the versions of its package.json."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.dbapi.served import KEY, client_of, served
from tests.patience import PATIENCE_SECONDS
from tests.web.contract.servers import free_port

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Project:
    folder: Path
    variables: Mapping[str, str]

    def run(self, *command: str) -> str:
        """What a command prints; its errors are the test's."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, **self.variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def asked(self) -> Any:
        """What the project's own script finds."""
        return json.loads(self.run("node", "asks.mjs"))


def packages_of(name: str, folder: Path) -> Path:
    """A copy of the folder of that name in `folder`, with its packages; without npm it skips."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    own = folder / name
    shutil.copytree(HERE / name, own)
    install = ["npm", "install", "--silent", "--no-audit", "--no-fund"]
    if subprocess.run(install, cwd=own, capture_output=True, timeout=PATIENCE_SECONDS).returncode:
        pytest.skip(f"npm cannot install the packages of {name}")
    return own


@contextmanager
def installed(name: str, folder: Path) -> Iterator[Project]:
    """A folder with its packages, beside a server."""
    own = packages_of(name, folder)
    port = free_port()
    with served(folder, QSERVER_PG_PORT=str(port)) as running:
        with client_of(running) as client:
            client.create_database(name)
        url = f"postgresql://me:{KEY}@{{}}:{port}/{name}?sslmode=disable"
        variables = {
            "DATABASE_URL": url.format("localhost"),
            "DIRECT_URL": url.format("127.0.0.1"),
            "FETCH_ENDPOINT": f"{running.url}/sql",
            "SOCKET": f"127.0.0.1:{running.port}/v2",
            "DATABASE_PORT": str(port),
        }
        yield Project(own, variables)
