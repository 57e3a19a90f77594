"""Where the rows of a catalog's table come from, and how a look-up finds the few that it wants.

    a definition has rows       a table has one in pg_class for itself and one for each index
    PostgreSQL has rows         recorded, see `data`
    a few stand for the server  its only role, database and namespaces

A `Source` says which rows a definition has, as maps from columns to values; columns that are left
out are 0, false, empty or NULL. For a column in `looked_up_by` it also says which definitions can
have rows with a value, so that a look-up costs what it finds and not the catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from qserver.query.catalog import rows_of_relations as relations
from qserver.query.catalog import rows_of_server as server
from qserver.query.catalog import rows_of_sessions as sessions
from qserver.query.catalog import rows_of_types as types
from qserver.query.catalog.world import World
from qserver.values.relations import Definition

MakeRows = Callable[[World, Definition], Iterable[Mapping[str, Any]]]
LookUp = Callable[[World, Any], Iterable[Definition]]


@dataclass(frozen=True, slots=True)
class Source:
    """`rows`: those of a definition. `fixed`: those that depend on none."""

    rows: MakeRows | None = None
    looked_up_by: Mapping[str, LookUp] = field(default_factory=dict)
    fixed: Callable[[World], Iterable[Mapping[str, Any]]] | None = None
    everything: Callable[[World], Iterable[Definition]] = World.definitions
    """The definitions that can have rows, where no look-up narrows them."""
    guess: int = 100
    """About how many rows a database has: what the optimizer reckons with, whatever it has."""

    def made(self, world: World, known: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield the rows that are not recorded; of those that a look-up cannot want, not all."""
        if self.fixed is not None:
            yield from self.fixed(world)
        if self.rows is not None:
            for definition in self._definitions(world, known):
                yield from self.rows(world, definition)

    def _definitions(self, world: World, known: Mapping[str, Any]) -> Iterator[Definition]:
        """Yield the definitions that can have rows with these values."""
        for column, look_up in self.looked_up_by.items():
            if column in known:
                yield from look_up(world, known[column])
                return
        yield from self.everything(world)


def _none(world: World, value: Any) -> Iterable[Definition]:
    return ()


_BY_OID: Final[LookUp] = World.with_oid
_RECORDED: Final = Source(looked_up_by={"oid": _none})

SOURCES: Final[Mapping[str, Source]] = {
    "pg_class": Source(
        relations.classes, {"oid": _BY_OID, "relname": World.with_name}, guess=20_000
    ),
    "pg_attribute": Source(relations.attributes, {"attrelid": _BY_OID}, guess=100_000),
    "pg_attrdef": Source(relations.defaults, {"adrelid": _BY_OID}, guess=20_000),
    "pg_constraint": Source(
        relations.constraints,
        {"oid": World.with_constraint, "conrelid": _BY_OID, "conname": World.with_part},
        guess=20_000,
    ),
    "pg_index": Source(
        relations.indexes, {"indexrelid": _BY_OID, "indrelid": _BY_OID}, guess=20_000
    ),
    "pg_sequence": Source(relations.sequences, {"seqrelid": _BY_OID}, guess=1_000),
    "pg_rewrite": Source(relations.rules, {"ev_class": _BY_OID}, guess=10_000),
    "pg_description": Source(relations.comments, {"objoid": World.with_any_oid}, guess=20_000),
    "pg_depend": Source(relations.dependencies, {"objid": World.with_any_oid}, guess=10_000_000),
    "pg_type": Source(
        types.types, {"oid": World.with_type, "typname": World.with_type_name}, guess=20_000
    ),
    "pg_enum": Source(types.labels, {"enumtypid": World.with_type}, guess=10_000),
    "pg_namespace": Source(
        server.schemas,
        {"oid": _BY_OID, "nspname": World.with_schema},
        server.own_schemas,
        World.schemas,
    ),
    "pg_authid": Source(fixed=server.roles, guess=1),
    "pg_database": Source(fixed=server.databases, guess=1),
    "pg_settings": Source(fixed=server.settings, guess=20),
    "pg_prepared_statements": Source(fixed=sessions.prepared_statements, guess=20),
    "pg_cursors": Source(fixed=sessions.cursors, guess=5),
    "pg_proc": Source(looked_up_by={"oid": _none, "proname": _none}, guess=3_000),
    "pg_operator": Source(looked_up_by={"oid": _none, "oprname": _none}, guess=800),
    "pg_opclass": _RECORDED,
    "pg_opfamily": _RECORDED,
    "pg_collation": _RECORDED,
    "pg_am": Source(looked_up_by={"oid": _none}, guess=7),
    "pg_language": Source(looked_up_by={"oid": _none}, guess=4),
    "pg_cast": Source(looked_up_by={"oid": _none, "castsource": _none}, guess=200),
    "pg_aggregate": Source(looked_up_by={"aggfnoid": _none}, guess=150),
}
NO_ROWS: Final = Source(guess=1)


def source_of(name: str) -> Source:
    return SOURCES.get(name, NO_ROWS)
