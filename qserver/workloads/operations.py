"""What clients of a benchmark do, in process or over HTTP: operations on two tables, without end.

point       one account by its key
insert      one new entry
update      one account by its key, any of many
transfer    two accounts in one transaction; the sum of all is kept
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from random import Random
from typing import Any, Final, NamedTuple

BALANCE: Final = 1000
"""What is in each account at first."""
AMOUNT_MAX: Final = 10


class Operation(NamedTuple):
    """One statement, or several as a transaction, each with its parameters.

    Once it is acknowledged there are `inserted` more entries, and the balances add up to `added`
    more. A query has `found`: each row of its answer begins with these values.
    """

    statements: tuple[tuple[str, list[int]], ...]
    inserted: int = 0
    added: int = 0
    found: tuple[tuple[Any, ...], ...] | None = None


class Tables:
    """The tables of one run: accounts, numbered from 0, and entries, which are empty at first.

    `fresh` numbers new entries: all clients share it, so each number is inserted once.
    """

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self.accounts, self.entries = f"{name}_accounts", f"{name}_entries"
        self.fresh = count(1)

    def set_up(self) -> tuple[str, str, str]:
        """The statements that create and fill them."""
        return (
            f"CREATE TABLE {self.accounts}"
            " (id integer PRIMARY KEY, owner text NOT NULL, balance integer NOT NULL)",
            f"CREATE TABLE {self.entries} (id integer PRIMARY KEY, note text)",
            f"INSERT INTO {self.accounts} SELECT i, 'owner ' || i, {BALANCE}"
            f" FROM generate_series(0, {self.size - 1}) AS s (i)",
        )

    def any_account(self, chance: Random) -> int:
        return int(chance.random() * self.size)  # three times as fast as randrange


Operations = Callable[[Tables, Random], Iterator[Operation]]
"""What one client does."""


def point(tables: Tables, chance: Random) -> Iterator[Operation]:
    sql = f"SELECT id, owner, balance FROM {tables.accounts} WHERE id = ?"
    while True:
        account = tables.any_account(chance)
        yield Operation(((sql, [account]),), found=((account,),))


def insert(tables: Tables, chance: Random) -> Iterator[Operation]:
    sql = f"INSERT INTO {tables.entries} VALUES (?, 'entry')"
    for number in tables.fresh:
        yield Operation(((sql, [number]),), inserted=1)


def update(tables: Tables, chance: Random) -> Iterator[Operation]:
    sql = f"UPDATE {tables.accounts} SET balance = balance + ? WHERE id = ?"
    while True:
        amount = _any_amount(chance)
        yield Operation(((sql, [amount, tables.any_account(chance)]),), added=amount)


def transfer(tables: Tables, chance: Random) -> Iterator[Operation]:
    take, give = (
        f"UPDATE {tables.accounts} SET balance = balance {sign} ? WHERE id = ?" for sign in "-+"
    )
    while True:
        amount, giver = _any_amount(chance), tables.any_account(chance)
        taker = (giver + 1 + int(chance.random() * (tables.size - 1))) % tables.size
        yield Operation(((take, [amount, giver]), (give, [amount, taker])))


def _any_amount(chance: Random) -> int:
    return 1 + int(chance.random() * AMOUNT_MAX)
