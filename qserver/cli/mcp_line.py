"""The arguments of `qserver mcp`."""

from __future__ import annotations

import argparse
from typing import Final

MCP: Final = """\
Clients start it themselves and talk to it over standard input and output; with --http it listens
for them instead. It has tools to look at schemas, to query, to explain and to dry-run a change.
Tools that change something are there only with --allow-writes. What it may do is bounded by its
key: give it one of its own, with the scope data:read if it is only to read.

Needs the extra qserver[mcp].

examples:
  qserver mcp --database shop
  qserver mcp --allow-writes
  QSERVER_MCP_TOKEN=… qserver mcp --http --host 0.0.0.0 --port 8100
"""
PORT_DEFAULT: Final = 8100


def mcp(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--database", metavar="NAME", help="database to use (else the key's own)")
    parser.add_argument(
        "--allow-writes", action="store_true", help="have tools that change rows and definitions"
    )
    parser.add_argument("--http", action="store_true", help="listen for HTTP at /mcp")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen at (default 127.0.0.1)"
    )
    parser.add_argument(
        "--port", type=_port, default=PORT_DEFAULT, help=f"port (default {PORT_DEFAULT})"
    )


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 65_535):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)
