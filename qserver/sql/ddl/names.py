"""Names of definitions: their schema, whether they are free, and how to choose one.

A name without a schema is in the first schema of search_path that has it, and a new one in the
first that exists; in a stored text it is in `public` (`known_key`). A missing name is composed as
PostgreSQL does: `table_column_suffix`, shortened to 63 bytes if it is too long, with a number if it
is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count

from qserver.errors import (
    DuplicateObject,
    DuplicateTable,
    InvalidTableDefinition,
    UndefinedObject,
    UndefinedSchema,
    UndefinedTable,
    WrongObjectType,
)
from qserver.limits import IDENTIFIER_BYTES_MAX
from qserver.sql.ddl.port import DdlPort, refuse_other_database
from qserver.values.enumeration import Enumeration
from qserver.values.extensions import Extension
from qserver.values.identifiers import PUBLIC, catalog_key, qualified
from qserver.values.relations import Definition, Schema, Sequence, View, kind_of
from qserver.values.schema import Table
from qserver.values.shared_comments import SharedComment
from qserver.values.temporary import TEMPORARY


def new_place(work: DdlPort, name: tuple[str, ...], *, temporary: bool = False) -> tuple[str, str]:
    """Return the schema and the name that a new relation gets."""
    refuse_other_database(name, work.database)
    if temporary:
        if name[-2:-1] not in ((), (TEMPORARY,)):
            raise InvalidTableDefinition("cannot create temporary relation in non-temporary schema")
        return _temporary_place(work, name)
    if len(name) == 1:
        schema = _creation_schema(work)
        return _temporary_place(work, name) if schema == TEMPORARY else (schema, name[0])
    if name[-2] == TEMPORARY:
        return _temporary_place(work, name)
    require_schema(work, name[-2])
    return name[-2], name[-1]


def require_schema(work: DdlPort, schema: str) -> None:
    if not _exists(work, schema):
        raise UndefinedSchema(f'schema "{schema}" does not exist')


def _temporary_place(work: DdlPort, name: tuple[str, ...]) -> tuple[str, str]:
    work.statements.open_temporary()
    return TEMPORARY, name[-1]


def _creation_schema(work: DdlPort) -> str:
    """Return the first schema of search_path that exists."""
    for schema in work.statements.creation_path:
        if schema == TEMPORARY or _exists(work, schema):
            return schema
    raise UndefinedSchema("no schema has been selected to create in")


def _exists(work: DdlPort, schema: str) -> bool:
    return schema == PUBLIC or work.find(catalog_key(schema, "")) is not None


def known_key(name: tuple[str, ...]) -> str:
    """Return the catalog key of a name in a stored text."""
    return catalog_key(name[-2] if len(name) > 1 else PUBLIC, name[-1])


def shown_name(key: str) -> str:
    return key.rpartition("\0")[2]


def is_taken(work: DdlPort, key: str) -> bool:
    """Tell whether a relation, a type or an index has the key."""
    return work.find(key) is not None or work.transaction.catalog.index_owner(key) is not None


def require_free(work: DdlPort, key: str) -> None:
    """Refuse the name of an existing relation, type or index."""
    definition = work.find(key)
    name = shown_name(key)
    if isinstance(definition, Enumeration):
        raise DuplicateObject(
            f'type "{name}" already exists',
            hint="A relation has an associated type of the same name, so you must use a name"
            " that doesn't conflict with any existing type.",
        )
    if definition is not None or work.transaction.catalog.index_owner(key) is not None:
        raise DuplicateTable(f'relation "{name}" already exists', table=name)


def find_table(work: DdlPort, name: tuple[str, ...]) -> Table:
    """Return the table of that name; refuse other relations."""
    definition = find_relation(work, name)
    if isinstance(definition, Table):
        return definition
    raise WrongObjectType(f'"{name[-1]}" is not a table', table=name[-1])


def find_relation(work: DdlPort, name: tuple[str, ...]) -> Table | View | Sequence:
    definition = work.find(work.key(name))
    if definition is None or isinstance(
        definition, Enumeration | Extension | Schema | SharedComment
    ):
        raise UndefinedTable(f'relation "{".".join(name)}" does not exist', table=name[-1])
    return definition


def missing(kind: str, name: tuple[str, ...]) -> UndefinedTable | UndefinedObject:
    if kind == "type":
        return UndefinedObject(f'type "{".".join(name)}" does not exist')
    message = f'{kind} "{name[-1]}" does not exist'
    return UndefinedObject(message) if kind == "index" else UndefinedTable(message, table=name[-1])


def wrong_kind(kind: str, definition: Definition) -> WrongObjectType:
    article = "an" if kind == "index" else "a"
    hints = {
        "table": "Use DROP TABLE to remove a table.",
        "view": "Use DROP VIEW to remove a view.",
        "sequence": "Use DROP SEQUENCE to remove a sequence.",
        "index": "Use DROP INDEX to remove an index.",
        "type": "Use DROP TYPE to remove a type.",
        "schema": "Use DROP SCHEMA to remove a schema.",
    }
    name = definition.name
    return WrongObjectType(f'"{name}" is not {article} {kind}', hint=hints[kind_of(definition)])


def described(definition: Definition) -> str:
    """Return the description in error details: `table t`, `view v`."""
    schema = getattr(definition, "schema", PUBLIC)
    return f"{kind_of(definition)} {qualified(schema, definition.name)}"


# --- new names -----------------------------------------------------------------------------------


def choose(parts: Iterable[str], suffix: str, is_taken: Callable[[str], bool]) -> str:
    """Return the first free name of `table_column_suffix`, …suffix1, …suffix2 and so on."""
    first, *others = parts
    second = "_".join(others)
    for ending in _endings(suffix):
        name = _shortened(first, second, ending)
        if not is_taken(name):
            return name
    raise AssertionError("numbers do not end")


def _endings(suffix: str) -> Iterator[str]:
    yield suffix
    for number in count(1):
        yield f"{suffix}{number}"


def _shortened(first: str, second: str, ending: str) -> str:
    """Shorten the parts, the longer one first, until the whole name fits."""
    one, two = first.encode(), second.encode()
    room = IDENTIFIER_BYTES_MAX - len(ending.encode()) - 1 - (1 if two else 0)
    while len(one) + len(two) > room:
        if len(one) > len(two):
            one = one[:-1]
        else:
            two = two[:-1]
    texts = [part.decode(errors="ignore") for part in (one, two) if part]
    return "_".join([*texts, ending])


def choose_relation_name(work: DdlPort, schema: str, parts: Iterable[str], suffix: str) -> str:
    """Return a free name for an index or a sequence in a schema."""
    return choose(parts, suffix, lambda name: is_taken(work, catalog_key(schema, name)))


def constraint_names(table: Table) -> set[str]:
    """Return the names of a table's constraints, which are unique only within the table."""
    names = {check.name for check in table.checks}
    names |= {key.name for key in table.foreign_keys}
    names |= {index.name for index in table.indexes if index.constraint}
    return names | ({table.primary_key_name} if table.primary_key_name else set())
