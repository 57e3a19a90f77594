"""`qserver log-config` writes the configuration of a log node; and where its program is found.

The file holds the token of the log, so only its owner may read it. It is written as a whole or not
at all, and an existing one is kept unless --force is given.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Final

from qserver.errors import InvalidRequest
from qserver.replication.nats.configuration import LogNode, Tls, configuration, peers_of

PROGRAM: Final = "nats-server"
DISK_SHARE: Final = 0.75
"""What of a disk a log node may fill, unless it is told."""


def find_server() -> str | None:
    """Return the program of a log node: the one installed beside this Python, or on the path."""
    beside = Path(sysconfig.get_path("scripts"), PROGRAM)
    return str(beside) if os.access(beside, os.X_OK) else shutil.which(PROGRAM)


def run(options: argparse.Namespace) -> int:
    file, data = Path(options.output), Path(options.data).absolute()
    peers = peers_of(options.peers)
    text = configuration(
        LogNode(
            name=options.node,
            peers=peers,
            token=_token(options),
            data=str(data),
            data_bytes_max=options.data_bytes_max or share_of_disk(data),
            listen=options.listen,
            tls=_tls(options),
        )
    )
    if file.exists() and not options.force:
        raise InvalidRequest(f"{file} exists", hint="Write it anew with --force.")
    write_private(file, text)
    scheme = "tls" if options.tls_cert else "nats"
    urls = ",".join(map(str, peers.values()))
    sys.stdout.write(
        f"Wrote {file}. Start the node: {find_server() or PROGRAM} -c {file}\n"
        f"Nodes of the log: {scheme}://{urls}\n"
    )
    return 0


def _token(options: argparse.Namespace) -> str:
    if options.token_file is None:
        token = os.environ.get("QSERVER_LOG_TOKEN", "")
    else:
        token = _read(options.token_file)
    if not token.strip():
        raise InvalidRequest(
            "a log node needs a token",
            hint="Set QSERVER_LOG_TOKEN, or name a file with --token-file: the same for all.",
        )
    return token.strip()


def _tls(options: argparse.Namespace) -> Tls | None:
    files = [options.tls_cert, options.tls_key, options.tls_ca]
    if not any(files):
        return None
    if not all(files):
        raise InvalidRequest("TLS needs --tls-cert, --tls-key and --tls-ca")
    for each in files:
        _read(each)
    return Tls(*(str(each.absolute()) for each in files))


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"cannot read {file}: {error}") from None


def share_of_disk(data: Path) -> int:
    """What log nodes in a folder may store together."""
    there = next(each for each in (data, *data.parents) if each.exists())
    return int(DISK_SHARE * shutil.disk_usage(there).total)


def write_private(file: Path, text: str) -> None:
    """Write a file that only its owner may read, as a whole or not at all."""
    unfinished = file.with_name(f"{file.name}.unfinished")
    try:
        unfinished.unlink(missing_ok=True)
        unfinished.touch(0o600, exist_ok=False)
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(file)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise InvalidRequest(f"cannot write {file}: {error.strerror}") from None
