"""Blind writes: several registers at once without a read, narrow ones beside wide ones.

    wide     a few registers on several shards: undecided until all of them have voted
    narrow   one register, decided where it lies
    mixed    blind ones and one that was read, so that a shard may refuse the whole

A shard that has accepted a narrow write knows its place before that of an undecided one. The log
has them in the order of their round, so the two must never write the same register: after recovery
the registers must hold what readers saw before it. Versions show that (`checkers/registers.py`).
"""

from __future__ import annotations

from qserver.storage.transaction import Transaction
from simulations.history import Write
from simulations.service import Service
from simulations.workloads.registers import RegisterWorkload, as_gets, everything
from simulations.workloads.workload import Body


class BlindWrites(RegisterWorkload):
    name = "blind_writes"
    registers = 5

    async def transaction(self, service: Service, number: int) -> None:
        if self.chance.random() < 0.35:
            await self.look(service, everything, seen=as_gets)
            return
        width = self.chance.choice((1, 1, 1, 2, 3, self.registers))
        keys = self.chance.sample(range(self.registers), width)
        mixed = self.chance.randrange(self.registers) if self.chance.random() < 0.25 else None
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
