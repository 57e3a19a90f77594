"""Checks that a request inside an open transaction means the transaction's database."""

from __future__ import annotations

from qserver.control.access import not_among_its_databases
from qserver.control.open_transactions import Held
from qserver.control.records import Grant
from qserver.errors import InvalidRequest


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
