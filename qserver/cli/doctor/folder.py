"""Looks at files: who may read the data folder, where keys lie open, how old backups are."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from qserver.archive.limits import BACKUP_LAG_SECONDS_BAD
from qserver.archive.status import statuses_in
from qserver.cli.doctor.finding import Finding, ok, problem, warning

OTHERS: Final = 0o077
"""Bits of a mode by which others than the owner may do something."""
DAY: Final = 86_400
BACKUP_DAYS_OLD: Final = 2
BACKUP_DAYS_TOO_OLD: Final = 8
SMALL: Final = 64 * 1024
CONTROL_FILE: Final = "control.qserver"
_KEY: Final = re.compile(r"svc_k_[A-Za-z0-9_-]{16,}")
_NEW_TOKEN: Final = "Make another: openssl rand -hex 32"
_NEW_KEY: Final = (
    'Make another: echo "svc_k_$(openssl rand -hex 32)". Revoke this one: qserver key revoke.'
)
_SECRETS: Final = {
    "QSERVER_API_KEY": _NEW_KEY,
    "QSERVER_LOG_TOKEN": _NEW_TOKEN,
    "QSERVER_CLUSTER_KEY": _NEW_TOKEN,
    "--key": _NEW_KEY,
}
"""What may be known to everybody, and what makes another."""
_EXAMPLES: Final = re.compile(
    r"example|changeme|secret|password|test|0123456789|1234567890|abcdef0123|(.)\1{7}",
    re.IGNORECASE,
)


def look_at_folder(folder: Path) -> Iterator[Finding]:
    if not folder.exists():
        yield warning("folder", f"there is no {folder}", "Name the data folder: --data.")
        return
    if not (folder / CONTROL_FILE).exists():
        text = f"{folder} has no {CONTROL_FILE}"
        yield warning("folder", text, "Is it the data folder? Name it: --data.")
        return
    state = folder.stat()
    text = f"{folder} is of the user {state.st_uid}, mode {state.st_mode & 0o777:o}"
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield problem("folder", f"{folder} cannot be written", "Run this as the server's user.")
    elif state.st_mode & OTHERS:
        yield problem("folder", f"{text}: others may look into it", f"chmod 700 {folder}")
    else:
        yield ok("folder", text)
    open_files = sorted(each.name for each in folder.glob("*.qserver") if _is_open(each))
    if open_files and not state.st_mode & OTHERS:
        names = ", ".join(open_files[:3])
        yield warning("files of data", f"others may read {names}", f"chmod 600 {folder}/*")


def look_at_keys(given: Mapping[str, str], places: list[Path]) -> Iterator[Finding]:
    """Find keys that everybody knows, or that lie where everybody may read them."""
    shown = [name for name in _SECRETS if name in given and _EXAMPLES.search(given[name])]
    for name in shown:
        yield problem("keys", f"{name} looks like that of an example", _SECRETS[name])
    exposed = [each for each in places if _is_open(each) and _has_key(each)]
    for path in exposed:
        yield problem("keys", f"{path} has a key, and others may read it", f"chmod 600 {path}")
    if not shown and not exposed:
        yield ok("keys", f"no key lies open in the environment or in {len(places)} files")


def files_with_settings(folder: Path, key_file: Path | None) -> list[Path]:
    """Files in which keys are often kept: the one that was named, and .env files."""
    places = [each / ".env" for each in (Path.cwd(), folder, folder.parent)]
    places += [Path("/etc/qserver.env"), *(() if key_file is None else (key_file,))]
    return [each for each in dict.fromkeys(path.resolve() for path in places) if each.is_file()]


def look_at_backups(folder: Path | None, now: float) -> Finding:
    if folder is None:
        change = "Make them with `qserver backup`, and name their folder: --backups."
        return warning("backups", "it is not known where backups are", change)
    made = [
        (each / CONTROL_FILE).stat().st_mtime
        for each in (folder, *(folder.iterdir() if folder.is_dir() else ()))
        if (each / CONTROL_FILE).is_file() and each.suffix != ".unfinished"
    ]
    if not made:
        return problem("backups", f"there is no backup in {folder}", "Make one: qserver backup.")
    days = (now - max(made)) / DAY
    text = f"the newest of {len(made)} backups in {folder} is {days:.1f} days old"
    if days > BACKUP_DAYS_TOO_OLD:
        return problem("backups", text, "Make one now, and find out why none was made.")
    if days > BACKUP_DAYS_OLD:
        return warning("backups", text, "Make them more often, by cron for example.")
    return ok("backups", text)


def look_at_continuous(folder: Path, now: float) -> Iterator[Finding]:
    """Look at the continuous backups of a data folder, of which each says there how far it is."""
    for status in statuses_in(folder):
        behind = max(0.0, now - status.until)
        backup = f"the continuous backup to {status.target}"
        text = f"{backup} is {behind:.1f} s behind"
        if now - status.written > BACKUP_LAG_SECONDS_BAD:
            change = "Start qserver backup --continuous again. If it is not wanted any more, remove"
            text = f"{backup} ended {now - status.written:.0f} s ago"
            yield problem("backups", text, f"{change} the file {folder}/backup.… that names it.")
        elif not status.until:
            text = f"{backup} makes its first copy of all files"
            yield warning("backups", text, status.trouble or "Wait until it is complete.")
        elif behind > BACKUP_LAG_SECONDS_BAD or status.trouble is not None:
            yield problem("backups", text, status.trouble or "Look at what that process says.")
        elif status.copied_anew:
            names = ", ".join(status.copied_anew[:3])
            text = f"{text}, and copies the files of {names} anew"
            yield warning("backups", text, "Keep history for longer than the target is away.")
        else:
            yield ok("backups", text)


def _is_open(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o044)


def _has_key(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8") as file:
            return _KEY.search(file.read(SMALL)) is not None
    except (OSError, UnicodeDecodeError):
        return False
