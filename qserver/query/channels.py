"""LISTEN, NOTIFY, UNLISTEN: there are no channels, and so nothing to stop listening to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qserver.errors import FeatureNotSupported
from qserver.query.cursor import Cursor, rows_at_once
from qserver.query.statement_port import StatementPort
from qserver.sql import ast

_HINT = "Changes of tables are told by GET /v1/changes, and by live queries."


def listen(run: StatementPort, node: ast.Listen, literals: Sequence[Any]) -> Cursor:
    if not node.ends:
        raise FeatureNotSupported("LISTEN is not supported", hint=_HINT)
    return Cursor(rows_at_once([]), run.context)


def notify(run: StatementPort, node: ast.Notify, literals: Sequence[Any]) -> Cursor:
    raise FeatureNotSupported("NOTIFY is not supported", hint=_HINT)
