"""Planted bugs: small mutations of the engine, to see whether the simulation would notice.

A simulation that finds nothing proves something only if it would have found a bug. Each mutant
replaces one function of the product for the time of a run, from outside: the product knows nothing
of it. `hunt` runs seeds of the workloads that the mutant concerns until one fails. Each module has
the mutations of one part of the product, and describes them in its MUTANTS.
"""

from typing import Final

from simulations.mutants import (
    answers,
    bases,
    begun,
    bounds,
    bulk,
    checkpoints,
    failing_work,
    feeds,
    followers,
    footprints,
    guarded,
    leases,
    live,
    logged,
    named,
    nodes,
    numbers,
    once,
    open_transactions,
    pages,
    past,
    places,
    ranges,
    recovered,
    replicated,
    shards,
    sql,
    sql_changes,
    steps,
    tokens,
    trees,
    warm,
    wire,
)
from simulations.mutants.mutant import (
    Catch,
    Mutant,
    catch_of,
    hunt,
    keep_catches,
    known_catches,
    planted,
    shortest,
)

__all__ = [
    "MUTANTS",
    "Mutant",
    "Catch",
    "hunt",
    "shortest",
    "catch_of",
    "keep_catches",
    "known_catches",
    "planted",
]

MUTANTS: Final = (
    *shards.MUTANTS,
    *ranges.MUTANTS,
    *footprints.MUTANTS,
    *logged.MUTANTS,
    *numbers.MUTANTS,
    *checkpoints.MUTANTS,
    *sql.MUTANTS,
    *begun.MUTANTS,
    *trees.MUTANTS,
    *recovered.MUTANTS,
    *bounds.MUTANTS,
    *failing_work.MUTANTS,
    *sql_changes.MUTANTS,
    *places.MUTANTS,
    *pages.MUTANTS,
    *past.MUTANTS,
    *answers.MUTANTS,
    *once.MUTANTS,
    *bulk.MUTANTS,
    *live.MUTANTS,
    *feeds.MUTANTS,
    *open_transactions.MUTANTS,
    *named.MUTANTS,
    *steps.MUTANTS,
    *guarded.MUTANTS,
    *leases.MUTANTS,
    *followers.MUTANTS,
    *tokens.MUTANTS,
    *replicated.MUTANTS,
    *bases.MUTANTS,
    *warm.MUTANTS,
    *wire.MUTANTS,
    *nodes.MUTANTS,
)
