"""The nodes of a log that a command names."""

from __future__ import annotations

import argparse
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import msgspec
import trio

from qserver.config import load
from qserver.errors import first_of
from qserver.replication.nats.nodes import nodes_of as nats_nodes
from qserver.replication.port import LogNodes

Result = TypeVar("Result")


@asynccontextmanager
async def nodes_of(url: str, token: str, copies: int) -> AsyncIterator[LogNodes]:
    """Be connected with the nodes of a log for the length of a block."""
    nodes = nats_nodes(url, token, copies)
    async with trio.open_nursery() as nursery:
        await nursery.start(nodes.run)
        yield nodes
        nursery.cancel_scope.cancel()


class LogAddress(msgspec.Struct, frozen=True):
    url: str
    token: str
    copies: int

    def run(self, work: Callable[[LogNodes], Awaitable[Result]]) -> Result:
        """Return what the work with the nodes returns."""

        async def main() -> Result:
            async with nodes_of(self.url, self.token, self.copies) as nodes:
                return await work(nodes)

        try:
            return trio.run(main)
        except ExceptionGroup as group:
            raise first_of(group) from group


def log_address(options: argparse.Namespace) -> LogAddress:
    settings = load(os.environ, {"log": options.log})
    assert settings.log is not None
    return LogAddress(settings.log, settings.log_token or "", settings.log_copies)
