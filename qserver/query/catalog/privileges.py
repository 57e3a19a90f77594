"""has_table_privilege and its kin: what a role may do with an object.

There is one role that anybody is, and it may do everything; what a key may do is another matter.
PUBLIC, and each predefined role, has what PostgreSQL gives it without a GRANT. So the answers are
simple, but the questions are checked as PostgreSQL does: an object, a role, a column or a privilege
that there is not is an error, and an oid that nothing has gives NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from qserver.errors import (
    InvalidParameterValue,
    InvalidTextRepresentation,
    UndefinedColumn,
    UndefinedObject,
    UndefinedSchema,
    UndefinedTable,
    UnknownDatabase,
    WrongObjectType,
)
from qserver.functions.catalog_functions import PRIVILEGES
from qserver.query.catalog.data import recorded_by, relations
from qserver.query.catalog.objects import CatalogObjects as Objects
from qserver.query.catalog.parts import columns_of
from qserver.query.catalog.roles import PREDEFINED, ROLES, is_member
from qserver.query.catalog.rows_of_relations import SYSTEM_COLUMNS
from qserver.query.catalog.world import DATABASE, OWNER
from qserver.values.identifiers import identifiers
from qserver.values.relations import Sequence, View
from qserver.values.schema import Table
from qserver.values.types import Kind

PUBLIC_ROLE: Final = 0
_OF_ROLES: Final = {
    PREDEFINED["pg_read_all_data"]: frozenset({"select"}),
    PREDEFINED["pg_write_all_data"]: frozenset({"insert", "update", "delete"}),
}
"""What a predefined role may do with every table and sequence; all schemas it may use."""
NO_LONGER: Final = "rule"
"""A privilege that PostgreSQL had once: nobody has it."""
_GRANTABLE: Final = " with grant option"

Find = Callable[[Objects, Any], int | None]
"""Returns the oid of what a name or an oid means; None if nothing has the oid."""


class Sort(NamedTuple):
    """A sort of objects: how they are found, what may be granted, and what everybody has."""

    find: Find
    words: frozenset[str]
    of_public: frozenset[str] = frozenset()


# --- roles ----------------------------------------------------------------------------------------


def _role(about: Any, *, may_be_public: bool) -> int:
    if not isinstance(about, str):
        return int(about)
    if may_be_public and about == "public":
        return PUBLIC_ROLE
    if about not in ROLES:
        raise UndefinedObject(f'role "{about}" does not exist')
    return ROLES[about]


def has_role(objects: Objects, *arguments: Any) -> bool:
    *users, about, text = arguments
    user = _role(users[0], may_be_public=False) if users else OWNER
    role = _role(about, may_be_public=False)
    ends = ("", _GRANTABLE, " with admin option")
    known = {word + end for word in ("usage", "member", "set") for end in ends}
    _checked(text, lambda word: word in known)
    return is_member(user, role)


# --- objects --------------------------------------------------------------------------------------


def _relation(objects: Objects, about: Any) -> int | None:
    if not isinstance(about, str):
        return int(about) if objects.class_place(about) is not None else None
    schemas = identifiers(about)[:-1]
    if schemas and not objects.world.schema_oid(schemas[-1]):
        raise UndefinedSchema(f'schema "{schemas[-1]}" does not exist')
    found = objects.find_class(about)
    if found is None:
        raise UndefinedTable(f'relation "{about}" does not exist')
    return found


def _sequence(objects: Objects, about: Any) -> int | None:
    found = _relation(objects, about)
    if found is not None and not any(
        isinstance(each, Sequence) for each in objects.world.with_oid(found)
    ):
        raise WrongObjectType(f'"{(objects.class_place(found) or ("", ""))[1]}" is not a sequence')
    return found


def _schema(objects: Objects, about: Any) -> int | None:
    if not isinstance(about, str):
        return int(about) if objects.schema_name(about) is not None else None
    found = objects.world.schema_oid(about)
    if not found:
        raise UndefinedSchema(f'schema "{about}" does not exist')
    return found


def _database(objects: Objects, about: Any) -> int | None:
    if not isinstance(about, str):
        return DATABASE if about == DATABASE else None
    if about != objects.world.server.database:
        raise UnknownDatabase(f'database "{about}" does not exist')
    return DATABASE


def _read(kind: Kind, objects: Objects, about: Any) -> int | None:
    if isinstance(about, str):
        if kind is Kind.REGPROCEDURE and "(" not in about:
            raise InvalidTextRepresentation("expected a left parenthesis")
        return int(objects.read(kind, about))
    shown = objects.named(kind, about)
    return None if shown.text == str(int(about)) or not about else int(about)


def _recorded(table: str, column: str, what: str, objects: Objects, about: Any) -> int | None:
    if isinstance(about, str):
        for row in recorded_by(table, column).get(about, ()):
            return int(row[0])
        raise UndefinedObject(f'{what} "{about}" does not exist')
    return int(about) if about in recorded_by(table, "oid") else None


_OF_COLUMNS: Final = frozenset({"select", "insert", "update", "references"})

SORTS: Final[Mapping[str, Sort]] = {
    "table": Sort(
        _relation,
        _OF_COLUMNS | {"delete", "truncate", "trigger", NO_LONGER},
    ),
    "sequence": Sort(_sequence, frozenset({"usage", "select", "update"})),
    "any_column": Sort(_relation, _OF_COLUMNS),
    "column": Sort(_relation, _OF_COLUMNS),
    "schema": Sort(_schema, frozenset({"create", "usage"})),
    "database": Sort(
        _database,
        frozenset({"create", "temporary", "temp", "connect"}),
        frozenset({"temporary", "temp", "connect"}),
    ),
    "function": Sort(
        partial(_read, Kind.REGPROCEDURE), frozenset({"execute"}), frozenset({"execute"})
    ),
    "language": Sort(
        partial(_recorded, "pg_language", "lanname", "language"),
        frozenset({"usage"}),
        frozenset({"usage"}),
    ),
    "type": Sort(partial(_read, Kind.REGTYPE), frozenset({"usage"}), frozenset({"usage"})),
    "tablespace": Sort(
        partial(_recorded, "pg_tablespace", "spcname", "tablespace"), frozenset({"create"})
    ),
    "server": Sort(
        partial(_recorded, "pg_foreign_server", "srvname", "server"), frozenset({"usage"})
    ),
    "foreign_data_wrapper": Sort(
        partial(_recorded, "pg_foreign_data_wrapper", "fdwname", "foreign-data wrapper"),
        frozenset({"usage"}),
    ),
    "parameter": Sort(lambda objects, about: OWNER, frozenset({"set", "alter system"})),
}
"""By what stands between has_ and _privilege."""


# --- columns --------------------------------------------------------------------------------------


def _has_column(objects: Objects, relation: int | None, about: Any) -> bool:
    """Tell whether a relation has a column; raise if it has none of the name."""
    if relation is None:
        return False
    found = dict(_columns(objects, relation))
    if not isinstance(about, str):
        return int(about) in found
    if about not in found.values():
        shown = (objects.class_place(relation) or ("", ""))[1]
        raise UndefinedColumn(f'column "{about}" of relation "{shown}" does not exist')
    return True


def _columns(objects: Objects, relation: int) -> Iterator[tuple[int, str]]:
    for each in objects.world.with_oid(relation):
        if isinstance(each, Table | View):
            for number, column in (*SYSTEM_COLUMNS, *columns_of(each)):
                yield number, column.name
    for data in relations().values():
        if data.oid == relation:
            yield from enumerate(data.names, 1)


# --- the functions --------------------------------------------------------------------------------


def _checked(text: str, is_known: Callable[[str], bool]) -> list[str]:
    """Return the privileges that a text lists, with commas between them."""
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if not is_known(word.lower()):
            raise InvalidParameterValue(f'unrecognized privilege type: "{word}"')
    return [word.lower() for word in words]


def _asking(name: str, objects: Objects, *arguments: Any) -> bool | None:
    sort = SORTS[name]
    count = PRIVILEGES[f"has_{name}_privilege"] + 1
    *users, text = arguments
    about = users[len(arguments) - count :]
    user = OWNER if len(about) == len(users) else _role(users[0], may_be_public=True)
    found = sort.find(objects, about[0])
    is_there = found is not None
    if name == "column":
        is_there = _has_column(objects, found, about[1])
    words = _checked(text, lambda word: word.removesuffix(_GRANTABLE) in sort.words)
    if not is_there:
        return None
    if user == OWNER:
        return words != [NO_LONGER]
    if user in _OF_ROLES and name == "schema":
        return "usage" in words
    has = sort.of_public | _OF_ROLES.get(user, frozenset())
    return not has.isdisjoint(words)


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **{f"has_{name}_privilege": partial(_asking, name) for name in SORTS},
    "pg_has_role": has_role,
}
