"""What the functions of the catalog return; `functions.catalog_functions` has their signatures.

Each takes the objects of the statement's catalog, then its arguments. All of them return NULL for
an oid that nothing has, as PostgreSQL's do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from qserver.errors import (
    InvalidParameterValue,
    UndefinedColumn,
    UndefinedObject,
    UndefinedTable,
    UnknownDatabase,
)
from qserver.functions.catalog_functions import ROWS_OF, STATISTICS, TIMES
from qserver.query.catalog import (
    access_lists,
    privileges,
    routines,
    texts,
    type_facts,
    updatability,
)
from qserver.query.catalog.builtin_indexes import builtin_index
from qserver.query.catalog.data import (
    recorded_by,
    recorded_keywords,
    recorded_rows,
    relations,
)
from qserver.query.catalog.descriptions import described
from qserver.query.catalog.expressions import NodeTree
from qserver.query.catalog.objects import CatalogObjects as Objects
from qserver.query.catalog.parts import columns_of, indexes_of
from qserver.query.catalog.roles import ROLE_NAMES
from qserver.query.catalog.rows_of_relations import comments
from qserver.query.catalog.rows_of_server import shared_comments
from qserver.query.catalog.rows_of_types import types as types_of
from qserver.query.catalog.search_path import full_name, schema_of_row
from qserver.query.catalog.sources import SOURCES
from qserver.query.catalog.types import shown_type
from qserver.query.catalog.world import CLASSES, DATABASE
from qserver.values.identifiers import identifiers, quote_identifier
from qserver.values.object_names import ObjectName
from qserver.values.relations import Sequence, View, kind_of
from qserver.values.schema import Table
from qserver.values.temporary import TEMPORARY
from qserver.values.types import Kind

BYTES_PER_ROW: Final = 64
"""What a row or an index entry is reckoned with: pages do not know their bytes."""


def format_type(objects: Objects, oid: int, modifier: int | None) -> str | None:
    if oid is None:
        return None
    if oid == 0:
        return "-"
    return shown_type(objects.world, oid, modifier) or "???"


# --- definitions ---------------------------------------------------------------------------------


def viewdef(objects: Objects, about: int | str, how: Any = None) -> str | None:
    oid = objects.find_class(about) if isinstance(about, str) else about
    if oid is None:
        raise UndefinedTable(f'relation "{about}" does not exist')
    for each in objects.world.with_oid(oid):
        if isinstance(each, View) and each.oid == oid:
            return texts.view_text(objects.world, each)
    for relation in relations().values():
        if relation.oid == oid and relation.query is not None:
            return relation.query
    return None


def indexdef(objects: Objects, oid: int, column: int = 0, pretty: bool = False) -> str | None:
    table = _relation(objects, oid)
    for index in indexes_of(table) if table is not None else ():
        if table is not None and index.oid == oid:
            if not column:
                return texts.index_text(objects.world, table, index, pretty)
            parts = index.parts[column - 1 : column] if column > 0 else ()
            return next((texts.part_text(objects.world, table, part, pretty) for part in parts), "")
    return builtin_index(objects.world.path, oid, column, pretty)


def constraintdef(objects: Objects, oid: int, pretty: bool = False) -> str | None:
    for table in objects.world.with_constraint(oid):
        if isinstance(table, Table):
            return texts.constraint_text(objects, table, oid, pretty)
    return None


def expression(objects: Objects, tree: str, oid: int, pretty: bool = False) -> str:
    return tree.pretty if pretty and isinstance(tree, NodeTree) else str(tree)


def ruledef(objects: Objects, oid: int, pretty: bool = False) -> str | None:
    for each in objects.world.with_rule(oid):
        if isinstance(each, View):
            return texts.rule_text(objects.world, each, pretty)
    return None


def nothing(objects: Objects, *arguments: Any) -> None:
    """The answer about objects that cannot exist here."""


def serial_sequence(objects: Objects, table_text: str, column: str) -> str | None:
    oid = objects.find_class(table_text)
    if oid is None:
        shown = ".".join(identifiers(table_text))
        raise UndefinedTable(f'relation "{shown}" does not exist')
    catalog = objects.world.catalog
    for table in objects.world.with_oid(oid):
        if isinstance(table, View) and column in dict(table.columns):
            return None
        if not isinstance(table, Table) or column not in table.positions:
            continue
        found = catalog.find(table.column(column).sequence or "")
        if isinstance(found, Sequence) and found.owner == (table.key, column):
            return full_name(found.schema, found.name)
        return None
    shown = identifiers(table_text)[-1]
    raise UndefinedColumn(f'column "{column}" of relation "{shown}" does not exist')


def user_name(objects: Objects, oid: int) -> str:
    return ROLE_NAMES.get(oid) or f"unknown (OID={oid})"


# --- visibility, comments ------------------------------------------------------------------------


def table_is_visible(objects: Objects, oid: int) -> bool | None:
    place = objects.class_place(oid)
    return None if place is None else objects.world.path.shows_relation(*place)


def type_is_visible(objects: Objects, oid: int) -> bool | None:
    path = objects.world.path
    for row in recorded_by("pg_type", "oid").get(oid, ()):
        return path.shows_type(schema_of_row("pg_type", row), row[1])
    for each in objects.world.with_type(oid):
        for found in types_of(objects.world, each):
            if found["oid"] == oid:
                return path.shows_type(getattr(each, "schema", ""), found["typname"])
    return None


def _recorded_is_visible(table: str) -> Callable[..., bool | None]:
    def is_visible(objects: Objects, oid: int) -> bool | None:
        for row in recorded_by(table, "oid").get(oid, ()):
            return objects.world.path.has(schema_of_row(table, row))
        return None

    return is_visible


def object_comment(objects: Objects, oid: int, catalog: str | None = None) -> str | None:
    return _comment(objects, oid, catalog, 0)


def column_comment(objects: Objects, oid: int, number: int) -> str | None:
    return _comment(objects, oid, "pg_class", number)


def _comment(objects: Objects, oid: int, catalog: str | None, number: int) -> str | None:
    wanted = None if catalog is None else _class_oid(catalog)
    for row in recorded_by("pg_description", "objoid").get(oid, ()):
        if row[2] == number and wanted in (None, row[1]):
            return str(row[3])
    if oid < FIRST_USER_OID:
        return None
    for each in objects.world.with_any_oid(oid):
        for found in comments(objects.world, each):
            is_it = (found["objoid"], found["objsubid"]) == (oid, number)
            if is_it and wanted in (None, found["classoid"]):
                return str(found["description"])
    return None


def shared_comment(objects: Objects, oid: int, catalog: str) -> str | None:
    wanted = _class_oid(catalog)
    for each in objects.world.with_shared(oid):
        for found in shared_comments(objects.world, each):
            if (found["objoid"], found["classoid"]) == (oid, wanted):
                return str(found["description"])
    return None


FIRST_USER_OID: Final = 16384


def _class_oid(name: str) -> int:
    data = relations().get(("pg_catalog", name))
    return CLASSES.get(name, 0) if data is None else data.oid


# --- sizes ---------------------------------------------------------------------------------------


def _relation(objects: Objects, oid: int) -> Table | None:
    for each in objects.world.with_oid(oid):
        if isinstance(each, Table):
            return each
    return None


def relation_size(objects: Objects, oid: int, fork: str = "main") -> int | None:
    if fork not in ("main", "fsm", "vm", "init"):
        raise InvalidParameterValue(
            "invalid fork name", hint='Valid fork names are "main", "fsm", "vm", and "init".'
        )
    if objects.class_place(oid) is None:
        return None
    table = _relation(objects, oid)
    if table is None or fork != "main":
        return 0
    return _size(objects, table)


def _size(objects: Objects, table: Table) -> int:
    return BYTES_PER_ROW * objects.world.snapshot.count(table.id)


def indexes_size(objects: Objects, oid: int) -> int | None:
    if objects.class_place(oid) is None:
        return None
    table = _relation(objects, oid)
    if table is None or table.oid != oid:
        return 0
    return _size(objects, table) * len(list(indexes_of(table)))


def total_size(objects: Objects, oid: int) -> int | None:
    own, others = relation_size(objects, oid), indexes_size(objects, oid)
    return None if own is None else own + (others or 0)


def database_size(objects: Objects, about: int | str) -> int | None:
    if isinstance(about, str) and about != objects.world.server.database:
        raise UnknownDatabase(f'database "{about}" does not exist')
    if isinstance(about, int) and about != DATABASE:
        return None
    return _size_of_all(objects)


def tablespace_size(objects: Objects, about: int | str) -> int | None:
    for row in recorded_rows("pg_tablespace"):
        if about in (row[0], row[1]):
            return _size_of_all(objects) if row[1] == "pg_default" else 0
    if isinstance(about, str):
        raise UndefinedObject(f'tablespace "{about}" does not exist')
    return None


def _size_of_all(objects: Objects) -> int:
    return sum(
        total_size(objects, table.oid) or 0 for table in objects.world.catalog.tables.values()
    )


# --- rows ----------------------------------------------------------------------------------------


def keywords(objects: Objects) -> Iterator[tuple[str, str, bool, str, str]]:
    for word, code in recorded_keywords():
        yield word, code[0], code[1] == "l", *KEYWORDS[code]


KEYWORDS: Final = {
    f"{code}{label}": (meaning, text)
    for code, meaning in {
        "U": "unreserved",
        "C": "unreserved (cannot be function or type name)",
        "T": "reserved (can be function or type name)",
        "R": "reserved",
    }.items()
    for label, text in {"l": "can be bare label", "a": "requires AS"}.items()
}


def rows_of(source: str, columns: tuple[str, ...]) -> Callable[..., Iterator[tuple[Any, ...]]]:
    """Return a function that gives columns of a relation whose rows depend on no definition."""

    def rows(objects: Objects) -> Iterator[tuple[Any, ...]]:
        make = SOURCES[source].fixed
        assert make is not None
        for row in make(objects.world):
            yield tuple([row.get(column) for column in columns])

    return rows


def options(objects: Objects, texts_of: Iterable[Any]) -> Iterator[tuple[str, str | None]]:
    for text in texts_of:
        if not isinstance(text, str):
            raise InvalidParameterValue("options are a list of texts, of one dimension")
        name, equals, value = text.partition("=")
        yield name, value if equals else None


def no_rows(objects: Objects, *arguments: Any) -> tuple[tuple[Any, ...], ...]:
    return ()


def sequence_parameters(objects: Objects, oid: int) -> Iterator[tuple[Any, ...]]:
    for each in objects.world.with_oid(oid):
        if isinstance(each, Sequence):
            bounds = each.start, each.minimum, each.maximum, each.increment
            yield *bounds, each.cycle, each.cache, objects.world.type_oid(each.type)


def sequence_data(objects: Objects, oid: int) -> Iterator[tuple[Any, ...]]:
    for each in objects.world.with_oid(oid):
        if isinstance(each, Sequence):
            yield objects.state_of(each)


def sequence_last_value(objects: Objects, oid: int) -> int | None:
    for each in objects.world.with_oid(oid):
        if isinstance(each, Sequence):
            value, called = objects.state_of(each)
            return value if called else None
    return None


# --- the rest ------------------------------------------------------------------------------------


def is_publishable(objects: Objects, oid: int) -> bool | None:
    table = _relation(objects, oid)
    return None if objects.class_place(oid) is None else table is not None and table.oid == oid


def replica_identity(objects: Objects, oid: int) -> ObjectName | None:
    """Return the index of the primary key, which tells the rows of a table apart."""
    table = _relation(objects, oid)
    if table is None or table.oid != oid or not table.primary_key_oid:
        return None
    return objects.named(Kind.REGCLASS, table.primary_key_oid)


def live_rows(objects: Objects, oid: int) -> int:
    table = _relation(objects, oid)
    return 0 if table is None or table.oid != oid else objects.world.snapshot.count(table.id)


def index_column_property(objects: Objects, oid: int, number: int, name: str) -> bool | None:
    table = _relation(objects, oid)
    index = next((each for each in indexes_of(table) if each.oid == oid), None) if table else None
    if index is None or not 1 <= number <= len(index.parts):
        return None
    part = index.parts[number - 1]
    down, first = part.descending, part.nulls_first
    return {
        "asc": not down,
        "desc": down,
        "nulls_first": first,
        "nulls_last": not first,
        "orderable": True,
        "distance_orderable": False,
        "returnable": True,
        "search_array": True,
        "search_nulls": True,
    }.get(name.lower())


def index_property(objects: Objects, oid: int, name: str) -> bool | None:
    known = {"clusterable": True, "index_scan": True, "bitmap_scan": True, "backward_scan": True}
    return known.get(name.lower()) if _relation(objects, oid) is not None else None


def access_method_property(objects: Objects, oid: int, name: str) -> bool | None:
    known = dict.fromkeys(("can_order", "can_unique", "can_multi_col", "can_include"), True)
    return (known | {"can_exclude": True}).get(name.lower()) if oid == 403 else None


def log_position(objects: Objects) -> str:
    """Return the version that the statement reads, as a place in a log: it only grows."""
    version = objects.world.snapshot.version
    return f"{version >> 32:X}/{version & 0xFFFFFFFF:X}"


def row_version(objects: Objects) -> int:
    """Return the version that the statement reads: no row has changed later."""
    return objects.world.snapshot.version & 0xFFFFFFFF


def age(objects: Objects, number: int) -> int:
    """Return how many versions ago that was."""
    return max(row_version(objects) - number, 0)


def types_of_vector(objects: Objects, oids: tuple[int, ...]) -> str:
    return ", ".join([shown_type(objects.world, oid) or "???" for oid in oids])


def identified(
    objects: Objects, catalog: int, oid: int, number: int
) -> Iterator[tuple[str | None, ...]]:
    """Yield kind, schema, name and identity of a relation, a column or a type."""
    place = objects.class_place(oid) if catalog == CLASSES["pg_class"] else None
    if place is None:
        shown = shown_type(objects.world, oid) if catalog == CLASSES["pg_type"] else None
        if shown is not None:
            yield "type", None, None, shown
        return
    full = full_name(*place)
    kind = "index"
    for each in objects.world.with_oid(oid):
        if each.oid == oid:
            kind = kind_of(each)
            columns = dict(columns_of(each)) if isinstance(each, Table | View) else {}
            if number in columns:
                name = quote_identifier(columns[number].name)
                yield f"{kind} column", None, None, f"{full}.{name}"
                return
    yield kind, place[0], quote_identifier(place[1]), full


def row_security(objects: Objects, about: int | str) -> bool:
    if isinstance(about, str) and objects.find_class(about) is None:
        raise UndefinedTable(f'relation "{about}" does not exist')
    return False


def file_number(objects: Objects, oid: int) -> int | None:
    """Return the oid itself, as pg_class does; views have no file, and what has none, 0 there."""
    for each in objects.world.with_oid(oid):
        if isinstance(each, View):
            return None
    return None if objects.class_place(oid) is None else int(oid)


def file_path(objects: Objects, oid: int) -> str | None:
    number = file_number(objects, oid)
    return None if number is None else f"base/{DATABASE}/{number}"


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "format_type": format_type,
    "pg_get_viewdef": viewdef,
    "pg_get_indexdef": indexdef,
    "pg_get_constraintdef": constraintdef,
    "pg_get_expr": expression,
    "pg_get_ruledef": ruledef,
    **dict.fromkeys(
        (
            *("pg_get_triggerdef", "pg_get_function_sqlbody"),
            *("pg_get_partkeydef", "pg_get_statisticsobjdef"),
            *("pg_get_partition_constraintdef", "pg_get_statisticsobjdef_columns"),
            *("pg_get_statisticsobjdef_expressions",),
            *("pg_partition_root", "pg_collation_actual_version"),
            *("pg_database_collation_actual_version", "pg_last_xact_replay_timestamp"),
            *("pg_statistics_obj_is_visible",),
        ),
        nothing,
    ),
    **routines.FUNCTIONS,
    "pg_get_serial_sequence": serial_sequence,
    "pg_get_userbyid": user_name,
    "pg_my_temp_schema": lambda objects: objects.world.schema_oid(TEMPORARY),
    "pg_table_is_visible": table_is_visible,
    "pg_type_is_visible": type_is_visible,
    "pg_function_is_visible": _recorded_is_visible("pg_proc"),
    "pg_operator_is_visible": _recorded_is_visible("pg_operator"),
    "pg_opclass_is_visible": _recorded_is_visible("pg_opclass"),
    "pg_opfamily_is_visible": _recorded_is_visible("pg_opfamily"),
    "pg_collation_is_visible": _recorded_is_visible("pg_collation"),
    "pg_conversion_is_visible": _recorded_is_visible("pg_conversion"),
    "pg_ts_config_is_visible": _recorded_is_visible("pg_ts_config"),
    "pg_ts_dict_is_visible": _recorded_is_visible("pg_ts_dict"),
    "pg_ts_parser_is_visible": _recorded_is_visible("pg_ts_parser"),
    "pg_ts_template_is_visible": _recorded_is_visible("pg_ts_template"),
    "obj_description": object_comment,
    "col_description": column_comment,
    "shobj_description": shared_comment,
    "pg_relation_size": relation_size,
    "pg_table_size": relation_size,
    "pg_indexes_size": indexes_size,
    "pg_total_relation_size": total_size,
    "pg_database_size": database_size,
    "pg_tablespace_size": tablespace_size,
    "pg_tablespace_location": lambda objects, oid: "",
    "pg_relation_filenode": file_number,
    "pg_relation_filepath": file_path,
    "pg_relation_is_updatable": updatability.is_updatable,
    "pg_column_is_updatable": updatability.column_is_updatable,
    "pg_sequence_last_value": sequence_last_value,
    "pg_index_column_has_property": index_column_property,
    "pg_index_has_property": index_property,
    "pg_indexam_has_property": access_method_property,
    "pg_describe_object": described,
    "pg_relation_is_publishable": is_publishable,
    "pg_get_replica_identity_index": replica_identity,
    "row_security_active": row_security,
    **{f"pg_stat_get_{word}": lambda objects, oid: 0 for word in STATISTICS.split()},
    **{f"pg_stat_get_{word}": nothing for word in TIMES.split()},
    "pg_stat_get_live_tuples": live_rows,
    "pg_get_keywords": keywords,
    "pg_options_to_table": options,
    "pg_sequence_parameters": sequence_parameters,
    "pg_get_sequence_data": sequence_data,
    "pg_partition_ancestors": no_rows,
    "pg_partition_tree": no_rows,
    "pg_tablespace_databases": no_rows,
    "acldefault": access_lists.default_list,
    "aclexplode": access_lists.exploded,
    **dict.fromkeys(
        ("pg_current_wal_lsn", "pg_current_wal_insert_lsn", "pg_current_wal_flush_lsn"),
        log_position,
    ),
    "xmin": row_version,
    "age": age,
    "pg_identify_object": identified,
    "oidvectortypes": types_of_vector,
    **{name: rows_of(*about) for name, about in ROWS_OF.items()},
    "pg_get_publication_tables": no_rows,
    **privileges.FUNCTIONS,
    **type_facts.FUNCTIONS,
}
