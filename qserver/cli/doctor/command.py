"""Runs all checks, prints what they found, and says by the exit code whether there is a problem."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from qserver.cli.connection import key_of
from qserver.cli.doctor.certificate import look_at_certificate
from qserver.cli.doctor.exposure import look_at_exposure
from qserver.cli.doctor.finding import Finding, State, problem
from qserver.cli.doctor.folder import (
    files_with_settings,
    look_at_backups,
    look_at_continuous,
    look_at_folder,
    look_at_keys,
)
from qserver.cli.doctor.machine import look_at_machine
from qserver.cli.doctor.server import look_at_server
from qserver.config import IN_MEMORY, Settings, load
from qserver.errors import InvalidSetting
from qserver.web.service.machine import half_of_memory

MARKS: Final[Mapping[State, str]] = {"ok": "ok      ", "warning": "warning ", "problem": "PROBLEM "}


def run(options: argparse.Namespace) -> int:
    findings = list(look(options, os.environ))
    worst = {finding.state for finding in findings}
    if options.json:
        state = next(each for each in ("problem", "warning", "ok") if each in worst | {"ok"})
        listed = [msgspec.to_builtins(finding) for finding in findings]
        sys.stdout.write(json.dumps({"state": state, "findings": listed}, indent=2) + "\n")
    else:
        for finding in findings:
            sys.stdout.write(f"{MARKS[finding.state]}{finding.check}: {finding.text}\n")
            if finding.change is not None:
                sys.stdout.write(f"        → {finding.change}\n")
    return 1 if "problem" in worst else 0


def look(options: argparse.Namespace, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Look at the server's machine, unless only a URL is given, and at a server if one is."""
    url = options.url or environ.get("QSERVER_URL")
    if url is None or options.data is not None:
        yield from look_here(options, environ)
    if url is not None:
        key = None
        if options.key or options.key_file is not None or environ.get("QSERVER_API_KEY"):
            key = key_of(options, environ)
        yield from look_at_server(url, key)


def look_here(options: argparse.Namespace, environ: Mapping[str, str]) -> Iterator[Finding]:
    try:
        settings: Settings = load(environ)
    except InvalidSetting as error:
        yield problem("settings", error.message, error.hint or "See docs/operations.md.")
        settings = load({})
    folder = options.data or Path(settings.data)
    if str(folder) == IN_MEMORY:
        change = "Name a folder in QSERVER_DATA_DIR, unless nothing is to be kept."
        yield problem("folder", "the server keeps everything in memory, and nothing else", change)
        folder = Path()
    else:
        yield from look_at_folder(folder)
    yield from look_at_machine(settings, folder, 2 * half_of_memory())
    yield from look_at_exposure(settings)
    if settings.tls_certificate is not None and settings.tls_key is not None:
        files = Path(settings.tls_certificate), Path(settings.tls_key)
        yield from look_at_certificate(*files, time.time())
    keys = environ if options.key is None else {**environ, "--key": options.key}
    yield from look_at_keys(keys, files_with_settings(folder, options.key_file))
    if settings.log is None:
        continuous = list(look_at_continuous(folder, time.time()))
        yield from continuous
        if settings.backup is not None and not continuous:
            change = "Start the server with QSERVER_BACKUP, and look at its log."
            text = f"nothing of {folder} has gone to {settings.backup} yet"
            yield problem("backups", text, change)
        elif options.backups is not None or not continuous:
            yield look_at_backups(options.backups, time.time())
