"""Registers: blind writes to several keys at once, which readers must see whole.

Nothing is read before it is written, so nothing is validated; only the order of commits holds the
keys together. All registers always hold the same value, and what readers see must agree with the
version in their answer.
"""

from __future__ import annotations

from typing import ClassVar

from qserver.storage.transaction import Transaction
from simulations.checkers.registers import check_versions
from simulations.history import Get, Operation, Write
from simulations.service import Service
from simulations.workloads.workload import Workload, create_table


class RegisterWorkload(Workload):
    """Some registers, all 0 at first. What is seen of them must agree with its version."""

    registers: ClassVar[int]

    async def setup(self, service: Service) -> None:
        def work(transaction: Transaction) -> None:
            registers = create_table(transaction, "registers", "id", "value")
            for key in range(self.registers):
                transaction.put(registers, (key, 0))

        intended = tuple(Write(key, 0) for key in range(self.registers))
        await service.transact(work, intended, lambda _: intended)

    async def check(self, service: Service) -> None:
        self.judge((await service.read(everything, as_gets)).result)
        self.problems += map(str, check_versions(service.history.attempts))

    def judge(self, values: tuple[int, ...]) -> None:
        """Add what is wrong with all values of one snapshot to `problems`."""


class Registers(RegisterWorkload):
    name = "registers"
    registers = 4

    async def transaction(self, service: Service, number: int) -> None:
        if self.chance.random() < 0.4:
            values = await self.look(service, everything, seen=as_gets)
            if values is not None:
                self.judge(values)
            return

        def work(transaction: Transaction) -> None:
            registers = transaction.table("registers")
            for key in range(self.registers):
                transaction.put(registers, (key, number))

        intended = tuple(Write(key, number) for key in range(self.registers))
        await self.attempt(service, work, intended=intended, seen=lambda _: intended)

    def judge(self, values: tuple[int, ...]) -> None:
        self.expect(len(set(values)) == 1, f"the registers differ: {values}")


def everything(transaction: Transaction) -> tuple[int, ...]:
    return tuple(value for _, value in transaction.rows(transaction.table("registers")))


def as_gets(values: tuple[int, ...]) -> tuple[Operation, ...]:
    return tuple(Get(key, value) for key, value in enumerate(values))
