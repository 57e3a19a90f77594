"""Blind writes: some registers at once, nothing read before, narrow ones beside wide ones.

    wide     a few registers on several shards: undecided until all of them have voted
    narrow   one register, decided where it lies
    mixed    blind ones and one that was read, so that a shard may refuse the whole

A shard that has accepted a narrow write knows its place before that of an undecided one. The log
has them in the order of their round, so the two must never write the same register: what remains
after recovery must be what readers saw before it. Versions tell (`checkers/registers.py`).
"""

from __future__ import annotations

from typing import Final

from qserver.storage.transaction import Transaction
from simulations.checkers.registers import check_versions
from simulations.history import Get, Operation, Write
from simulations.service import Service
from simulations.workloads.workload import Body, Workload, create_table

KEYS: Final = 5


class BlindWrites(Workload):
    name = "blind_writes"

    async def setup(self, service: Service) -> None:
        def work(transaction: Transaction) -> None:
            registers = create_table(transaction, "registers", "id", "value")
            for key in range(KEYS):
                transaction.put(registers, (key, 0))

        intended = tuple(Write(key, 0) for key in range(KEYS))
        await service.transact(work, intended, lambda _: intended)

    async def transaction(self, service: Service, number: int) -> None:
        if self.chance.random() < 0.35:
            await self.look(service, everything, seen=as_gets)
            return
        keys = self.chance.sample(range(KEYS), self.chance.choice((1, 1, 1, 2, 3, KEYS)))
        mixed = self.chance.randrange(KEYS) if self.chance.random() < 0.25 else None
        long = self.is_long()

        def work(transaction: Transaction) -> Body:
            registers = transaction.table("registers")
            if mixed is not None:
                transaction.get(registers, (mixed,))
            if long:
                yield
            for key in keys:
                transaction.put(registers, (key, number))

        intended = tuple(Write(key, number) for key in keys)
        await self.attempt(service, work, number, intended=intended, seen=lambda _: intended)

    async def check(self, service: Service) -> None:
        await service.read(everything, as_gets)
        self.problems += map(str, check_versions(service.history.attempts))


def everything(transaction: Transaction) -> tuple[int, ...]:
    return tuple(value for _, value in transaction.rows(transaction.table("registers")))


def as_gets(values: tuple[int, ...]) -> tuple[Operation, ...]:
    return tuple(Get(key, value) for key, value in enumerate(values))
