"""Finds the server and the key: the same three flags for every command that calls a server.

    --url       or QSERVER_URL       or http://127.0.0.1:8000
    --key       or --key-file        or QSERVER_API_KEY

Everyone who can list processes sees a key in a flag, until `hidden_key` has taken it away; so the
help recommends the file and the environment.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from qserver.cli.command_line import URL_DEFAULT
from qserver.client import Client
from qserver.errors import InvalidRequest

_KEY_FILE_BYTES_MAX: Final = 4096


def connect(options: argparse.Namespace, database: str | None = None) -> Client:
    return Client(url_of(options, os.environ), key_of(options, os.environ), database)


def url_of(options: argparse.Namespace, environ: Mapping[str, str]) -> str:
    return str(options.url or environ.get("QSERVER_URL") or URL_DEFAULT)


def key_of(options: argparse.Namespace, environ: Mapping[str, str]) -> str:
    if options.key_file is not None:
        return _read(options.key_file)
    key = options.key or environ.get("QSERVER_API_KEY")
    if not key:
        raise InvalidRequest(
            "no API key",
            hint="Set QSERVER_API_KEY or pass --key-file; the server printed a key when it was "
            "first started.",
        )
    return str(key)


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            key = file.read(_KEY_FILE_BYTES_MAX).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"cannot read the key file {path}: {error}") from error
    if not key:
        raise InvalidRequest(f"the key file {path} is empty")
    return key
