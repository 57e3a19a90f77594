"""Statements about the session: SHOW, SET, RESET, SET TRANSACTION.

They need no plan. A request without a session gets one when the first of them wants to change it
(`NeedsSession`); SHOW never does.
"""

from __future__ import annotations

from typing import Final

from qserver.errors import ActiveTransaction, SqlSyntaxError
from qserver.query.session import Session
from qserver.query.settings.effects import named
from qserver.query.settings.reading import shown_value
from qserver.query.settings.values import DEFAULTS, is_list, written_list
from qserver.sql import Rows, ast

_LEVELS: Final = ("serializable", "repeatable read", "read committed", "read uncommitted")


def columns_of_show(node: ast.Show) -> tuple[str, ...]:
    if node.name == "all":
        return "name", "setting", "description"
    setting = named(node.name)
    return (node.name if setting is None else setting.name,)


def show(session: Session | None, node: ast.Show) -> tuple[tuple[str, ...], Rows]:
    """Return the columns and rows of SHOW."""
    settings = DEFAULTS if session is None else session.settings
    if node.name == "all":
        rows = [
            (each.name, shown_value(each, value), each.description)
            for each, value in settings.listed()
        ]
        return columns_of_show(node), rows
    return columns_of_show(node), [(settings.shown(node.name),)]


def set_variable(session: Session, node: ast.SetVariable) -> None:
    if node.name == "all" and node.values is None:
        session.reset_all()
        return
    values = node.values
    if values is not None and is_list(node.name):
        values = tuple(written_list(values))
    session.set(node.name, values, node.local)


def set_transaction(session: Session, node: ast.TransactionControl, opened_read_only: bool) -> None:
    """SET TRANSACTION, and SET SESSION CHARACTERISTICS AS TRANSACTION: of this one, or of all."""
    words = list(node.words)
    prefix = "transaction_"
    if words[:1] == ["session"]:
        prefix, words = "default_transaction_", words[4:]
    else:
        words = words[1:]
    if words[:1] == ["snapshot"]:
        raise ActiveTransaction("a transaction reads the snapshot with which it was opened")
    for name, value in _modes(node, words):
        if name == "read_only" and value == "off" and opened_read_only and len(prefix) < 13:
            raise ActiveTransaction(
                "cannot set transaction read-write mode inside a read-only transaction"
            )
        session.set(prefix + name, [value])


def modes_of_begin(node: ast.TransactionControl) -> list[tuple[str, str]]:
    """Return the settings that the modes of BEGIN, or START TRANSACTION, stand for."""
    words = list(node.words)
    if words[:1] in (["work"], ["transaction"]):
        del words[0]
    modes = _modes(node, words)
    return [(f"transaction_{name}", value) for name, value in modes if name != "read_only"]


def _modes(node: ast.TransactionControl, words: list[str]) -> list[tuple[str, str]]:
    """Return the settings that the modes of a transaction stand for, without their prefix."""
    modes: list[tuple[str, str]] = []
    while words:
        for phrase, mode in _MODES.items():
            if words[: len(phrase)] == list(phrase):
                modes.append(mode)
                del words[: len(phrase)]
                break
        else:
            raise SqlSyntaxError(
                f'syntax error at or near "{words[0]}"', position=node.position + 1
            )
    return modes


_MODES: Final = {
    **{("isolation", "level", *each.split()): ("isolation", each) for each in _LEVELS},
    ("read", "only"): ("read_only", "on"),
    ("read", "write"): ("read_only", "off"),
    ("deferrable",): ("deferrable", "on"),
    ("not", "deferrable"): ("deferrable", "off"),
}
