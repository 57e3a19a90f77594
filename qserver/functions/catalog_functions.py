"""The functions that look at the catalog: pg_get_indexdef, format_type, has_table_privilege …

Here are their signatures only, as PostgreSQL has them. What a function returns depends on the
definitions, so `context.objects` computes it; see `query.catalog.functions`. None of these
functions is volatile: during one statement a catalog does not change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from qserver.functions.registry import Function, TableFunction
from qserver.values.type_names import TYPES_BY_NAME
from qserver.values.types import ANY, ANYARRAY, ANYELEMENT, RECORD, VOID, SqlType

if TYPE_CHECKING:
    from qserver.functions.context import Context

TYPES: Final = {
    **TYPES_BY_NAME,
    "record": RECORD,
    "any": ANY,
    "anyarray": ANYARRAY,
    "anyelement": ANYELEMENT,
    "void": VOID,
}

SIGNATURES: Final = """
format_type(oid, int4?) text
pg_get_viewdef(oid) text; pg_get_viewdef(oid, bool) text; pg_get_viewdef(oid, int4) text
pg_get_viewdef(text) text; pg_get_viewdef(text, bool) text
pg_get_indexdef(oid) text; pg_get_indexdef(oid, int4, bool) text
pg_get_constraintdef(oid) text; pg_get_constraintdef(oid, bool) text
pg_get_expr(pg_node_tree, oid) text; pg_get_expr(pg_node_tree, oid, bool) text
pg_get_ruledef(oid) text; pg_get_ruledef(oid, bool) text
pg_get_triggerdef(oid) text; pg_get_triggerdef(oid, bool) text
pg_get_functiondef(oid) text; pg_get_function_sqlbody(oid) text
pg_get_function_arguments(oid) text; pg_get_function_identity_arguments(oid) text
pg_get_function_result(oid) text; pg_get_function_arg_default(oid, int4) text
pg_get_partkeydef(oid) text; pg_get_partition_constraintdef(oid) text
pg_get_statisticsobjdef(oid) text; pg_get_statisticsobjdef_columns(oid) text
pg_get_statisticsobjdef_expressions(oid) _text
pg_get_serial_sequence(text, text) text; pg_get_userbyid(oid) name
pg_get_replica_identity_index(regclass) regclass
pg_my_temp_schema() oid
pg_table_is_visible(oid) bool; pg_type_is_visible(oid) bool; pg_function_is_visible(oid) bool
pg_operator_is_visible(oid) bool; pg_opclass_is_visible(oid) bool; pg_opfamily_is_visible(oid) bool
pg_collation_is_visible(oid) bool; pg_conversion_is_visible(oid) bool
pg_statistics_obj_is_visible(oid) bool; pg_ts_config_is_visible(oid) bool
pg_ts_dict_is_visible(oid) bool; pg_ts_parser_is_visible(oid) bool
pg_ts_template_is_visible(oid) bool
obj_description(oid) text; obj_description(oid, name) text; col_description(oid, int4) text
shobj_description(oid, name) text
pg_relation_size(regclass) int8; pg_relation_size(regclass, text) int8; pg_table_size(regclass) int8
pg_indexes_size(regclass) int8; pg_total_relation_size(regclass) int8
pg_database_size(oid) int8; pg_database_size(name) int8
pg_tablespace_size(oid) int8; pg_tablespace_size(name) int8
pg_tablespace_location(oid) text; pg_relation_filenode(regclass) oid
pg_relation_filepath(regclass) text
pg_relation_is_updatable(regclass, bool) int4; pg_column_is_updatable(regclass, int2, bool) bool
pg_sequence_last_value(regclass) int8; pg_relation_is_publishable(regclass) bool
pg_index_column_has_property(regclass, int4, text) bool; pg_index_has_property(regclass, text) bool
pg_indexam_has_property(oid, text) bool
pg_describe_object(oid, oid, int4) text
pg_partition_root(regclass) regclass
row_security_active(oid) bool; row_security_active(text) bool
acldefault(char, oid) _aclitem; age(xid) int4
pg_current_wal_lsn() pg_lsn; pg_current_wal_insert_lsn() pg_lsn; pg_current_wal_flush_lsn() pg_lsn
pg_last_xact_replay_timestamp() timestamptz; pg_collation_actual_version(oid) text
pg_database_collation_actual_version(oid) text; oidvectortypes(oidvector) text
_pg_truetypid(record, record) oid; _pg_truetypmod(record, record) int4
_pg_char_max_length(oid, int4) int4; _pg_char_octet_length(oid, int4) int4
_pg_numeric_precision(oid, int4) int4; _pg_numeric_precision_radix(oid, int4) int4
_pg_numeric_scale(oid, int4) int4; _pg_datetime_precision(oid, int4) int4
_pg_interval_type(oid, int4) text; _pg_index_position(oid, int2) int4
"""
"""A `?` behind a parameter: it may be NULL. Otherwise NULL gives NULL."""

ROWS: Final = """
pg_partition_ancestors(regclass) relid regclass
pg_partition_tree(regclass) relid regclass, parentrelid regclass, isleaf bool, level int4
pg_tablespace_databases(oid) pg_tablespace_databases oid
pg_options_to_table(_text) option_name text, option_value text
aclexplode(_aclitem) grantor oid, grantee oid, privilege_type text, is_grantable bool
pg_get_keywords() word text, catcode char, barelabel bool, catdesc text, baredesc text
pg_sequence_parameters(oid) start_value int8, minimum_value int8, maximum_value int8, \
increment int8, cycle_option bool, cache_size int8, data_type oid
pg_get_sequence_data(regclass) last_value int8, is_called bool
pg_get_publication_tables(text) relid oid, attrs int2vector, qual pg_node_tree
pg_identify_object(oid, oid, int4) type text, schema text, name text, identity text
pg_timezone_names() name text, abbrev text, utc_offset interval, is_dst bool
pg_timezone_abbrevs() abbrev text, utc_offset interval, is_dst bool
pg_available_extension_versions() name name, version text, superuser bool, trusted bool, \
relocatable bool, schema name, requires _name, comment text
pg_available_extensions() name name, default_version text, comment text
pg_lock_status() locktype text, database oid, relation oid, page int4, tuple int2, \
virtualxid text, transactionid xid, classid oid, objid oid, objsubid int2, \
virtualtransaction text, pid int4, mode text, granted bool, fastpath bool, waitstart timestamptz
pg_show_all_settings() name text, setting text, unit text, category text, short_desc text, \
extra_desc text, context text, vartype text, source text, min_val text, max_val text, \
enumvals _text, boot_val text, reset_val text, sourcefile text, sourceline int4, \
pending_restart bool
"""
"""Functions that return rows, with their columns."""

_RELATION_OF: Final = {
    "pg_timezone_names": "pg_timezone_names",
    "pg_timezone_abbrevs": "pg_timezone_abbrevs",
    "pg_available_extensions": "pg_available_extensions",
    "pg_available_extension_versions": "pg_available_extension_versions",
    "pg_lock_status": "pg_locks",
    "pg_show_all_settings": "pg_settings",
}
ROWS_OF: Final = {
    name: (_RELATION_OF[name], tuple(column.split()[0] for column in columns.split(", ")))
    for name, columns in re.findall(r"(\w+)\(\) (.+)", ROWS)
    if name in _RELATION_OF
}
"""Functions that return rows of a relation, and their columns."""

STATISTICS: Final = """
numscans tuples_returned tuples_fetched tuples_inserted tuples_updated tuples_deleted
tuples_hot_updated blocks_fetched blocks_hit live_tuples dead_tuples mod_since_analyze
ins_since_vacuum vacuum_count autovacuum_count analyze_count autoanalyze_count xact_numscans
xact_tuples_returned xact_tuples_fetched xact_tuples_inserted xact_tuples_updated
xact_tuples_deleted xact_tuples_hot_updated xact_blocks_fetched xact_blocks_hit
"""
TIMES: Final = "last_vacuum_time last_autovacuum_time last_analyze_time last_autoanalyze_time"
"""Of a table, after `pg_stat_get_`: numbers that nobody counts here, and times that never were."""

PRIVILEGES: Final = {
    "has_table_privilege": 1,
    "has_sequence_privilege": 1,
    "has_any_column_privilege": 1,
    "has_schema_privilege": 1,
    "has_database_privilege": 1,
    "has_function_privilege": 1,
    "has_language_privilege": 1,
    "has_type_privilege": 1,
    "has_tablespace_privilege": 1,
    "has_server_privilege": 1,
    "has_foreign_data_wrapper_privilege": 1,
    "has_column_privilege": 2,
    "has_parameter_privilege": 1,
}
"""The functions that ask for rights to an object, and how many arguments say which."""


def _caller(name: str) -> Callable[..., Any]:
    def call(context: Context, *arguments: Any) -> Any:
        assert context.objects is not None
        return context.objects.call(name, *arguments)

    return call


def _parameters(text: str) -> tuple[tuple[SqlType, ...], bool]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    return tuple(TYPES[word.rstrip("?")] for word in words), "?" not in text


def _function(name: str, parameters: tuple[SqlType, ...], returns: str, strict: bool) -> Function:
    return Function(
        name,
        parameters,
        TYPES[returns],
        _caller(name),
        strict=strict,
        gives_null=True,
        needs_context=True,
        reads_catalog=True,
    )


def _signatures() -> Iterator[Function]:
    for name, parameters, returns in re.findall(r"(\w+)\(([^)]*)\) (\w+)", SIGNATURES):
        types, strict = _parameters(parameters)
        yield _function(name, types, returns, strict)
    for name, count in PRIVILEGES.items():
        objects: tuple[tuple[str, ...], ...] = (("text", "oid"), ("text", "int2"))[:count]
        if name == "has_parameter_privilege":
            objects = (("text",),)
        for user in ((), ("name",), ("oid",)):
            for about in product(*objects):
                names = (*user, *about, "text")
                yield _function(name, tuple(TYPES[each] for each in names), "bool", True)
    for words, returns in ((STATISTICS, "int8"), (TIMES, "timestamptz")):
        for word in words.split():
            yield _function(f"pg_stat_get_{word}", (TYPES["oid"],), returns, True)
    for user in ((), ("name",), ("oid",)):
        for role in ("name", "oid"):
            names = (*user, role, "text")
            yield _function("pg_has_role", tuple(TYPES[each] for each in names), "bool", True)


def _row_functions() -> Iterator[TableFunction]:
    for name, parameters, columns in re.findall(r"(\w+)\(([^)]*)\) (.+)", ROWS):
        types, _ = _parameters(parameters)
        pairs = [column.split() for column in columns.split(", ")]
        yield TableFunction(
            name,
            types,
            tuple((column, TYPES[kind]) for column, kind in pairs),
            _caller(name),
            needs_context=True,
            reads_catalog=True,
        )


FUNCTIONS: Final = tuple(_signatures())
ROW_VERSION: Final = _function("xmin", (), "xid", True)
"""What a row of the catalog has as its column xmin: it may have changed as late as that."""
TABLE_FUNCTIONS: Final = tuple(_row_functions())
