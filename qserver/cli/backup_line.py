"""The arguments of `qserver backup`, `restore` and `check`, with their help."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from qserver.archive.limits import (
    BACKUP_BASE_SECONDS_DEFAULT,
    BACKUP_EVERY_SECONDS_DEFAULT,
    BACKUP_EVERY_SECONDS_MAX,
    BACKUP_EVERY_SECONDS_MIN,
    BACKUP_KEEP_SECONDS_DEFAULT,
)
from qserver.errors import InvalidRequest

S3: Final = "s3://"
MARK: Final = "qserver-backup"
"""The file in a folder that has a continuous backup."""
_DAY: Final = 86_400
_MOMENT_MAX: Final = 253_402_300_800
"""The end of the year 9999."""
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": _DAY}

BACKUP: Final = """\
The server may be running: nothing is stopped, and commits go on. Each database is copied as it is
at one moment, then checked to the last row; the target appears when all of them are sound.

With --continuous the command goes on: it copies all files once a day, and every change within a
second or so, until it is stopped. Then any moment of the last days can be restored. The target is
a folder, best on another disk, or s3://bucket/prefix with the usual variables AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL (pip install 'qserver[s3]').

examples:
  qserver backup /backups/monday
  qserver backup --data /var/lib/qserver /backups/monday
  qserver backup --log nats://h1:4222,h2:4222,h3:4222 /backups/monday
  qserver backup --continuous /mnt/backups/shop --data /var/lib/qserver
  qserver backup --continuous s3://bucket/shop --keep 30d
  qserver backup --list s3://bucket/shop          what can be restored from it
"""
RESTORE: Final = """\
The folder must be empty or absent, and nobody may be using it; the backup is only read. From a
continuous backup any moment that it keeps can be restored; qserver backup --list tells which.

examples:
  qserver restore /backups/monday --data /var/lib/qserver
  qserver restore /backups/monday --log nats://h1:4222,h2:4222,h3:4222
  qserver restore s3://bucket/shop --data restored                               the newest moment
  qserver restore s3://bucket/shop --data restored --at 2030-01-31T12:00:00Z
  qserver restore /mnt/backups/shop --data restored --database shop --version 1234
"""
CHECK: Final = """\
Reads everything and compares everything: files, checksums, keys, rows and indexes. Stop the server
first. The exit code is 1 if anything is damaged.

With a SOURCE it verifies a continuous backup, which may go on meanwhile: every object, that none is
missing, and a restore of the newest moment into a temporary folder.

examples:
  qserver check
  qserver check --data /var/lib/qserver
  qserver check --log nats://h1:4222,h2:4222,h3:4222
  qserver check s3://bucket/shop
"""


def backup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target",
        metavar="TARGET",
        help="folder to make, which must not exist yet; with --continuous also s3://bucket/prefix",
    )
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--continuous", action="store_true", help="go on with every change, until it is stopped"
    )
    kind.add_argument(
        "--list", action="store_true", dest="lists", help="show which moments can be restored"
    )
    parser.add_argument(
        "--every",
        type=_every,
        metavar="SECONDS",
        help=f"how often changes are saved (default {BACKUP_EVERY_SECONDS_DEFAULT:g})",
    )
    parser.add_argument(
        "--keep",
        type=_kept,
        metavar="TIME",
        help="how far back moments can be restored, such as 12h or 30d"
        f" (default {BACKUP_KEEP_SECONDS_DEFAULT // _DAY}d)",
    )
    parser.add_argument(
        "--base-every",
        type=_kept,
        metavar="TIME",
        help="how often all files are copied again"
        f" (default {BACKUP_BASE_SECONDS_DEFAULT // 3600}h)",
    )
    parser.add_argument(
        "--keep-trying", action="store_true", help="begin again after any error, at the start, too"
    )
    _endpoint(parser)
    parser.add_argument("--json", action="store_true", help="with --list: print JSON")
    _data(parser)
    _log(parser, "copy what a replicated log has, also while it is served")


def restore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "backup",
        metavar="BACKUP",
        help="folder that qserver backup has made, or the target of a continuous one",
    )
    when = parser.add_mutually_exclusive_group()
    when.add_argument(
        "--at",
        type=_moment,
        metavar="TIME",
        help="of a continuous backup: the moment, such as 2030-01-31T12:00:00Z (else the newest)",
    )
    when.add_argument(
        "--version",
        type=_version,
        metavar="N",
        help="the last version of the database that --database names",
    )
    parser.add_argument(
        "--database", metavar="NAME", help="restore this one alone, by its name or id"
    )
    _endpoint(parser)
    _data(parser)
    _log(parser, "make it the content of a replicated log that has none")


def check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "backup", metavar="SOURCE", nargs="?", help="the target of a continuous backup"
    )
    _endpoint(parser)
    _data(parser)
    _log(parser, "check a replicated log, which may be in use")


def is_continuous(options: argparse.Namespace) -> bool:
    """Return whether the command is about a continuous backup.

    Raises InvalidRequest for flags that would mean nothing.
    """
    match options.command:
        case "backup":
            _refuse_idle_flags(options)
            return bool(options.continuous or options.lists)
        case "restore":
            source = options.backup
            asked = (options.at, options.version, options.database, options.endpoint_url)
            is_asked = any(each is not None for each in asked)
            return is_asked or source.startswith(S3) or (Path(source) / MARK).exists()
    return options.backup is not None


def _refuse_idle_flags(options: argparse.Namespace) -> None:
    is_any = options.continuous or options.lists
    idle = {
        "--every is for --continuous": options.every and not options.continuous,
        "--keep is for --continuous": options.keep and not options.continuous,
        "--base-every is for --continuous": options.base_every and not options.continuous,
        "--keep-trying is for --continuous": options.keep_trying and not options.continuous,
        "--json is for --list": options.json and not options.lists,
        "--endpoint-url is for --continuous and --list": options.endpoint_url and not is_any,
        "--log is not for --list": options.log and options.lists,
    }
    for message, is_so in idle.items():
        if is_so:
            raise InvalidRequest(message, hint="Leave it out, or see qserver backup --help.")


def _endpoint(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--endpoint-url",
        metavar="URL",
        help="of a service that speaks the protocol of S3 (AWS_ENDPOINT_URL)",
    )


def _data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", metavar="DIR", help="the data folder (QSERVER_DATA_DIR, else ./qserver-data)"
    )


def _log(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--log", metavar="URL", help=f"{what}; QSERVER_LOG_TOKEN has its secret")


def _every(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not BACKUP_EVERY_SECONDS_MIN <= number <= BACKUP_EVERY_SECONDS_MAX:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of seconds from {BACKUP_EVERY_SECONDS_MIN:g}"
            f" to {BACKUP_EVERY_SECONDS_MAX:g}"
        )
    return number


def _kept(text: str) -> int:
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    if not (number.isascii() and number.isdigit() and 1 <= int(number) <= 99_999_999):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 90s, 10m, 12h or 30d")
    return int(number) * _UNITS[unit]


def _moment(text: str) -> float:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time such as 2030-01-31T12:00:00Z"
        ) from None
    moment = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    if not 0 <= moment < _MOMENT_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 2030-01-31T12:00:00Z")
    return moment


def _version(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) < 1 << 62):
        raise argparse.ArgumentTypeError(f"{text!r} is not a version, a number from 1")
    return int(text)
