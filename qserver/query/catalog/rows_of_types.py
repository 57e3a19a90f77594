"""The rows that enums, and the row types of tables and views, have in pg_type and pg_enum."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from qserver.query.catalog.world import OWNER, World
from qserver.values.enumeration import Enumeration
from qserver.values.object_names import ObjectName
from qserver.values.relations import Definition, View
from qserver.values.schema import Table

Rows = Iterator[dict[str, Any]]


ARRAY: Final = {
    "typsubscript": ObjectName(6179, "array_subscript_handler"),
    "typinput": ObjectName(750, "array_in"),
    "typoutput": ObjectName(751, "array_out"),
    "typreceive": ObjectName(2400, "array_recv"),
    "typsend": ObjectName(2401, "array_send"),
    "typanalyze": ObjectName(3816, "array_typanalyze"),
    "typcategory": "A",
    "typtype": "b",
    "typlen": -1,
    "typstorage": "x",
}
RECORD: Final = {
    "typinput": ObjectName(2290, "record_in"),
    "typoutput": ObjectName(2291, "record_out"),
    "typreceive": ObjectName(2402, "record_recv"),
    "typsend": ObjectName(2403, "record_send"),
    "typcategory": "C",
    "typtype": "c",
    "typlen": -1,
    "typstorage": "x",
    "typalign": "d",
}
ENUM: Final = {
    "typinput": ObjectName(3504, "enum_in"),
    "typoutput": ObjectName(3506, "enum_out"),
    "typreceive": ObjectName(3532, "enum_recv"),
    "typsend": ObjectName(3533, "enum_send"),
    "typcategory": "E",
    "typtype": "e",
    "typlen": 4,
    "typbyval": True,
    "typstorage": "p",
    "typalign": "i",
}


def types(world: World, each: Definition) -> Rows:
    if isinstance(each, Enumeration):
        yield _type(world, each, each.oid) | ENUM | {"typarray": each.oid + 1}
        array = _type(world, each, each.oid + 1) | ARRAY
        yield array | {"typname": f"_{each.name}"[:63], "typelem": each.oid, "typalign": "i"}
    elif isinstance(each, Table | View):
        own = {"typrelid": each.oid, "typarray": each.oid + 2}
        yield _type(world, each, each.oid + 1) | RECORD | own
        array = _type(world, each, each.oid + 2) | ARRAY
        yield array | {"typname": f"_{each.name}"[:63], "typelem": each.oid + 1, "typalign": "d"}


def _type(world: World, each: Enumeration | Table | View, oid: int) -> dict[str, Any]:
    return {
        "oid": oid,
        "typname": each.name,
        "typnamespace": world.schema_oid(each.schema),
        "typowner": OWNER,
        "typisdefined": True,
        "typdelim": ",",
        "typtypmod": -1,
    }


def labels(world: World, each: Definition) -> Rows:
    if isinstance(each, Enumeration):
        for oid, label in zip(each.label_oids, each.labels, strict=True):
            yield {
                "oid": oid,
                "enumtypid": each.oid,
                "enumsortorder": label.position + 1.0,
                "enumlabel": str(label),
            }
