"""Checks that a request inside an open transaction is for its database and its version."""

from __future__ import annotations

from qserver.control.access import not_among_its_databases
from qserver.control.open_transactions import Held
from qserver.control.records import Grant
from qserver.errors import InvalidRequest


def named_transaction(header: bytes | None, by_field: str | None) -> str:
    """The open transaction that a request names, by X-Transaction or in its body."""
    by_header = None if header is None else header.decode("latin-1")
    name = by_header if by_field is None else by_field
    assert name is not None, "it is part of one"
    if by_header is not None and by_header != name:
        raise InvalidRequest(
            "X-Transaction and the field transaction name two transactions",
            hint="Send one of them.",
        )
    return name


def check_place(held: Held, grant: Grant, *named: str | None) -> None:
    """Raise if the request names another database, or if the key may no longer use this one."""
    opened = held.opened
    for each in named:
        if each is not None and each not in (opened.name, opened.id):
            raise InvalidRequest(
                f"the transaction is open on the database {opened.name!r}, not on {each!r}",
                hint="Leave the database out: the transaction has one.",
            )
    if not grant.may_use(opened.id):
        raise not_among_its_databases(opened.name)


def check_version(held: Held, least: int) -> None:
    """Raise if the request wants a later version than the transaction reads, now and for ever."""
    version = held.transaction.version
    if version < least:
        raise InvalidRequest(
            f"the transaction reads version {version}, and min_version is {least}",
            hint="Open another one.",
        )
