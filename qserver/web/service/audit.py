"""The audit log: who changed what, when and from where; and, if wanted, who ran which statement.

    {"time": "…", "kind": "control", "action": "POST /v1/keys", "status": 201, "outcome": "done",
     "organization": "org_…", "key_id": "key_…", "address": "10.0.0.7", "request_id": "…",
     "wanted": {"name": "ci", "scopes": ["data:read"]}, "id": "key_…"}

Each request to a route of the control plane that may change something leaves exactly one line, also
if it is refused to a key that is good. A line is written after the change is durable and before its
answer leaves, by one `write` to a file that is only appended to; so several processes share it, and
no line is torn.

Secrets are not written: of a body only the fields of `SHOWN` are, of an answer only the id.

While lines cannot be written, further changes are refused (`check`): a change without a line would
be worse. A file that was renamed, as logrotate does, is opened anew.
"""

from __future__ import annotations

import logging
import os
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
        if self._trouble is None:
            return
        if not self.write("audit", action="go on after lines were lost", lost=self._lost):
            self._lost -= 1  # this line is no change
            raise DatabaseUnavailable(
                f"the audit log cannot be written ({self._trouble}), so nothing may be changed",
                hint="Its operator has to make room, or let the server write it.",
            )
        self._lost, self._trouble = 0, None

    def write(self, kind: str, **fields: Any) -> bool:
        """Append a line; return whether that was possible."""
        line = {"time": datetime.now(UTC).isoformat(), "kind": kind, **fields}
        data = encode_json({name: each for name, each in line.items() if each is not None}) + b"\n"
        try:
            written = os.write(self._current(), data)
            if written < len(data):
                raise OSError(0, "a line was cut")
        except OSError as error:
            logger.error("the audit log lost a line: %s", error.strerror)  # noqa: TRY400
            self._trouble = str(error.strerror)
            self._lost += 1
            return False
        return True

    def write_run(self, run: SlowRun) -> None:
        """Write down that a statement has run."""
        allowed, request_id = run.cursor.context.asked_by()
        self.write(
            "statement",
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
        os.close(self._file)
        return self._open(self._path)

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
    return {name: _cut(value) for name, value in found.items() if name in SHOWN}


def _cut(value: Any) -> Any:
    """Return a value as it is, if it is short and plain."""
    if isinstance(value, str):
        return value[:TEXT_LENGTH_MAX]
    if isinstance(value, list):
        return [_cut(each) for each in value[:TEXT_LENGTH_MAX]]
    if isinstance(value, Mapping):
        return (
            {str(name)[:TEXT_LENGTH_MAX]: each for name, each in value.items()}
            if all(isinstance(each, int | None) for each in value.values())
            else None
        )
    return value


def id_in(body: bytes) -> str | None:
    """Return the id of what an answer is about."""
    try:
        return _read_made(body).name if body else None
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
