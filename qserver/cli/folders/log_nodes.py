"""The nodes of a log that a command names."""

from __future__ import annotations

import argparse
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from math import inf
from typing import Final, TypeVar

import msgspec
import trio

from qserver.config import load
from qserver.errors import InvalidRequest, LogFailed, first_of
from qserver.replication.nats.nodes import nodes_of as nats_nodes
from qserver.replication.port import LogNodes

T = TypeVar("T")
_OF_NODES: Final = {"QSERVER_LINK", "QSERVER_CLUSTER_KEY", "QSERVER_PROCESSES"}


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

    def run(self, work: Callable[[LogNodes], Awaitable[T]], seconds_to_connect: float = inf) -> T:
        """Return what the work with the nodes returns."""

        async def main() -> T:
            with trio.fail_after(seconds_to_connect) as connecting:
                async with nodes_of(self.url, self.token, self.copies) as nodes:
                    connecting.deadline = inf
                    return await work(nodes)

        try:
            return trio.run(main)
        except trio.TooSlowError:
            raise LogFailed(
                f"log nodes at {self.url} do not answer",
                hint="Are they running, and is the URL right?",
            ) from None
        except ExceptionGroup as group:
            raise first_of(group) from group


def log_address(options: argparse.Namespace) -> LogAddress:
    """The log of the flag, else of the environment."""
    # Whoever runs nodes has their settings in the environment, too; this is none.
    environ = {each: text for each, text in os.environ.items() if each not in _OF_NODES}
    settings = load(environ, {} if options.log is None else {"log": options.log})
    if settings.log is None:
        raise InvalidRequest("no log is named", hint="Name its nodes with --log, or QSERVER_LOG.")
    return LogAddress(settings.log, settings.log_token or "", settings.log_copies)
