"""`qserver mcp`: starts the tools for language models, or says what they need."""

from __future__ import annotations

import argparse
import os
import signal
from importlib.util import find_spec

import trio

from qserver.cli.connection import key_of, url_of
from qserver.client import TrioClient
from qserver.errors import InvalidRequest


def run(options: argparse.Namespace) -> int:
    if find_spec("mcp") is None:
        raise InvalidRequest(
            "the package mcp is not installed", hint="Install it: pip install 'qserver[mcp]'"
        )
    from qserver.mcp.transports import Place, over_http, over_stdio

    url, key = url_of(options, os.environ), key_of(options, os.environ)
    client = TrioClient(url, key, options.database)
    if options.http:
        place = Place(options.host, options.port, os.environ.get("QSERVER_MCP_TOKEN") or None)
        trio.run(over_http, client, options.allow_writes, place)
    else:
        # A thread waits for the next line of standard input, and Trio would wait for that thread.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        trio.run(over_stdio, client, options.allow_writes)
    return 0
