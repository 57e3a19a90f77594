"""CREATE EXTENSION, and statements about roles, the database and its server.

There is one role, and a server has its settings from its environment. So these statements succeed
where they ask for what is so anyway, and are refused with a word on what to do instead where
somebody could rely on them:

    CREATE EXTENSION              of those whose functions are there; it is kept, and shown
    ALTER DEFAULT PRIVILEGES      checks what it names, as GRANT does
    ALTER ROLE … SET, ALTER DATABASE … SET, ALTER SYSTEM SET     to the default only
    CREATE ROLE                   refused: what a client may do, its key says
    DROP FUNCTION and the like    finds none; see `absent_objects`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from qserver.errors import (
    DependentObjectsStillExist,
    DuplicateObject,
    FeatureNotSupported,
    InvalidParameterValue,
    ReservedName,
    UndefinedObject,
)
from qserver.query.absent_objects import drop_absent
from qserver.query.catalog.roles import NAME, PREDEFINED
from qserver.query.cursor import Cursor, StatementSteps, rows_at_once
from qserver.query.maintenance import (
    ROLES,
    check_database,
    check_privilege,
    check_role,
    check_schema,
)
from qserver.query.settings.values import DEFAULTS
from qserver.query.statement_port import StatementPort
from qserver.sql import absent_kinds, ast
from qserver.values.extensions import AVAILABLE, PLPGSQL, Extension
from qserver.values.identifiers import PUBLIC
from qserver.values.notices import Notice
from qserver.values.shared_comments import SharedComment

_KEYS: Final = "There is one role, qserver. What a client may do, its key says."
_RESERVED: Final = 'Role names starting with "pg_" are reserved.'
_TRUE_OF_THE_ROLE: Final = frozenset(
    {
        *("superuser", "createdb", "createrole", "inherit", "login", "replication"),
        "bypassrls",
    }
)


def administer(run: StatementPort, node: ast.Administer, literals: Sequence[Any]) -> Cursor:
    return Cursor(_administer(run, node), run.context)


def _administer(run: StatementPort, node: ast.Administer) -> StatementSteps:
    run.check_define()
    _ACTIONS[node.action, node.what](run, node)
    return (yield from rows_at_once([]))


# --- extensions -----------------------------------------------------------------------------------


def _find(run: StatementPort, name: str) -> Extension | None:
    found = run.transaction.find_definition(Extension.key_of(name))
    if found is None and name == PLPGSQL:
        return Extension(PLPGSQL, "pg_catalog")
    assert found is None or isinstance(found, Extension)
    return found


def _notice(run: StatementPort, text: str, code: str = "00000") -> None:
    run.context.give_notice(Notice("NOTICE", code, text))


def _create_extension(run: StatementPort, node: ast.Administer) -> None:
    (name,) = node.names
    if _find(run, name) is not None:
        if not node.missing_ok:
            raise DuplicateObject(f'extension "{name}" already exists')
        _notice(run, f'extension "{name}" already exists, skipping', "42710")
        return
    available = AVAILABLE.get(name)
    if available is None:
        raise FeatureNotSupported(
            f'extension "{name}" is not available',
            hint=f"There are {', '.join(AVAILABLE)}.",
        )
    options = dict(zip(node.words[::2], node.words[1::2], strict=True))
    if options.get("version", available.version) != available.version:
        raise InvalidParameterValue(
            f'extension "{name}" has no version "{options["version"]}"',
            hint=f"It has version {available.version}.",
        )
    schema = options.get("schema")
    if schema is None:
        schema = next((each for each in run.path if run.names.has_schema(each)), PUBLIC)
    check_schema(run, schema)
    extension = Extension(name, schema)
    run.transaction.define(extension.key, extension)


def _drop_extensions(run: StatementPort, node: ast.Administer) -> None:
    for name in node.names:
        found = _find(run, name)
        if found is None and not node.missing_ok:
            raise UndefinedObject(f'extension "{name}" does not exist')
        if found is None:
            _notice(run, f'extension "{name}" does not exist, skipping')
        elif name == PLPGSQL:
            raise FeatureNotSupported("the extension plpgsql is always there")
        else:
            run.transaction.define(found.key, None)


def _found(run: StatementPort, name: str) -> Extension:
    found = _find(run, name)
    if found is None:
        raise UndefinedObject(f'extension "{name}" does not exist')
    return found


def _alter_extension(run: StatementPort, node: ast.Administer) -> None:
    (name,), words = node.names, node.words
    found = _found(run, name)
    version = AVAILABLE[name].version
    if words in (("update",), ("update", "to", version)):
        _notice(run, f'version "{version}" of extension "{name}" is already installed')
    elif words[:2] == ("set", "schema") and len(words) == 3 and name != PLPGSQL:
        check_schema(run, words[2])
        run.transaction.define(found.key, replace(found, schema=words[2]))
    else:
        raise FeatureNotSupported(
            "of an extension only the schema can be changed", hint="ALTER EXTENSION … SET SCHEMA …"
        )


def _comment_on_extension(run: StatementPort, node: ast.Administer) -> None:
    found = _found(run, node.names[0])
    if found.name != PLPGSQL:
        comments = (("", node.text),) if node.text else ()
        run.transaction.define(found.key, replace(found, comments=comments))


# --- roles ----------------------------------------------------------------------------------------


def _create_role(run: StatementPort, node: ast.Administer) -> None:
    (name,) = node.names
    if name in ROLES:
        raise DuplicateObject(f'role "{name}" already exists')
    if name.startswith("pg_"):
        raise ReservedName(f'role name "{name}" is reserved', detail=_RESERVED)
    raise FeatureNotSupported("CREATE ROLE is not supported", hint=_KEYS)


def _drop_roles(run: StatementPort, node: ast.Administer) -> None:
    for name in node.names:
        if name in PREDEFINED:
            raise DependentObjectsStillExist(
                f"cannot drop role {name} because it is required by the database system"
            )
        if name in ROLES:
            raise FeatureNotSupported("the role qserver cannot be dropped", hint=_KEYS)
        if not node.missing_ok:
            check_role(name)
        _notice(run, f'role "{name}" does not exist, skipping')


def _alter_role(run: StatementPort, node: ast.Administer) -> None:
    (name,), words = node.names, node.words
    if name in PREDEFINED:
        raise ReservedName(f'role name "{name}" is reserved', detail=_RESERVED)
    if name != "all":
        check_role(name)
    if words[:1] in (("set",), ("reset",)):
        _change_setting("ALTER ROLE", words)
    elif not _TRUE_OF_THE_ROLE.issuperset(words):
        raise FeatureNotSupported("the role qserver cannot be changed", hint=_KEYS)


def _check_roles(run: StatementPort, node: ast.Administer) -> None:
    for name in node.roles or node.names:
        check_role(name)


def _drop_owned(run: StatementPort, node: ast.Administer) -> None:
    _check_roles(run, node)
    raise DependentObjectsStillExist(
        "cannot drop objects owned by role qserver because they are required by the database"
        " system",
        hint="Drop the schemas, or delete the database.",
    )


def _default_privileges(run: StatementPort, node: ast.Administer) -> None:
    _check_roles(run, node)
    for schema in node.names:
        check_schema(run, schema)
    words = " ".join(node.words).removeprefix("grant option for ")
    for privilege in words.split(" , "):
        if privilege not in ("execute", "usage", "create"):
            check_privilege("table", privilege, ())


# --- the database and its server ------------------------------------------------------------------


def _alter_database(run: StatementPort, node: ast.Administer) -> None:
    (name,), words = node.names, node.words
    check_database(run, name)
    if words[:2] == ("owner", "to") and len(words) == 3:
        check_role(words[2])
    elif words[:1] in (("set",), ("reset",)) and words[1:2] != ("tablespace",):
        _change_setting("ALTER DATABASE", words)
    elif words != ("refresh", "collation", "version"):
        raise FeatureNotSupported(
            f"ALTER DATABASE … {' '.join(words[:2]).upper()} is not supported",
            hint="PATCH /v1/databases/{database} changes a database.",
        )


def _comment_on_database(run: StatementPort, node: ast.Administer) -> None:
    (name,) = node.names
    if name == run.context.database:
        _keep_comment(run, node)
    else:
        text = f'database "{name}" does not exist'
        run.context.give_notice(Notice("WARNING", "3D000", text))


def _comment_on_role(run: StatementPort, node: ast.Administer) -> None:
    _check_roles(run, node)
    if node.names[0] == NAME:
        _keep_comment(run, node)
    elif node.names[0] in PREDEFINED:
        raise FeatureNotSupported("a predefined role can have no comment", hint=_KEYS)


def _keep_comment(run: StatementPort, node: ast.Administer) -> None:
    comment = SharedComment(node.what, node.text) if node.text else None
    run.transaction.define(SharedComment.key_of(node.what), comment)


def _alter_system(run: StatementPort, node: ast.Administer) -> None:
    _change_setting("ALTER SYSTEM", node.words)


def _change_setting(statement: str, words: tuple[str, ...]) -> None:
    """Accept a setting that is what it would be anyway; refuse another."""
    if words[0] == "reset":
        if words[1:] != ("all",):
            DEFAULTS.shown(".".join(_without_dots(words[1:])))
        return
    at = next((at for at, word in enumerate(words) if word in ("to", "=", "from")), 2)
    name = ".".join(_without_dots(words[1:at]))
    values = [word for word in words[at + 1 :] if word != ","]
    if name == "time" and words[1:3] == ("time", "zone"):
        name, values = "timezone", list(words[3:])
    now = DEFAULTS.shown(name) or ""
    wanted = DEFAULTS.set(name, values).shown(name)
    if values == ["default"] or words[at] == "from" or wanted == now:
        return
    raise FeatureNotSupported(
        f"{statement} cannot change {name}",
        hint="SET it in each session, as an option of the connection, or in the field settings of"
        " a request.",
    )


def _without_dots(words: Sequence[str]) -> list[str]:
    return [word for word in words if word != "."]


def _label(run: StatementPort, node: ast.Administer) -> None:
    raise InvalidParameterValue("no security label providers have been loaded")


_ACTIONS: Final[Mapping[tuple[str, str], Callable[[StatementPort, ast.Administer], None]]] = {
    ("create", "extension"): _create_extension,
    ("drop", "extension"): _drop_extensions,
    ("alter", "extension"): _alter_extension,
    ("comment", "extension"): _comment_on_extension,
    ("create", "role"): _create_role,
    ("drop", "role"): _drop_roles,
    ("alter", "role"): _alter_role,
    ("comment", "role"): _comment_on_role,
    ("reassign", "owned"): _check_roles,
    ("drop", "owned"): _drop_owned,
    ("alter", "default privileges"): _default_privileges,
    ("alter", "database"): _alter_database,
    ("comment", "database"): _comment_on_database,
    ("alter", "system"): _alter_system,
    ("label", "security"): _label,
    **{("drop", kind): drop_absent for kind in sorted(set(absent_kinds.HEADS.values()))},
}
