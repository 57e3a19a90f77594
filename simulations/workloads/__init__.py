"""The workloads: each is set up, run by several clients at once, and checked.

A workload has an invariant that any isolation, atomicity or durability bug is likely to break, and
clients that check it while they work. Add one by writing a class and naming it here.
"""

from __future__ import annotations

from typing import Final

from simulations.workloads.bank import Bank
from simulations.workloads.blind_writes import BlindWrites
from simulations.workloads.definitions import Definitions
from simulations.workloads.exclusive_commits import ExclusiveCommits
from simulations.workloads.hot_key import HotKey
from simulations.workloads.list_append import ListAppend
from simulations.workloads.numbers import Numbers
from simulations.workloads.range_sums import RangeSums
from simulations.workloads.registers import Registers
from simulations.workloads.ring import Ring
from simulations.workloads.sql_bank import SqlBank
from simulations.workloads.sql_bounds import SqlBounds
from simulations.workloads.sql_bulk import SqlBulk
from simulations.workloads.sql_channels import SqlChannels
from simulations.workloads.sql_constraints import SqlConstraints
from simulations.workloads.sql_definitions import SqlDefinitions
from simulations.workloads.sql_feed import SqlFeed
from simulations.workloads.sql_guarded import SqlGuarded
from simulations.workloads.sql_history import SqlHistory
from simulations.workloads.sql_keys import SqlKeys
from simulations.workloads.sql_live import SqlLive
from simulations.workloads.sql_migrations import SqlMigrations
from simulations.workloads.sql_moves import SqlMoves
from simulations.workloads.sql_once import SqlOnce
from simulations.workloads.sql_open import SqlOpen
from simulations.workloads.sql_owners import SqlOwners
from simulations.workloads.sql_predicates import SqlPredicates
from simulations.workloads.sql_queue import SqlQueue
from simulations.workloads.sql_references import SqlReferences
from simulations.workloads.sql_sequences import SqlSequences
from simulations.workloads.sql_steps import SqlSteps
from simulations.workloads.sql_tokens import SqlTokens
from simulations.workloads.sql_trees import SqlTrees
from simulations.workloads.sql_upserts import SqlUpserts
from simulations.workloads.sql_wire import SqlWire
from simulations.workloads.unique_keys import UniqueKeys
from simulations.workloads.workload import Workload
from simulations.workloads.write_skew import WriteSkew

WORKLOADS: Final[dict[str, type[Workload]]] = {
    workload.name: workload
    for workload in (
        ListAppend,
        Bank,
        Ring,
        WriteSkew,
        UniqueKeys,
        RangeSums,
        HotKey,
        Registers,
        Numbers,
        Definitions,
        SqlBank,
        SqlKeys,
        SqlReferences,
        SqlPredicates,
        SqlQueue,
        SqlDefinitions,
        SqlConstraints,
        SqlSequences,
        SqlBounds,
        SqlUpserts,
        SqlMoves,
        SqlMigrations,
        SqlOnce,
        SqlOwners,
        BlindWrites,
        ExclusiveCommits,
        SqlLive,
        SqlOpen,
        SqlHistory,
        SqlFeed,
        SqlBulk,
        SqlSteps,
        SqlGuarded,
        SqlTokens,
        SqlWire,
        SqlChannels,
        SqlTrees,
    )
}

__all__ = ["WORKLOADS", "Workload"]
