"""The package's own client, beside a server in this process or in one of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client as McpClient
from mcp import StdioServerParameters

from qserver.client import Client, TrioClient
from qserver.mcp.access import Access
from qserver.mcp.server import server_of
from tests.cli.real_server import KEY, ROOT


class Caller:
    """Calls tools and looks at what they answer."""

    def __init__(self, client: McpClient) -> None:
        self.client = client

    async def __call__(self, name: str, **given: Any) -> dict[str, Any]:
        answer = await self.client.call_tool(name, given)
        assert not answer.is_error, answer.content
        return dict(answer.structured_content)

    async def error(self, name: str, **given: Any) -> dict[str, Any]:
        answer = await self.client.call_tool(name, given)
        assert answer.is_error
        return dict(answer.structured_content["error"])


@asynccontextmanager
async def tools(
    shop: Client, *, may_change: bool = False, key: str = KEY, database: str | None = "its own"
) -> AsyncIterator[Caller]:
    """Tools over the database of a client, in this process."""
    named = shop.database if database == "its own" else database
    async with TrioClient(shop.url, key, named) as client:
        async with McpClient(server_of(Access(client, may_change))) as protocol:
            yield Caller(protocol)


def process(shop: Client, *flags: str) -> StdioServerParameters:
    """The command, as a client of MCP starts it."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "qserver", "mcp", "--url", shop.url, *flags],
        env={
            "QSERVER_API_KEY": KEY,
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "error",
        },
        cwd=str(ROOT),
    )
