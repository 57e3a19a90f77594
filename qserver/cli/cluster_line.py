"""The arguments of `qserver cluster …`, and their help."""

from __future__ import annotations

import argparse
from typing import Final

from qserver.limits import CLUSTER_NODES_MAX

PORT_MAX: Final = 60_000
"""Above the first port others are needed, the last of them is 2,216 higher."""

CLUSTER: Final = """\
Several servers, called nodes, can share the databases of one replicated log. `up` starts all of
that on this machine, to try it. The others find a log by --log or QSERVER_LOG, with its secret in
QSERVER_LOG_TOKEN, or by --data, the folder of `up`.

examples:
  qserver cluster up                              3 log nodes and 3 nodes in ./qserver-cluster
  qserver cluster up --nodes 2 --log-nodes 1 --port 9000 --data /tmp/trial
  qserver cluster status
  qserver cluster status --log nats://h1:4222,h2:4222,h3:4222 --json
  qserver cluster move db_01m7f173w6j67q1kzj5eyf q2
  qserver cluster move control q2                 q2 leads: keys, databases, organizations
  qserver cluster drain q3                        q3 owns no database any more: stop it, replace it
  qserver cluster drain q3 --undo

After a log has lost what it had acknowledged, the databases in it are refused. The files of the
server that wrote them last have all of it: rescue makes them the content of the log again. Stop all
servers first, and use the folder with the newest versions.

  qserver cluster rescue db_01m7f173w6j67q1kzj5eyf --log nats://h1:4222,h2:4222,h3:4222
"""


def cluster(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="action", required=True)
    _up(actions.add_parser("up", help="start a whole cluster on this machine, to try it"))
    status = actions.add_parser("status", help="nodes, whether they live, and what they own")
    status.add_argument(
        "--quick", action="store_true", help="look once: it is not known who lives then"
    )
    status.add_argument("--json", action="store_true", help="print JSON instead of a table")
    move = actions.add_parser("move", help="let a node own a database and its branches")
    move.add_argument("database", metavar="ID", help="db_…, or control: whoever has that leads")
    move.add_argument("node", metavar="NODE", nargs="?", help="the name of a node")
    move.add_argument("--back", action="store_true", help="to where it would be by itself")
    drain = actions.add_parser("drain", help="let other nodes own all that a node owns")
    drain.add_argument("node", metavar="NODE", help="the name of a node")
    drain.add_argument("--undo", action="store_true", help="let it own databases again")
    for each in (status, move, drain):
        each.add_argument(
            "--log",
            metavar="URL",
            help="nodes of the log (QSERVER_LOG); QSERVER_LOG_TOKEN has its secret",
        )
        each.add_argument(
            "--data", metavar="DIR", help="instead: the folder of `up` (./qserver-cluster)"
        )
    rescue = actions.add_parser("rescue", help="begin a database's stream anew, from its files")
    rescue.add_argument("database", metavar="ID", help="as its file is named, without the ending")
    rescue.add_argument("--yes", action="store_true", help="do not ask")
    rescue.add_argument(
        "--data", metavar="DIR", help="the data folder (QSERVER_DATA_DIR, else ./qserver-data)"
    )
    rescue.add_argument(
        "--log",
        metavar="URL",
        required=True,
        help="nodes of the log; QSERVER_LOG_TOKEN has its secret",
    )


def _up(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--nodes", metavar="N", type=_node_count, default=3, help="servers (default 3)"
    )
    parser.add_argument(
        "--log-nodes",
        metavar="N",
        type=_log_node_count,
        help="1, 3 or 5 (default: as the folder has, else 3)",
    )
    parser.add_argument(
        "--data", metavar="DIR", help="folder that has all of it (default ./qserver-cluster)"
    )
    parser.add_argument(
        "--port",
        metavar="PORT",
        type=_port,
        default=8000,
        help="of the first node, others follow it; 0: any that are free (default 8000)",
    )


def _node_count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= CLUSTER_NODES_MAX):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of nodes from 1 to {CLUSTER_NODES_MAX}"
        )
    return int(text)


def _log_node_count(text: str) -> int:
    if text not in ("1", "3", "5"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither 1 nor 3 nor 5: with these the log goes on when none, one or two"
            " of them fail"
        )
    return int(text)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= PORT_MAX):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to {PORT_MAX}")
    return int(text)
