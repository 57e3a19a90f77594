"""A real process, killed at any moment: what it had acknowledged is there, and nothing in part.

The process moves 1 from one of a hundred accounts to another, again and again and eight at once,
with checkpoints all the time, and prints each transfer's number once it is acknowledged. Then it is
killed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from qserver.durability.check import check
from qserver.durability.recovery import recover
from qserver.durability.sqlite import open_log

KILLS = 6

PROGRAM = """
import sys, time
from functools import partial
from pathlib import Path
from random import Random
import trio
from qserver.durability.sqlite import open_log
from qserver.engine.checkpointer import CheckpointPolicy
from qserver.engine.database import Database
from qserver.engine.world import OrdinaryWorld
from qserver.values.schema import Column, define_table
from qserver.values.types import INTEGER
from tests.values.making import define_index

def create(transaction):
    if transaction.find_definition("accounts") is None:
        columns = [Column("id", INTEGER), Column("balance", INTEGER)]
        accounts = define_table(transaction.next_tree(), "accounts", columns, ["id"])
        index = define_index(transaction.next_tree(), "by_balance", accounts, ["balance"], False)
        transaction.define("accounts", accounts.with_index(index))
        columns = [Column("id", INTEGER)]
        transfers = define_table(transaction.next_tree(), "transfers", columns, ["id"])
        transaction.define("transfers", transfers)
        for number in range(100):
            transaction.put(transaction.table("accounts"), (number, 100))

def move(one, other, number, transaction):
    accounts = transaction.table("accounts")
    for account, amount in ((one, -1), (other, 1)):
        row = transaction.get(accounts, (account,))
        transaction.put(accounts, (account, row[1] + amount))
    transaction.put(transaction.table("transfers"), (number,))

async def client(database, seed):
    chance = Random(seed)
    for number in range(seed, 10**9, 8):
        one, other = chance.sample(range(100), 2)
        await database.transact(partial(move, one, other, number))
        print(number, flush=True)

async def main(path, first):
    log = await open_log(path)
    report = lambda text, error: print(text, repr(error), file=sys.stderr)
    world = OrdinaryWorld(time.time, Random(0), report)
    database = Database(log, world, policy=CheckpointPolicy(log_bytes=4000, pages_at_once=2))
    async with trio.open_nursery() as nursery:
        await nursery.start(database.run)
        await database.transact(create)
        for number in range(8):
            nursery.start_soon(client, database, first + number)

trio.run(main, Path(sys.argv[1]), int(sys.argv[2]))
"""


def run_and_kill(path: Path, first: int, after: int) -> set[int]:
    """The numbers that were acknowledged before the process was killed."""
    acknowledged = set()
    command = [sys.executable, "-c", PROGRAM, str(path), str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            acknowledged.add(int(line))
            if len(acknowledged) == after:
                process.kill()
    return acknowledged


@pytest.mark.long
async def test_what_a_killed_process_had_acknowledged_is_there_and_nothing_in_part(
    tmp_path: Path,
) -> None:
    path, chance = tmp_path / "data", Random(1)
    acknowledged: set[int] = set()
    checkpoints = set()
    for kill in range(KILLS):
        acknowledged |= run_and_kill(path, kill * 1_000_000, chance.randrange(1, 400))
        async with await open_log(path) as log:
            report = await check(log, log)
            snapshot = (await recover(log, 1)).snapshot
            accounts, transfers = (
                snapshot.catalog.tables["accounts"],
                snapshot.catalog.tables["transfers"],
            )
            there = {key[0] for keys, _ in snapshot.pages(transfers.id) for key in keys}
            balances = [row[1] for _, rows in snapshot.pages(accounts.id) for row in rows]
        assert report.problems == ()
        checkpoints.add(report.checkpoint)
        assert acknowledged <= there
        assert len(there - acknowledged) <= 8 * (kill + 1), "at most those that were under way"
        assert (len(balances), sum(balances)) == (100, 100 * 100)
    assert len(checkpoints) > 2, "some were saved on the way"
