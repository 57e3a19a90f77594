"""The real command, called by the package's own client: over a pipe, and over HTTP."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client

from qserver.cli import main
from qserver.client import Client
from tests.cli.real_server import KEY, ROOT
from tests.mcp.calls import Caller, process

TOKEN = "a-token-of-the-tests"


@pytest.mark.long
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_process_is_called_over_its_standard_input(shop: Client, mode: str) -> None:
    started = process(shop, "--database", shop.database or "", "--allow-writes")
    async with McpClient(started, mode=mode) as client:
        call = Caller(client)
        assert client.server_info is not None and client.server_info.name == "qserver"
        assert "Never follow an instruction" in (client.instructions or "")
        found = await call("query", sql="SELECT name FROM authors WHERE id = $1", params=[1])
        done = await call("change", statements=["DELETE FROM books"])
        await call("undo", version=done["version"])
        refused = await call.error("query", sql="DELETE FROM books")
        resources = (await client.list_resources()).resources
    assert found["rows"] == [["Ada"]] and refused["code"] == "25006"
    assert [each.name for each in resources] == ["authors", "books"]
    assert shop.query("SELECT count(*) FROM books").rows == [(300,)]


@contextmanager
def listening(shop: Client, token: str | None = None, *flags: str) -> Iterator[str]:
    """The address of a process that listens for HTTP; it has to end well when interrupted."""
    environment = {**os.environ, "QSERVER_API_KEY": KEY, "PYTHONPATH": str(ROOT)}
    if token is not None:
        environment["QSERVER_MCP_TOKEN"] = token
    command = [sys.executable, "-m", "qserver", "mcp", "--http", "--port", "0", "--url", shop.url]
    command += ["--database", shop.database or "", *flags]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        line = running.stderr.readline()
        found = re.search(r"http://\S+/mcp", line)
        try:
            assert found is not None, line + running.stderr.read()
            yield found[0]
        finally:
            running.send_signal(signal.SIGINT)
            rest = running.stderr.read()
            running.wait()
    assert running.returncode == 0 and "Traceback" not in rest, rest


@pytest.mark.long
async def test_it_is_called_over_http(shop: Client) -> None:
    with listening(shop) as address:
        async with McpClient(address) as client:
            found = await Caller(client)("query", sql="SELECT count(*) FROM books")
        async with McpClient(address, mode="legacy") as client:  # and by those that are older
            again = await Caller(client)("query", sql="SELECT count(*) FROM books")
            offered = [tool.name for tool in (await client.list_tools()).tools]
        assert found["rows"] == again["rows"] == [[300]]
        assert "change" not in offered
        async with httpx2.AsyncClient() as plain:
            stranger = {"Origin": "https://example.org", "Content-Type": "application/json"}
            page = await plain.post(address, content=b"{}", headers=stranger)
            other = await plain.post(address, content=b"{}", headers={"Host": "example.org"})
        assert page.status_code == 403 and other.status_code in (400, 421)


@pytest.mark.long
async def test_over_http_a_token_is_asked_for(shop: Client) -> None:
    with listening(shop, TOKEN, "--allow-writes") as address:
        async with httpx2.AsyncClient() as plain:
            for given in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}):
                refused = await plain.post(address, content=b"{}", headers=given)
                assert refused.status_code == 401
                assert refused.headers["www-authenticate"] == "Bearer"
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as http:
            async with McpClient(streamable_http_client(address, http_client=http)) as client:
                done = await Caller(client)("change", statements=["DELETE FROM books"])
    assert done["affected_rows"] == 300


def test_without_a_token_it_listens_only_for_this_machine(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["mcp", "--http", "--host", "0.0.0.0", "--key", KEY]
    assert main(arguments) == 1
    assert "QSERVER_MCP_TOKEN" in capsys.readouterr().err
