"""Where the rows of a catalog's table come from, and how a look-up finds the few that it wants.

    a definition has rows       a table has one in pg_class for itself and one for each index
    PostgreSQL has rows         recorded, see `data`
    a few stand for the server  its only role, database and namespaces

A `Source` says which rows a definition has, as maps from columns to values; columns that are left
out are 0, false, empty or NULL. For a column in `looked_up_by` it also says which definitions can
have rows with a value, so that a look-up costs what it finds and not the catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from qserver.query.catalog import roles
from qserver.query.catalog import rows_of_activity as activity
from qserver.query.catalog import rows_of_relations as relations
from qserver.query.catalog import rows_of_server as server
from qserver.query.catalog import rows_of_sessions as sessions
from qserver.query.catalog import rows_of_types as types
from qserver.query.catalog.world import World
from qserver.values.relations import Definition

MakeRows = Callable[[World, Definition], Iterable[Mapping[str, Any]]]
MakeFixedRows = Callable[[World], Iterable[Mapping[str, Any]]]
LookUp = Callable[[World, Any], Iterable[Definition]]


@dataclass(frozen=True, slots=True)
class Source:
    """`rows`: those of a definition. `fixed`: those that depend on none."""

    rows: MakeRows | None = None
    looked_up_by: Mapping[str, LookUp] = field(default_factory=dict)
    fixed: MakeFixedRows | None = None
    everything: Callable[[World], Iterable[Definition]] = World.definitions
    """The definitions that can have rows, where no look-up narrows them."""
    often_zero: frozenset[str] = frozenset()
    """Columns that are 0 in the rows of most definitions: then they narrow nothing."""
    guess: int = 100
    """About how many rows a database has: what the optimizer reckons with, whatever it has."""

    def looked_up(self, known: Mapping[str, Any]) -> str | None:
        """Return the column whose value narrows the definitions, if one does."""
        for column in self.looked_up_by:
            if column in known and (known[column] or column not in self.often_zero):
                return column
        return None

    def definitions(self, world: World, known: Mapping[str, Any]) -> Iterable[Definition]:
        """Return the definitions that can have rows with these values."""
        if self.rows is None:
            return ()
        column = self.looked_up(known)
        if column is None:
            return self.everything(world)
        return self.looked_up_by[column](world, known[column])


def _none(world: World, value: Any) -> Iterable[Definition]:
    return ()


def _recorded(*columns: str, guess: int) -> Source:
    """Return the source of a table whose rows are all PostgreSQL's own."""
    return Source(looked_up_by=dict.fromkeys(columns, _none), guess=guess)


_BY_OID: Final[LookUp] = World.with_oid

SOURCES: Final[Mapping[str, Source]] = {
    "pg_class": Source(
        relations.classes,
        {
            **dict.fromkeys(("oid", "reltype", "relfilenode"), _BY_OID),
            "relname": World.with_name,
            "relnamespace": World.in_schema,
        },
        often_zero=frozenset({"reltype", "relfilenode"}),
        guess=20_000,
    ),
    "pg_attribute": Source(relations.attributes, {"attrelid": _BY_OID}, guess=100_000),
    "pg_attrdef": Source(relations.defaults, {"oid": _BY_OID, "adrelid": _BY_OID}, guess=20_000),
    "pg_constraint": Source(
        relations.constraints,
        {
            "oid": World.with_constraint,
            "conrelid": _BY_OID,
            "confrelid": World.referring_to,
            "conindid": World.referring_to,
            "conname": World.with_part,
            "connamespace": World.in_schema,
            "contypid": _none,
        },
        often_zero=frozenset({"confrelid", "conindid", "contypid"}),
        guess=20_000,
    ),
    "pg_index": Source(
        relations.indexes, {"indexrelid": _BY_OID, "indrelid": _BY_OID}, guess=20_000
    ),
    "pg_sequence": Source(relations.sequences, {"seqrelid": _BY_OID}, guess=1_000),
    "pg_rewrite": Source(
        relations.rules, {"oid": World.with_rule, "ev_class": _BY_OID}, guess=10_000
    ),
    "pg_description": Source(relations.comments, {"objoid": _BY_OID}, guess=20_000),
    "pg_depend": Source(
        relations.dependencies,
        {"objid": World.with_any_oid, "refobjid": World.referring_to},
        guess=10_000_000,
    ),
    "pg_type": Source(
        types.types,
        {
            **dict.fromkeys(("oid", "typrelid", "typelem", "typarray"), World.with_type),
            "typname": World.with_type_name,
            "typnamespace": World.in_schema,
        },
        often_zero=frozenset({"typrelid", "typelem", "typarray"}),
        guess=20_000,
    ),
    "pg_enum": Source(types.labels, {"oid": _BY_OID, "enumtypid": World.with_type}, guess=10_000),
    "pg_namespace": Source(
        server.schemas,
        {"oid": _BY_OID, "nspname": World.with_schema},
        fixed=server.own_schemas,
        everything=World.schemas,
    ),
    "pg_authid": Source(fixed=roles.roles, guess=13),
    "pg_auth_members": Source(fixed=roles.memberships, guess=3),
    "pg_shdescription": Source(
        server.shared_comments, {"objoid": World.with_shared}, everything=World.shared, guess=2
    ),
    "pg_database": Source(fixed=server.databases, guess=1),
    "pg_settings": Source(fixed=server.settings, guess=20),
    "pg_prepared_statements": Source(fixed=sessions.prepared_statements, guess=20),
    "pg_cursors": Source(fixed=sessions.cursors, guess=5),
    "pg_extension": Source(
        server.extensions, {"oid": _BY_OID}, fixed=server.own_extensions, guess=3
    ),
    "pg_available_extensions": Source(fixed=server.available_extensions, guess=3),
    "pg_available_extension_versions": Source(fixed=server.available_versions, guess=3),
    "pg_timezone_names": Source(fixed=server.zones, guess=600),
    "pg_timezone_abbrevs": Source(fixed=server.zone_abbreviations, guess=200),
    "pg_stat_activity": Source(fixed=activity.activity, guess=20),
    "pg_stat_ssl": Source(fixed=activity.encryption, guess=20),
    "pg_stat_gssapi": Source(fixed=activity.kerberos, guess=20),
    "pg_locks": Source(fixed=activity.locks, guess=20),
    "pg_stat_database": Source(fixed=activity.database_counts, guess=1),
    "pg_stat_database_conflicts": Source(fixed=activity.conflict_counts, guess=1),
    "pg_stat_archiver": Source(fixed=activity.zeros("archived_count", "failed_count"), guess=1),
    "pg_stat_bgwriter": Source(
        fixed=activity.zeros(
            *("checkpoints_timed", "checkpoints_req", "checkpoint_write_time"),
            *("checkpoint_sync_time", "buffers_checkpoint", "buffers_clean", "maxwritten_clean"),
            *("buffers_backend", "buffers_backend_fsync", "buffers_alloc"),
        ),
        guess=1,
    ),
    "pg_stat_wal": Source(
        fixed=activity.zeros(
            *("wal_records", "wal_fpi", "wal_bytes", "wal_buffers_full", "wal_write"),
            *("wal_sync", "wal_write_time", "wal_sync_time"),
        ),
        guess=1,
    ),
    "pg_proc": _recorded("oid", "proname", "pronamespace", guess=3_000),
    "pg_operator": _recorded("oid", "oprname", guess=800),
    "pg_opclass": _recorded("oid", guess=100),
    "pg_opfamily": _recorded("oid", guess=100),
    "pg_collation": _recorded("oid", "collname", guess=100),
    "pg_am": _recorded("oid", "amname", guess=7),
    "pg_amop": _recorded("oid", "amopfamily", "amopopr", guess=1_000),
    "pg_amproc": _recorded("oid", "amprocfamily", guess=700),
    "pg_conversion": _recorded("oid", "conname", guess=100),
    "pg_language": _recorded("oid", "lanname", guess=4),
    "pg_cast": _recorded("oid", "castsource", guess=200),
    "pg_aggregate": _recorded("aggfnoid", guess=150),
    "pg_range": _recorded("rngtypid", "rngmultitypid", guess=6),
    "pg_ts_config": _recorded("oid", "cfgname", guess=30),
    "pg_ts_config_map": _recorded("mapcfg", guess=550),
    "pg_ts_dict": _recorded("oid", "dictname", guess=30),
}
NO_ROWS: Final = Source(guess=1)


def source_of(name: str) -> Source:
    return SOURCES.get(name, NO_ROWS)
