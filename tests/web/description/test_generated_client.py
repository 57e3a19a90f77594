"""A client that a generator makes of the description works against a real server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.web.contract.servers import Server, start

KEY = "svc_k_generated_0123456789"
NAME = "generated_client_of_qserver"
CONFIG = """\
content_type_overrides:
  text/plain: application/octet-stream
  text/csv: application/octet-stream
  application/x-ndjson: application/octet-stream
"""
"""The generator knows no bodies of text, so it is told to take them as bytes."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = start("own", tmp_path_factory.mktemp("generated"), {"QSERVER_API_KEY": KEY})
    yield server
    assert server.stop() == 0, server.output


@pytest.fixture(scope="module")
def generated(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The package that the generator makes; it warns of whatever it had to leave out."""
    folder = tmp_path_factory.mktemp("client")
    (folder / "config.yml").write_text(CONFIG)
    (folder / "openapi.json").write_bytes(server.http.get("/openapi.json").content)
    options = ["--path", "openapi.json", "--output-path", NAME, "--meta", "none"]
    options += ["--config", "config.yml"]
    beside = Path(sys.executable).parent  # ruff, which it formats with
    done = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", "generate", *options],
        cwd=folder,
        env={"PATH": f"{beside}:{os.environ['PATH']}", "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "WARNING" not in done.stdout + done.stderr, done.stdout + done.stderr
    sys.path.insert(0, str(folder))
    try:
        yield import_module(NAME)
    finally:
        sys.path.remove(str(folder))


@pytest.mark.long
def test_a_generated_client_reads_and_writes(server: Server, generated: ModuleType) -> None:
    def call(path: str, **given: Any) -> Any:
        return import_module(f"{NAME}.api.{path}").sync(client=client, **given)

    models = import_module(f"{NAME}.models")
    client = generated.AuthenticatedClient(base_url=server.url, token=KEY)
    made = call("control.post_v1_databases", body=models.DatabaseRequest(name="made"))
    assert made.name == "made"
    statements = [
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)",
        models.StatementRequest(sql="INSERT INTO t VALUES ($1, $2)", params=[1, "Ada"]),
    ]
    body = models.TransactionRequest(statements=statements, database="made")
    done = call("data.post_v1_transaction", body=body)
    assert isinstance(done, models.TransactionAnswer) and done.affected_rows == 1
    body = models.QueryRequest(sql="SELECT name FROM t WHERE id = $1", params=[1], database="made")
    found = call("data.post_v1_query", body=body)
    assert isinstance(found, models.QueryAnswer) and found.types == ["text"]
    assert [dict(row) for row in found.rows] == [{"name": "Ada"}]
    tables = call("data.get_tables", x_database="made")
    assert [table.name for table in tables.tables] == ["t"]
    failed = call("data.post_v1_query", body=models.QueryRequest(sql="SELECT 1 / 0"))
    assert isinstance(failed, models.ErrorAnswer) and failed.error.code == "22012"
    gone = call("control.get_v1_databases_database", database="nowhere")
    assert isinstance(gone, models.ErrorAnswer) and gone.error.code == "QS006"
    client.get_httpx_client().close()
    stranger = generated.AuthenticatedClient(base_url=server.url, token="svc_k_wrong")
    refused = import_module(f"{NAME}.api.data.get_tables").sync_detailed(client=stranger)
    assert refused.status_code == 401 and refused.parsed.error.code == "QS002"
    stranger.get_httpx_client().close()
