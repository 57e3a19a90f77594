"""The audit log: who changed what, when and from where; and, if wanted, who ran which statement.

    {"time": "…", "kind": "control", "action": "POST /v1/keys", "status": 201, "outcome": "done",
     "organization": "org_…", "key_id": "key_…", "address": "10.0.0.7", "request_id": "…",
     "wanted": {"name": "ci", "scopes": ["data:read"]}, "id": "key_…"}

Each request to a route of the control plane that may change something leaves exactly one line, also
if it is refused to a key that is good. A line is written after the change is durable and before its
answer leaves, by one `write` to a file that is only appended to; so several processes share it. A
line of which a full disk takes a part is taken back, under a lock that whoever writes has.

A line is short enough for a pipe to take it as one, has no line end within, and no character that
would steer a terminal. Secrets are not written: of a body only the fields of `SHOWN` are, of an
answer only the id.

While lines cannot be written, further changes are refused (`check`): a change without a line would
be worse. The line that is lost goes to the server's log instead, but those of statements, which go
on: they are counted. The first line that can be written again tells how many were lost. A file that
was renamed, as logrotate does, is opened anew.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from qserver.errors import DatabaseUnavailable, InvalidSetting
from qserver.query.statement_counting import MS
from qserver.query.statement_statistics import SlowRun
from qserver.web.statements.json_values import encode_json

STDERR: Final = "stderr"
SHOWN: Final = frozenset(
    {"name", "scopes", "database", "databases", "expires_in", "grace_seconds", "branch_of", "as_of"}
    | {"history", "replicas", "keep", "tier", "limits", "organization", "allow_null"}
)
"""Fields of bodies that no secret is in. Texts of statements and bound values are not shown."""
TEXT_LENGTH_MAX: Final = 200
PATH_LENGTH_MAX: Final = 300
LINE_BYTES_MAX: Final = 4096
"""So many bytes of one `write` stay together in a pipe (PIPE_BUF)."""
CUTS: Final = (500, 100, 10, 0)
"""Lengths of texts and lists in a line that is too long; the next where it still is."""
SHORT: Final = 40
"""Characters that are always shown: an id, a time, the name of a route."""
STATEMENT: Final = "statement"
_ODD: Final = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")
"""What JSON leaves as it is, and some programs take for a line's end or a command."""
logger: Final = logging.getLogger("qserver")


class Made(msgspec.Struct):
    """What of an answer names what was made or changed."""

    id: str | None = None
    key_id: str | None = None
    session: dict[str, Any] | None = None
    database: Any = None

    @property
    def name(self) -> str | None:
        of_session = (self.session or {}).get("id")
        return self.id or (of_session if isinstance(of_session, str) else None) or self.key_id


_read_made: Final = msgspec.json.Decoder(Made).decode


class AuditLog:
    """Writes lines to a file, or to standard error."""

    def __init__(self, target: str) -> None:
        self._path = None if target == STDERR else Path(target)
        self._file: int | None = None
        self._trouble: str | None = None
        self._lost = 0
        """Lines that could not be written, of changes that were made."""
        if self._path is not None:
            try:
                self._open(self._path)
            except OSError as error:
                raise InvalidSetting(
                    f"the audit log {self._path} cannot be opened: {error.strerror}",
                    hint="QSERVER_AUDIT is stderr, or a file in a folder that may be written.",
                ) from None

    def check(self) -> None:
        """Refuse a change that could not be written down."""
        if self._trouble is None or self._tell_lost():
            return
        raise DatabaseUnavailable(
            f"the audit log cannot be written ({self._trouble}), so nothing may be changed",
            hint="Its operator has to make room, or let the server write it.",
        )

    def write(self, kind: str, **fields: Any) -> bool:
        """Append a line; return whether that was possible."""
        data = line_of(kind, fields)
        if (self._trouble is None or self._tell_lost()) and self._appended(data):
            return True
        self._lost += 1
        if kind != STATEMENT or self._lost == 1:
            text = data.decode().rstrip()
            logger.error("the audit log lost a line (%s): %s", self._trouble, text)
        return False

    def _tell_lost(self) -> bool:
        """Write how many lines were lost; return whether that was possible."""
        done = {"action": "go on after lines were lost", "lost": self._lost}
        if not self._appended(line_of("audit", done)):
            return False
        self._lost, self._trouble = 0, None
        return True

    def _appended(self, data: bytes) -> bool:
        try:
            self._append(data)
        except OSError as error:
            self._trouble = str(error.strerror)
            return False
        return True

    def _append(self, data: bytes) -> None:
        """Write a line, all of it or nothing."""
        file = self._current()
        if self._path is None:
            if os.write(file, data) < len(data):
                raise OSError(errno.EAGAIN, "a line was cut")
            return
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            end = os.fstat(file).st_size
            if os.write(file, data) < len(data):
                os.ftruncate(file, end)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)

    def write_run(self, run: SlowRun) -> None:
        """Write down that a statement has run."""
        allowed, request_id = run.cursor.context.asked_by()
        self.write(
            STATEMENT,
            organization=run.organization,
            key_id=allowed.key_id or None,
            request_id=request_id,
            database_id=run.database,
            queryid=str(run.number),
            query=run.text,
            rows=run.rows,
            ms=round(run.seconds * MS, 3),
        )

    def _current(self) -> int:
        """The open file; one that was renamed or removed is made anew."""
        if self._path is None:
            return sys.stderr.fileno()
        assert self._file is not None
        try:
            there, mine = self._path.stat(), os.fstat(self._file)
            if (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino):
                return self._file
        except FileNotFoundError:
            pass
        before = self._file
        self._open(self._path)
        os.close(before)  # not earlier: where the new one cannot be opened, the number stays ours
        return self._file

    def _open(self, path: Path) -> int:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._file

    def __repr__(self) -> str:
        return f"the audit log {self._path or STDERR}"


def wanted_of(body: bytes) -> dict[str, Any]:
    """Return the fields of a request's body that may be shown."""
    try:
        found = msgspec.json.decode(body) if body else {}
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    if not isinstance(found, Mapping):
        return {}
    return {name: _shown(value) for name, value in found.items() if name in SHOWN}


def _shown(value: Any) -> Any:
    """Return a value without what could be a secret within it."""
    if isinstance(value, list):
        return [_shown(each) for each in value[:TEXT_LENGTH_MAX]]
    if isinstance(value, Mapping):
        return value if all(isinstance(each, int | None) for each in value.values()) else None
    return value[:TEXT_LENGTH_MAX] if isinstance(value, str) else value


def line_of(kind: str, fields: Mapping[str, Any]) -> bytes:
    """Return a line of a bounded length. What is left out is told: `"cut": true`."""
    line = {"time": datetime.now(UTC).isoformat(), "kind": kind}
    line |= {name: each for name, each in fields.items() if each is not None}
    data = _encoded(line)
    for most in CUTS:
        if len(data) <= LINE_BYTES_MAX:
            break
        data = _encoded({name: _cut(each, most) for name, each in line.items()} | {"cut": True})
    return data


def _encoded(line: Mapping[str, Any]) -> bytes:
    text = encode_json(line).decode("utf-8", "replace")
    return _ODD.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode() + b"\n"


def _cut(value: Any, most: int) -> Any:
    """Return a value with texts and lists that are no longer."""
    if isinstance(value, str):
        return value[: max(most, SHORT)]
    if isinstance(value, list):
        return [_cut(each, most) for each in value[:most]]
    if isinstance(value, Mapping):
        return {str(name)[:SHORT]: _cut(each, most) for name, each in [*value.items()][:most]}
    return value


def id_in(body: bytes) -> str | None:
    """Return the id of what an answer is about."""
    try:
        return _read_made(body).name if body else None
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
