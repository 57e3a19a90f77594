"""Statements that control a transaction: what BEGIN, ROLLBACK TO and the like ask for."""

from __future__ import annotations

from typing import Literal

from qserver.errors import FeatureNotSupported, SqlSyntaxError
from qserver.sql import ast


class NeedsSavepoints(Exception):  # for the caller of the body, not for users
    """A statement is about a savepoint, and the transaction that runs it can have none."""


def command_of(
    node: ast.TransactionControl,
) -> tuple[Literal["savepoint", "release", "rollback"] | None, str | None]:
    """Return what a statement asks of an open transaction, and the savepoint that it names.

    A rollback without a name is of the whole. None: nothing that an open transaction does.
    """
    words = list(node.words)
    if node.kind == "savepoint":
        return "savepoint", _only(node, words)
    if node.kind == "release":
        if len(words) > 1 and words[0] == "savepoint":
            del words[0]
        return "release", _only(node, words)
    if node.kind not in ("rollback", "abort"):
        return None, None
    if words[:1] in (["work"], ["transaction"]):
        del words[0]
    if not words or words == ["and", "no", "chain"]:
        return "rollback", None
    if words[0] != "to":
        raise FeatureNotSupported(
            f"{node.kind.upper()} AND CHAIN is not supported", position=node.position + 1
        )
    del words[0]
    if len(words) > 1 and words[0] == "savepoint":
        del words[0]
    return "rollback", _only(node, words)


def _only(node: ast.TransactionControl, words: list[str]) -> str:
    if len(words) != 1:
        raise SqlSyntaxError(
            f"{node.kind.upper()} needs the name of one savepoint", position=node.position + 1
        )
    return words[0]
