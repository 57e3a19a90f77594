"""The commands that list: \\dt and its kin, \\dn, \\df, \\dT, \\du, \\dp, \\dx, \\l.

Each is a query of pg_catalog whose columns have psql's names and order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from qserver.cli.shell.catalog.patterns import Columns, conditions
from qserver.cli.shell.shell import Shell

_RELATION_KINDS: Final = {
    "t": ("r", "p"),
    "v": ("v",),
    "m": ("m",),
    "i": ("i", "I"),
    "s": ("S",),
    "E": ("f",),
}
_KIND_NAMES: Final = {
    "r": "table",
    "p": "partitioned table",
    "v": "view",
    "m": "materialized view",
    "i": "index",
    "I": "partitioned index",
    "S": "sequence",
    "s": "special",
    "t": "TOAST table",
    "f": "foreign table",
}
_PERSISTENCE: Final = {"p": "permanent", "t": "temporary", "u": "unlogged"}
_USER_SCHEMA: Final = "n.nspname NOT IN ('pg_catalog', 'information_schema')"
_RELATION: Final = Columns("c.relname", "n.nspname", "pg_catalog.pg_table_is_visible(c.oid)")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is behind the name of a command: its pattern, `+` and `S`."""

    pattern: str | None
    is_verbose: bool
    has_system: bool
    kinds: str = ""

    @property
    def hides_system(self) -> bool:
        return self.pattern is None and not self.has_system


def cases(column: str, names: dict[str, str]) -> str:
    whens = " ".join(f"WHEN '{key}' THEN '{name}'" for key, name in names.items())
    return f"CASE {column} {whens} END"


def query_of(columns: list[tuple[str, str]], tables: str, where: list[str], order: str) -> str:
    selected = ", ".join(f'{expression} AS "{name}"' for name, expression in columns)
    condition = f" WHERE {' AND '.join(where)}" if where else ""
    return f"SELECT {selected} FROM {tables}{condition} ORDER BY {order}"


def owner(column: str) -> tuple[str, str]:
    return "Owner", f"pg_catalog.pg_get_userbyid({column})"


def privileges(column: str) -> tuple[str, str]:
    return "Access privileges", f"pg_catalog.array_to_string({column}, E'\\n')"


def description(column: str, catalog: str, function: str = "obj_description") -> tuple[str, str]:
    return "Description", f"pg_catalog.{function}({column}, '{catalog}')"


def relations(shell: Shell, asked: Asked) -> str:
    kinds = [kind for letter in asked.kinds for kind in _RELATION_KINDS[letter]]
    if asked.pattern is not None or asked.has_system:
        kinds += ["s", "t"] if "t" in asked.kinds else []
    columns = [
        ("Schema", "n.nspname"),
        ("Name", "c.relname"),
        ("Type", cases("c.relkind", _KIND_NAMES)),
        owner("c.relowner"),
    ]
    if "i" in asked.kinds:
        columns.append(("Table", "t.relname"))
    if asked.is_verbose:
        columns.append(("Persistence", cases("c.relpersistence", _PERSISTENCE)))
        if set(asked.kinds) & set("tmi"):
            columns.append(("Access method", "am.amname"))
        size = "pg_catalog.pg_size_pretty(pg_catalog.pg_table_size(c.oid))"
        columns += [("Size", size), description("c.oid", "pg_class")]
    tables = (
        "pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
        " LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam"
    )
    if "i" in asked.kinds:
        tables += (
            " LEFT JOIN pg_catalog.pg_index x ON x.indexrelid = c.oid"
            " LEFT JOIN pg_catalog.pg_class t ON t.oid = x.indrelid"
        )
    among = ", ".join(f"'{kind}'" for kind in kinds)
    where = [f"c.relkind IN ({among})", "n.nspname !~ '^pg_toast'"]
    where += [_USER_SCHEMA] if asked.hides_system else []
    where += conditions(asked.pattern, _RELATION, shell)
    return query_of(columns, tables, where, "1, 2")


def schemas(shell: Shell, asked: Asked) -> str:
    columns = [("Name", "n.nspname"), owner("n.nspowner")]
    if asked.is_verbose:
        columns += [privileges("n.nspacl"), description("n.oid", "pg_namespace")]
    where = ["n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"]
    where = where if asked.hides_system else []
    where += conditions(asked.pattern, Columns("n.nspname"), shell)
    return query_of(columns, "pg_catalog.pg_namespace n", where, "1")


def functions(shell: Shell, asked: Asked) -> str:
    kind = {"a": "agg", "w": "window", "p": "proc", "f": "func"}
    columns = [
        ("Schema", "n.nspname"),
        ("Name", "p.proname"),
        ("Result data type", "pg_catalog.pg_get_function_result(p.oid)"),
        ("Argument data types", "pg_catalog.pg_get_function_arguments(p.oid)"),
        ("Type", cases("p.prokind", kind)),
    ]
    tables = "pg_catalog.pg_proc p LEFT JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace"
    if asked.is_verbose:
        volatility = {"i": "immutable", "s": "stable", "v": "volatile"}
        parallel = {"r": "restricted", "s": "safe", "u": "unsafe"}
        source = "coalesce(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc)"
        columns += [
            ("Volatility", cases("p.provolatile", volatility)),
            ("Parallel", cases("p.proparallel", parallel)),
            owner("p.proowner"),
            ("Security", "CASE WHEN p.prosecdef THEN 'definer' ELSE 'invoker' END"),
            privileges("p.proacl"),
            ("Language", "l.lanname"),
            ("Source code", source),
            description("p.oid", "pg_proc"),
        ]
        tables += " LEFT JOIN pg_catalog.pg_language l ON l.oid = p.prolang"
    where = []
    if asked.kinds:
        letters = {"a": "a", "n": "f", "p": "p", "w": "w"}
        among = ", ".join(f"'{letters[each]}'" for each in asked.kinds if each in letters)
        where.append(f"p.prokind IN ({among})" if among else "false")
    where += [_USER_SCHEMA] if asked.hides_system else []
    named = Columns("p.proname", "n.nspname", "pg_catalog.pg_function_is_visible(p.oid)")
    where += conditions(asked.pattern, named, shell)
    return query_of(columns, tables, where, "1, 2, 4")


def types(shell: Shell, asked: Asked) -> str:
    name = "pg_catalog.format_type(t.oid, NULL)"
    columns = [("Schema", "n.nspname"), ("Name", name)]
    if asked.is_verbose:
        size = (
            "CASE WHEN t.typrelid <> 0 THEN 'tuple' WHEN t.typlen < 0 THEN 'var'"
            " ELSE t.typlen::text END"
        )
        labels = (
            "SELECT e.enumlabel FROM pg_catalog.pg_enum e"
            " WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder"
        )
        columns += [
            ("Internal name", "t.typname"),
            ("Size", size),
            ("Elements", f"pg_catalog.array_to_string(ARRAY({labels}), E'\\n')"),
            owner("t.typowner"),
            privileges("t.typacl"),
        ]
    columns.append(description("t.oid", "pg_type"))
    tables = "pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace"
    composite = "SELECT c.relkind = 'c' FROM pg_catalog.pg_class c WHERE c.oid = t.typrelid"
    where = [f"(t.typrelid = 0 OR ({composite}))"]
    if asked.pattern is None or "[]" not in asked.pattern:
        element = (
            "SELECT 1 FROM pg_catalog.pg_type e WHERE e.oid = t.typelem AND e.typarray = t.oid"
        )
        where.append(f"NOT EXISTS ({element})")
    where += [_USER_SCHEMA] if asked.hides_system else []
    named = Columns("t.typname", "n.nspname", "pg_catalog.pg_type_is_visible(t.oid)", name)
    where += conditions(asked.pattern, named, shell)
    return query_of(columns, tables, where, "1, 2")


def accesses(shell: Shell, asked: Asked) -> str:
    kinds = {each: _KIND_NAMES[each] for each in "rvmSfp"}
    of_columns = (
        "SELECT a.attname || E':\\n  ' || pg_catalog.array_to_string(a.attacl, E'\\n  ')"
        " FROM pg_catalog.pg_attribute a"
        " WHERE a.attrelid = c.oid AND NOT a.attisdropped AND a.attacl IS NOT NULL"
    )
    columns = [
        ("Schema", "n.nspname"),
        ("Name", "c.relname"),
        ("Type", cases("c.relkind", kinds)),
        privileges("c.relacl"),
        ("Column privileges", f"pg_catalog.array_to_string(ARRAY({of_columns}), E'\\n')"),
        ("Policies", "''"),  # there are none
    ]
    tables = "pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    among = ", ".join(f"'{kind}'" for kind in kinds)
    where = [f"c.relkind IN ({among})"]
    where += ["n.nspname !~ '^pg_'", _USER_SCHEMA] if asked.pattern is None else []
    where += conditions(asked.pattern, _RELATION, shell)
    return query_of(columns, tables, where, "1, 2")


def extensions(shell: Shell, asked: Asked) -> str:
    columns = [
        ("Name", "e.extname"),
        ("Version", "e.extversion"),
        ("Schema", "n.nspname"),
        description("e.oid", "pg_extension"),
    ]
    tables = (
        "pg_catalog.pg_extension e LEFT JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace"
    )
    where = conditions(asked.pattern, Columns("e.extname"), shell)
    return query_of(columns, tables, where, "1")


def databases(shell: Shell, asked: Asked) -> str:
    provider = cases("d.datlocprovider", {"c": "libc", "i": "icu"})
    columns = [
        ("Name", "d.datname"),
        owner("d.datdba"),
        ("Encoding", "pg_catalog.pg_encoding_to_char(d.encoding)"),
        ("Collate", "d.datcollate"),
        ("Ctype", "d.datctype"),
        ("ICU Locale", "d.daticulocale"),
        ("Locale Provider", provider),
        privileges("d.datacl"),
    ]
    tables = "pg_catalog.pg_database d"
    if asked.is_verbose:
        size = "pg_catalog.pg_size_pretty(pg_catalog.pg_database_size(d.datname))"
        columns += [
            ("Size", size),
            ("Tablespace", "t.spcname"),
            description("d.oid", "pg_database", "shobj_description"),
        ]
        tables += " JOIN pg_catalog.pg_tablespace t ON t.oid = d.dattablespace"
    where = conditions(asked.pattern, Columns("d.datname"), shell)
    return query_of(columns, tables, where, "1")


@dataclass(frozen=True, slots=True)
class Listing:
    title: str
    thing: str
    """What was not found, in the message that says so."""
    query: Callable[[Shell, Asked], str]
    is_quiet: bool = False
    """An empty list is told in a sentence."""


RELATIONS: Final = Listing("List of relations", "relation", relations, is_quiet=True)
SCHEMAS: Final = Listing("List of schemas", "schema", schemas)
FUNCTIONS: Final = Listing("List of functions", "function", functions)
TYPES: Final = Listing("List of data types", "type", types)
ACCESSES: Final = Listing("Access privileges", "relation", accesses)
EXTENSIONS: Final = Listing("List of installed extensions", "extension", extensions)
DATABASES: Final = Listing("List of databases", "database", databases)


def show(shell: Shell, listing: Listing, asked: Asked) -> None:
    found = shell.query(listing.query(shell, asked))
    if not found.rows and listing.is_quiet:
        named = "s" if asked.pattern is None else f' named "{asked.pattern}"'
        shell.say(f"Did not find any {listing.thing}{named}.\n")
        return
    shell.print_table(found.columns, found.types, found.rows, listing.title)


_ATTRIBUTES: Final = (
    ("rolsuper", True, "Superuser"),
    ("rolinherit", False, "No inheritance"),
    ("rolcreaterole", True, "Create role"),
    ("rolcreatedb", True, "Create DB"),
    ("rolcanlogin", False, "Cannot login"),
    ("rolreplication", True, "Replication"),
    ("rolbypassrls", True, "Bypass RLS"),
)


def show_roles(shell: Shell, asked: Asked) -> None:
    flags = ", ".join(f"r.{name}" for name, _, _ in _ATTRIBUTES)
    member = (
        "ARRAY(SELECT b.rolname FROM pg_catalog.pg_auth_members m"
        " JOIN pg_catalog.pg_roles b ON b.oid = m.roleid WHERE m.member = r.oid)"
    )
    about = "pg_catalog.shobj_description(r.oid, 'pg_authid')"
    where = ["r.rolname !~ '^pg_'"] if asked.hides_system else []
    where += conditions(asked.pattern, Columns("r.rolname"), shell)
    condition = f" WHERE {' AND '.join(where)}" if where else ""
    found = shell.query(
        f"SELECT r.rolname, {member}::text, {about}, {flags}"
        f" FROM pg_catalog.pg_roles r{condition} ORDER BY 1"
    )
    rows = []
    for name, groups, comment, *values in found.rows:
        told = zip(_ATTRIBUTES, values, strict=True)
        attributes = ", ".join(text for (_, wanted, text), value in told if value is wanted)
        rows.append((name, attributes, groups, comment)[: 4 if asked.is_verbose else 3])
    columns = ("Role name", "Attributes", "Member of", "Description")[: len(rows[0]) if rows else 3]
    shell.print_table(columns, ("text",) * len(columns), rows, "List of roles", ())
