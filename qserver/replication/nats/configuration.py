"""The configuration of a log node: what `qserver log-config` writes, as text.

    client port p       qserver connects to it
    route port p + 2000 nodes connect to each other

What matters in it:

- `sync_interval: always`: nothing is acknowledged before it is on disk.
- Account LOG may ask all nodes whether that is so (`synced`).
- What may be stored is a bound of that account, for all nodes together: at it an append is refused,
  and what is purged makes room. A server has a bound of its own. By default it shrinks as the log
  grows; and nodes that reach it stop to agree on anything, a purge too. So it is out of reach.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

import msgspec

from qserver.errors import InvalidRequest
from qserver.replication.nats.connection import (
    MESSAGE_BYTES_MAX,
    PORT_MAX,
    USER,
    Server,
    servers_of,
)

ROUTE_PORTS: Final = 2000
"""How far the port for other nodes is from the one for clients."""

UNREACHED_BYTES: Final = 1 << 50
NODE_COUNTS: Final = (1, 3, 5)
_PEERS_HINT: Final = "Name all, such as n1=10.0.0.1:4222,n2=10.0.0.2:4222,n3=10.0.0.3:4222."
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_TOKEN: Final = re.compile(r"[A-Za-z0-9_.~+/=-]{8,200}")


class Tls(msgspec.Struct, frozen=True):
    certificate: str
    key: str
    authority: str


class LogNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node, and what it must know of the others."""

    name: str
    peers: Mapping[str, Server]
    """All nodes, this one too."""
    token: str
    data: str
    data_bytes_max: int
    listen: str | None = None
    """The address to listen at; by default the one that peers use."""
    tls: Tls | None = None
    sync: str = "always"
    """Tests have others."""


def peers_of(text: str) -> dict[str, Server]:
    """Return the nodes of `n1=host:port,n2=host:port,n3=host:port`."""
    peers: dict[str, Server] = {}
    for each in text.split(","):
        name, equals, address = each.strip().partition("=")
        server = servers_of(f"nats://{address}")[0] if equals else None
        if server is None or not _NAME.fullmatch(name) or name in peers:
            raise InvalidRequest(f"{each!r} does not name another node", hint=_PEERS_HINT)
        if server in peers.values() or server.port + ROUTE_PORTS > PORT_MAX:
            raise InvalidRequest(
                f"{each!r} is an address that no other node may have",
                hint=f"A node has its port and, for the others, that + {ROUTE_PORTS}.",
            )
        peers[name] = server
    if len(peers) not in NODE_COUNTS:
        raise InvalidRequest(
            f"a log has 1, 3 or 5 nodes, and not {len(peers)}",
            hint="With these it goes on when none, one or two of them fail.",
        )
    return peers


def configuration(node: LogNode) -> str:
    """Return the text of a node's file, or raise InvalidRequest."""
    if node.name not in node.peers:
        raise InvalidRequest(
            f"there is no node {node.name!r} among the peers",
            hint=f"The peers are {', '.join(node.peers)}.",
        )
    if not _TOKEN.fullmatch(node.token):
        raise InvalidRequest(
            "the token is not one of 8 to 200 letters, digits and _ . ~ + / = -",
            hint="Make one, for all nodes: openssl rand -hex 32",
        )
    here = node.peers[node.name]
    parts = [
        "# A log node, written by `qserver log-config`. It holds the token: keep it secret.",
        f"server_name: {_quoted(node.name)}",
        f"listen: {_quoted(_listening(node, here.port))}",
        f"max_payload: {MESSAGE_BYTES_MAX}",
        *_tls(node.tls, verify=False),
        *_accounts(node.token, node.data_bytes_max * len(node.peers)),
        "jetstream {",
        f"  store_dir: {_quoted(node.data)}",
        "  # The bound is that of the account.",
        f"  max_file_store: {UNREACHED_BYTES}",
        "  # A message is acknowledged when it is synced. Without this qserver refuses the node.",
        f"  sync_interval: {node.sync}",
        "}",
    ]
    if len(node.peers) > 1:
        parts += _cluster(node, here)
    return "\n".join(parts) + "\n"


def _accounts(token: str, bytes_max: int) -> list[str]:
    asked = '"$SYS.REQ.SERVER.PING.JSZ"'
    return [
        "accounts {",
        "  LOG {",
        "    # What all nodes may store together, each copy counted.",
        f"    jetstream: {{ max_file: {bytes_max} }}",
        f"    users: [{{ user: {USER}, password: {_quoted(token)} }}]",
        "    # How nodes are set up: whether they sync.",
        f'    imports: [{{ service: {{ account: "$SYS", subject: {asked} }} }}]',
        "  }",
        f"  $SYS {{ exports: [{{ service: {asked}, response_type: stream }}] }}",
        "}",
    ]


def _cluster(node: LogNode, here: Server) -> list[str]:
    routes = [
        f"nats://{USER}:{quote(node.token, safe='')}@{Server(host, port + ROUTE_PORTS, False)}"
        for name, (host, port, _) in node.peers.items()
        if name != node.name
    ]
    return [
        "cluster {",
        "  name: qserver",
        f"  listen: {_quoted(_listening(node, here.port + ROUTE_PORTS))}",
        f"  authorization {{ user: {USER}, password: {_quoted(node.token)} }}",
        *(f"  {line}" for line in _tls(node.tls, verify=True)),
        f"  routes: [{', '.join(map(_quoted, routes))}]",
        "}",
    ]


def _tls(tls: Tls | None, verify: bool) -> list[str]:
    if tls is None:
        return []
    files = {"cert_file": tls.certificate, "key_file": tls.key, "ca_file": tls.authority}
    lines = [f"  {name}: {_quoted(path)}" for name, path in files.items()]
    return ["tls {", *lines, *(["  verify: true"] if verify else []), "}"]


def _listening(node: LogNode, port: int) -> str:
    host = node.listen or node.peers[node.name].host
    return str(Server(host, port, False))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
