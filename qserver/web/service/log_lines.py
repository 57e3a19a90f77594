"""The server's log: lines of text, or with QSERVER_LOG_FORMAT=json one JSON object a line.

    {"time": "2026-01-31T12:00:00.000000Z", "level": "warning", "message": "…", …}

`message` says what a line of text would say. Records of some kinds have fields beside it, by which
programs find them; `kind` names these.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from qserver.web.statements.json_values import encode_json

FIELDS: Final = "qserver_fields"
"""The attribute of a record that holds its fields."""
TEXT_FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, FIELDS, {})
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "message": fields.get("kind") or record.getMessage(),
            **fields,
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return encode_json(line).decode("utf-8", "replace")


def begin_log(log_format: str) -> None:
    """Let all of the program's log go to standard error, in the format that is wanted."""
    handler = logging.StreamHandler()
    formatter = JsonFormatter() if log_format == "json" else logging.Formatter(TEXT_FORMAT)
    handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], level=logging.INFO)


def access_writer(log_format: str) -> Callable[[str], None]:
    """Return what writes lines of the access log to standard output."""

    def as_json(line: str) -> None:
        now = datetime.now(UTC).isoformat()
        fields = {"time": now, "level": "info", "kind": "access", "message": line}
        write_line(encode_json(fields).decode())

    return as_json if log_format == "json" else write_line


def write_welcome(text: str, log_format: str) -> None:
    """Write what the server says when it has started, which may show the first key."""
    if log_format == "json":
        now = datetime.now(UTC).isoformat()
        fields = {"time": now, "level": "info", "kind": "start", "message": text.strip()}
        text = encode_json(fields).decode() + "\n"
    sys.stderr.write(text)
    sys.stderr.flush()


def write_line(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
