"""The texts of functions: pg_get_functiondef, pg_get_function_arguments and their kin.

They are all PostgreSQL's own. The bodies of those that are written in SQL are not recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from qserver.errors import WrongObjectType
from qserver.query.catalog.data import recorded_by, relations
from qserver.query.catalog.objects import CatalogObjects as Objects
from qserver.query.catalog.search_path import own_schema
from qserver.query.catalog.types import shown_type
from qserver.values.identifiers import quote_identifier

_KINDS: Final = {"w": "WINDOW"}
_VOLATILE: Final = {"i": "IMMUTABLE", "s": "STABLE"}
_PARALLEL: Final = {"s": "PARALLEL SAFE", "r": "PARALLEL RESTRICTED"}
_LANGUAGES: Final = {12: "internal", 13: "c", 14: "sql"}
_COSTS: Final = {12: 1.0, 13: 1.0}
"""What a function costs by default, by its language; 100 in others."""
_ROWS: Final = 1000.0


def _routine(oid: int) -> dict[str, Any] | None:
    names = relations()["pg_catalog", "pg_proc"].names
    for row in recorded_by("pg_proc", "oid").get(oid, ()):
        return dict(zip(names, row, strict=True))
    return None


def function_arguments(objects: Objects, oid: int, identity: bool = False) -> str | None:
    row = _routine(oid)
    if row is None:
        return None
    types = row["proallargtypes"] or row["proargtypes"]
    modes = row["proargmodes"] or ("i",) * len(types)
    names = row["proargnames"] or ("",) * len(types)
    defaults = [] if identity or not row["proargdefaults"] else row["proargdefaults"].split(", ")
    inputs = [at for at, mode in enumerate(modes) if mode in "ibv"]
    first_default = len(inputs) - len(defaults)
    parts = []
    for at, (mode, name, each) in enumerate(zip(modes, names, types, strict=True)):
        if mode == "t" or (identity and mode == "o"):
            continue
        words = [{"o": "OUT", "b": "INOUT", "v": "VARIADIC"}.get(mode, ""), name]
        text = " ".join(word for word in (*words, shown_type(objects.world, each) or "") if word)
        place = inputs.index(at) if at in inputs else -1
        if place >= first_default and defaults and place >= 0:
            text += f" DEFAULT {defaults[place - first_default]}"
        parts.append(text)
    return _arguments_of_ordered(parts, row) or ", ".join(parts)


def _arguments_of_ordered(parts: list[str], row: Mapping[str, Any]) -> str | None:
    """Return those of an aggregate with WITHIN GROUP: what it orders by comes last."""
    columns = relations()["pg_catalog", "pg_aggregate"].names
    for each in recorded_by("pg_aggregate", "aggfnoid").get(row["oid"], ()):
        aggregate = dict(zip(columns, each, strict=True))
        if aggregate["aggkind"] != "n":
            direct = parts[: aggregate["aggnumdirectargs"]]
            ordered = parts[len(direct) :] or parts[-1:]  # of VARIADIC, the same again
            words = [*filter(None, [", ".join(direct)]), f"ORDER BY {', '.join(ordered)}"]
            return " ".join(words)
    return None


def function_identity(objects: Objects, oid: int) -> str | None:
    return function_arguments(objects, oid, identity=True)


def function_result(objects: Objects, oid: int) -> str | None:
    row = _routine(oid)
    if row is None or row["prokind"] == "p":
        return None
    if row["proargmodes"] and "t" in row["proargmodes"]:
        columns = [
            f"{name} {shown_type(objects.world, each)}"
            for mode, name, each in zip(
                row["proargmodes"], row["proargnames"], row["proallargtypes"], strict=True
            )
            if mode == "t"
        ]
        return f"TABLE({', '.join(columns)})"
    shown = shown_type(objects.world, row["prorettype"])
    return f"SETOF {shown}" if row["proretset"] else shown


def function_definition(objects: Objects, oid: int) -> str | None:
    row = _routine(oid)
    if row is None or row["prolang"] == 14:
        return None
    if row["prokind"] == "a":
        raise WrongObjectType(f'"{row["proname"]}" is an aggregate function')
    name = f"{own_schema(row['pronamespace'])}.{quote_identifier(row['proname'])}"
    library = f"'{row['probin']}', " if row["probin"] else ""
    return "\n".join(
        [
            f"CREATE OR REPLACE FUNCTION {name}({function_arguments(objects, oid)})",
            f" RETURNS {function_result(objects, oid)}",
            f" LANGUAGE {_LANGUAGES[row['prolang']]}",
            *filter(None, [_properties(row)]),
            f"AS {library}$function${row['prosrc']}$function$\n",
        ]
    )


def _properties(row: Mapping[str, Any]) -> str:
    """Return what a function is beside the defaults of CREATE FUNCTION, each with a blank."""
    words = [
        _KINDS.get(row["prokind"]),
        _VOLATILE.get(row["provolatile"]),
        _PARALLEL.get(row["proparallel"]),
        "STRICT" if row["proisstrict"] else None,
        "SECURITY DEFINER" if row["prosecdef"] else None,
        "LEAKPROOF" if row["proleakproof"] else None,
    ]
    if row["procost"] != _COSTS.get(row["prolang"], 100.0):
        words.append(f"COST {row['procost']:g}")
    if row["prorows"] and row["prorows"] != _ROWS:
        words.append(f"ROWS {row['prorows']:g}")
    if row["prosupport"]:
        words.append(f"SUPPORT {row['prosupport'].text}")
    return "".join(f" {word}" for word in words if word)


def argument_default(objects: Objects, oid: int, number: int) -> str | None:
    row = _routine(oid)
    if row is None or not row["proargdefaults"]:
        return None
    types = row["proallargtypes"] or row["proargtypes"]
    modes = row["proargmodes"] or ("i",) * len(types)
    inputs = [at for at, mode in enumerate(modes, 1) if mode in "ibv"]
    defaults = row["proargdefaults"].split(", ")
    known = dict(zip(inputs[len(inputs) - len(defaults) :], defaults, strict=True))
    return known.get(number)


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "pg_get_functiondef": function_definition,
    "pg_get_function_arg_default": argument_default,
    "pg_get_function_arguments": function_arguments,
    "pg_get_function_identity_arguments": function_identity,
    "pg_get_function_result": function_result,
}
