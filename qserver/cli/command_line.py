"""The argument parser: every command, its flags, and help with examples.

`qserver.cli.main` imports a command's module only when it is used: `qserver serve` need not load a
terminal toolkit.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from qserver import __version__
from qserver.cli.backup_line import BACKUP, CHECK, RESTORE, backup, check, restore
from qserver.cli.cluster_line import CLUSTER, cluster
from qserver.cli.doctor_line import DOCTOR, doctor
from qserver.cli.mcp_line import MCP, mcp
from qserver.cli.sql_line import SQL, sql
from qserver.config import SETTINGS

URL_DEFAULT: Final = "http://127.0.0.1:8000"
FILE_FORMATS: Final = ("sql", "ndjson")
WORKLOADS: Final = (
    *("point", "insert", "once", "update", "live", "feed"),
    *("pair", "open", "transfer", "scan", "stream", "bulk"),
)
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}

_TOP = """\
examples:
  qserver serve                           serve the databases in ./qserver-data
  qserver sql                             a shell
  qserver sql -c 'SELECT 1'               one statement
  qserver sql -f schema.sql               a file
  qserver key create reader --scope data:read
  qserver database create shop
  qserver bench --seconds 5 --clients 32
  qserver backup /backups/monday          copy a data folder, also while it is served
  qserver backup --continuous s3://bucket/shop    and go on with every change
  qserver export shop.sql --database shop
  qserver import app.sqlite --database app
  qserver mcp --database shop             tools for language models
  qserver cluster up                      several servers and a replicated log, to try it

backup, restore and check work on a data folder, cluster on a log. The others, but for serve, call a
server: --url or QSERVER_URL says where it is, and --key-file or QSERVER_API_KEY which key to use.
"""
_SERVE = """\
Each flag can be set in the environment as well, under the name in brackets; the flag counts first.

examples:
  qserver serve
  qserver serve --port 8080 --data /var/lib/qserver
  QSERVER_API_KEY=svc_k_… qserver serve --host 0.0.0.0
"""
_KEY = """\
examples:
  qserver key list
  qserver key create ci --scope data:read --scope data:write --expires-in 30d
  qserver key create shop-only --database shop
  qserver key create browsers --statement "mine=SELECT id FROM todos WHERE owner = :user"
  qserver key rotate key_… --grace 1h
  qserver key revoke key_…
"""
_DATABASE = """\
examples:
  qserver database list
  qserver database create shop
  qserver database branch shop trial          trial begins as shop is now
  qserver database delete shop --yes
  qserver database versions shop              what changed, newest first
  qserver database diff shop 17               rows that differ between version 17 and now
  qserver database restore shop 17            make it what it was, as a new version
"""
_ORGANIZATION = """\
The key is one of the organization `default`, with the scope admin.

examples:
  qserver organization list                   tiers, and use and limits of all
  qserver organization change acme --tier pro
  qserver organization change acme --limit live_queries=50 --limit stored_bytes=10GB
  qserver organization change acme --limit stored_bytes=tier     what its tier says, again
"""
_BENCH = """\
workloads:
  point      one row by its primary key
  insert     one new row
  once       the same with an Idempotency-Key
  update     one row by its primary key
  live       the same beside 1,000 live queries, each of one row
  feed       the same beside 100 readers of changes
  pair       a transaction that reads a row and updates it
  open       the same in a transaction that stays open: four requests
  transfer   a transaction: two updates of a pair of random accounts
  scan       10,000 rows in one JSON answer
  stream     10,000 rows as server-sent events
  bulk       10,000 new rows of 100 bytes, as JSON lines

Below the table stands how once, live, feed and open compare with the same thing without.

The bench makes a database of its own, bench_…, and deletes it afterwards; with a key that may not
make databases it makes its tables in the key's database instead, and drops them.

examples:
  qserver bench
  qserver bench --workload point --workload insert --clients 64 --seconds 10
  qserver bench --workload update --workload feed --rate 1000
  qserver bench --json > bench.json
"""
_EXPORT = """\
One file holds the whole database as it is at one moment: definitions, rows, and where sequences
have come to. SQL text can be read by qserver and, as far as both know the same words, by psql;
ndjson is one JSON object a line.

examples:
  qserver export shop.sql --database shop
  qserver export shop.ndjson --database shop      the name tells the format
  qserver export - --format sql | gzip > shop.sql.gz
  qserver export shop.sql --postgres              for psql -f shop.sql
"""
_IMPORT = """\
Fills an empty database with what an export has written, or with another database: a file or dump
of SQLite or Cloudflare D1, a plain dump of PostgreSQL, or a PostgreSQL that is running.

What an export has written is sent in batches, each of which is one transaction; the first error
stops it and names its line, unless --keep-going is given. Of other databases what cannot be taken
is listed at the end, and the exit code is 1, unless --stop-on-error is given. An import of SQLite
or of a running PostgreSQL that broke off is gone on with by the same command.

examples:
  qserver database create copy
  qserver import shop.sql --database copy
  gunzip < shop.sql.gz | qserver import - --database copy
  qserver import app.sqlite --dry-run             the definitions that it would make
  qserver import app.sqlite --database app
  qserver import dump.sql --database shop         what pg_dump has written
  qserver import postgres://me@host/shop --database shop
"""
_LOG_CONFIG = """\
A log node is a nats-server, which `pip install qserver[cluster]` brings. Each gets a file of its
own, with the same peers and the same token. It listens for qserver at its port, and for other nodes
at that port + 2000.

examples:
  export QSERVER_LOG_TOKEN=$(openssl rand -hex 32)
  qserver log-config --node n1 --peers n1=10.0.0.1:4222,n2=10.0.0.2:4222,n3=10.0.0.3:4222
  nats-server -c log.conf
"""


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="qserver",
        description="A SQL database that you talk to over HTTP.",
        epilog=_TOP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"qserver {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    _serve(_command(commands, "serve", "serve databases over HTTP", _SERVE))
    shell = _command(commands, "sql", "a shell, and statements from files", SQL)
    sql(shell)
    _connection(shell)
    _key(_command(commands, "key", "create, list, revoke and rotate API keys", _KEY))
    _database(_command(commands, "database", "create, branch, list, delete, restore", _DATABASE))
    summary = "list organizations, and change their tiers and limits"
    _organization(_command(commands, "organization", summary, _ORGANIZATION))
    _bench(_command(commands, "bench", "measure a server under load", _BENCH))
    backup(_command(commands, "backup", "copy a data folder, also while it is served", BACKUP))
    restore(_command(commands, "restore", "make a data folder from a backup", RESTORE))
    check(_command(commands, "check", "verify a data folder or a continuous backup", CHECK))
    doctor(_command(commands, "doctor", "look at a deployment, and say what to change", DOCTOR))
    summary = "start, watch and change nodes that share a replicated log"
    cluster(_command(commands, "cluster", summary, CLUSTER))
    _export(_command(commands, "export", "write a database to one file", _EXPORT))
    _import(_command(commands, "import", "fill a database from a file", _IMPORT))
    parser_of_mcp = _command(commands, "mcp", "tools for language models, over MCP", MCP)
    mcp(parser_of_mcp)
    _connection(parser_of_mcp)
    summary = "write the configuration of a log node"
    _log_config(_command(commands, "log-config", summary, _LOG_CONFIG))
    return parser


_Commands = argparse._SubParsersAction  # argparse has no public name for this type


def _command(
    commands: _Commands[argparse.ArgumentParser], name: str, summary: str, examples: str
) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _serve(parser: argparse.ArgumentParser) -> None:
    for setting in SETTINGS:
        if setting.field:
            shown = f", default {setting.default}" if setting.default else ""
            parser.add_argument(
                setting.flag,
                dest=setting.field,
                metavar="VALUE",
                help=f"{setting.meaning} [{setting.name}{shown}]".replace("%", "%%"),
            )


def _key(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="action", required=True)
    create = actions.add_parser("create", help="make a key; its secret is shown once")
    create.add_argument("name", help="what the key is for")
    create.add_argument(
        "--scope",
        dest="scopes",
        metavar="SCOPE",
        action="append",
        help="data:read, data:write, schema, databases, keys or admin; may be repeated "
        "(default: the scopes of the key in use)",
    )
    create.add_argument(
        "--database",
        dest="databases",
        metavar="NAME",
        action="append",
        help="limit it to this database; may be repeated",
    )
    create.add_argument(
        "--statement",
        dest="statements",
        metavar="NAME=SQL",
        action="append",
        help="a statement that the key can run, and nothing else; may be repeated",
    )
    create.add_argument(
        "--statements-from",
        metavar="FILE",
        type=Path,
        help='the same from a file: a JSON object, {"name": "SQL", …}',
    )
    create.add_argument(
        "--bound",
        metavar="NAME",
        action="append",
        help="a parameter of its statements that every session has to bind; may be repeated",
    )
    create.add_argument("--expires-in", metavar="TIME", type=duration, help="such as 12h or 30d")
    listing = actions.add_parser("list", help="the keys of the organization, without secrets")
    revoke = actions.add_parser("revoke", help="end a key at once, and its sessions")
    revoke.add_argument("id", help="as `qserver key list` shows it")
    revoke.add_argument("--yes", action="store_true", help="do not ask")
    rotate = actions.add_parser("rotate", help="give a key a new secret")
    rotate.add_argument("id", help="as `qserver key list` shows it")
    rotate.add_argument(
        "--grace",
        metavar="TIME",
        type=duration,
        help="how long the old secret stays good, such as 10m (default: not at all)",
    )
    _output(create, listing, rotate)
    _connection(create, listing, revoke, rotate)


def _organization(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="action", required=True)
    listing = actions.add_parser("list", help="all organizations, with what they use and may use")
    change = actions.add_parser("change", help="change the tier or the limits of one")
    change.add_argument("organization", help="its name or id")
    change.add_argument("--tier", metavar="TIER", help="free, pro or unlimited")
    change.add_argument(
        "--limit",
        dest="limits",
        metavar="NAME=VALUE",
        action="append",
        help="a limit of its own, as the list names them; a number, for bytes also such as 10GB, or"
        " `tier`: what its tier says; may be repeated",
    )
    _output(listing, change)
    _connection(listing, change)


def _database(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="action", required=True)
    create = actions.add_parser("create", help="make an empty database")
    create.add_argument("name")
    branch = actions.add_parser(
        "branch", help="make a branch, which shares what it does not change"
    )
    branch.add_argument("parent", help="the database that it begins as")
    branch.add_argument("name")
    branch.add_argument(
        "--as-of", type=moment, metavar="MOMENT", help="a version or a time (default: now)"
    )
    listing = actions.add_parser("list", help="the databases of the organization")
    delete = actions.add_parser("delete", help="delete a database and everything in it")
    delete.add_argument("name")
    versions = actions.add_parser("versions", help="the versions that history keeps, newest first")
    versions.add_argument("name")
    versions.add_argument("--limit", type=version_count, default=20, help="how many (default 20)")
    diff = actions.add_parser("diff", help="what differs between two versions, or two databases")
    diff.add_argument("name")
    diff.add_argument(
        "since", type=moment, nargs="?", help="a version, or a time such as 2030-01-31T12:00:00Z"
    )
    diff.add_argument("until", type=moment, nargs="?", help="the same (default: now)")
    diff.add_argument(
        "--table", dest="tables", metavar="NAME", action="append", help="only this; may be repeated"
    )
    diff.add_argument(
        "--from-database",
        metavar="NAME",
        help="compare with this relative: its version SINCE (default: its newest)",
    )
    diff.add_argument("--count", action="store_true", help="only count the changes, by table")
    restore = actions.add_parser("restore", help="make it what it was, as a new version")
    restore.add_argument("name")
    restore.add_argument("as_of", type=moment, help="a version or a time")
    for each in (delete, restore):
        each.add_argument("--yes", action="store_true", help="do not ask")
    _output(create, branch, listing, versions, diff, restore)
    _connection(create, branch, listing, delete, versions, diff, restore)


def _bench(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds", type=seconds, default=5.0, help="length of each workload (default 5)"
    )
    parser.add_argument(
        "--clients", type=client_count, default=32, help="connections at once (default 32)"
    )
    parser.add_argument(
        "--rate",
        type=request_rate,
        metavar="N",
        help="requests a second, of all clients together (default: as many as are answered)",
    )
    parser.add_argument(
        "--workload",
        dest="workloads",
        choices=WORKLOADS,
        action="append",
        help="may be repeated (default: all)",
    )
    _output(parser)
    _connection(parser)


def _export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="file to make, - for standard output")
    parser.add_argument(
        "--postgres",
        dest="format",
        action="store_const",
        const="postgres",
        help="write SQL that psql loads into PostgreSQL",
    )
    _transfer(parser)


def _import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="file to read, - for standard input, or postgres://…"
    )
    parser.add_argument(
        "--keep-going", action="store_true", help="leave out what fails, and go on with the rest"
    )
    parser.add_argument(
        "--stop-on-error", action="store_true", help="end at the first thing that fails"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the definitions, and change nothing"
    )
    _transfer(parser)


def _log_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--node", metavar="NAME", required=True, help="which of the peers it is")
    parser.add_argument(
        "--peers",
        metavar="NAME=HOST:PORT,…",
        required=True,
        help="all log nodes, 1, 3 or 5, at the addresses by which others reach them",
    )
    parser.add_argument(
        "--token-file", metavar="FILE", type=Path, help="holds the token (else QSERVER_LOG_TOKEN)"
    )
    parser.add_argument(
        "--data", metavar="DIR", default="qserver-log", help="its folder (default ./qserver-log)"
    )
    parser.add_argument(
        "--data-bytes-max",
        metavar="N",
        type=byte_count,
        help="the most that it may store (default: three quarters of the disk)",
    )
    parser.add_argument(
        "--listen", metavar="HOST", help="address to listen at, such as 0.0.0.0 (else its peer's)"
    )
    for name, what in (
        ("cert", "certificate chain (PEM), with which it speaks TLS"),
        ("key", "the certificate's private key"),
        ("ca", "certificates that those of other nodes are checked with"),
    ):
        parser.add_argument(f"--tls-{name}", metavar="FILE", type=Path, help=what)
    parser.add_argument(
        "--output", metavar="FILE", default="log.conf", help="file to write (default log.conf)"
    )
    parser.add_argument("--force", action="store_true", help="write it anew if it is there")


def _transfer(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--database", metavar="NAME", help="database to use (else the key's own)")
    parser.add_argument(
        "--format",
        choices=FILE_FORMATS,
        help="(default: as the name of the file ends, else sql)",
    )
    _connection(parser)


def _output(*parsers: argparse.ArgumentParser) -> None:
    for parser in parsers:
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def _connection(*parsers: argparse.ArgumentParser) -> None:
    for parser in parsers:
        group = parser.add_argument_group("connection")
        group.add_argument(
            "--url", metavar="URL", help=f"address of the server (QSERVER_URL, else {URL_DEFAULT})"
        )
        keys = group.add_mutually_exclusive_group()
        keys.add_argument(
            "--key",
            metavar="KEY",
            help="API key; better set QSERVER_API_KEY, which no list of processes shows",
        )
        keys.add_argument(
            "--key-file", metavar="FILE", type=Path, help="file that holds the API key"
        )


# --- argument types: argparse turns the error into a message and exit code 2 ---------------------


def duration(text: str) -> int:
    """Seconds, from a number with a unit: 90s, 10m, 12h, 30d."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    if not (number.isascii() and number.isdigit() and len(number) <= 9):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 90s, 10m, 12h or 30d")
    return int(number) * _UNITS[unit]


def seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.1 <= number <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.1 to 3600")
    return number


def client_count(text: str) -> int:
    return _number_of("clients", 1000, text)


def request_rate(text: str) -> int:
    return _number_of("requests a second", 100_000, text)


def version_count(text: str) -> int:
    return _number_of("versions", 100_000, text)


def byte_count(text: str) -> int:
    return _number_of("bytes", 1 << 60, text)


def _number_of(things: str, most: int, text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= most):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of {things} from 1 to {most}")
    return int(text)


def moment(text: str) -> int | str:
    """A version, which is a number, or a time as the server reads it."""
    return int(text) if text.isascii() and text.isdigit() else text
