"""`qserver key …` and `qserver database …`: the control plane from a terminal.

A destructive command asks first, unless `--yes` is given; if standard input is no terminal, it
refuses and names the flag. A secret is printed once, on standard output; the note about it goes to
standard error, so that `--json` can be piped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from qserver.cli.connection import connect
from qserver.cli.layouts import table
from qserver.client import Client
from qserver.errors import InvalidRequest

JsonObject = dict[str, Any]

_KEY_COLUMNS: Final = {
    "id": "text",
    "name": "text",
    "prefix": "text",
    "state": "text",
    "scopes": "list",
    "databases": "list",
    "statements": "list",
    "created_at": "text",
    "expires_at": "text",
}
_DATABASE_COLUMNS: Final = {
    "id": "text",
    "name": "text",
    "state": "text",
    "tables": "bigint",
    "rows": "bigint",
    "size_bytes": "bigint",
    "created_at": "text",
    "branch_of": "text",
}
_VERSION_COLUMNS: Final = {
    "version": "bigint",
    "time": "text",
    "rows_changed": "bigint",
    "tables": "list",
    "request_id": "text",
}
_CHANGE_COLUMNS: Final = {
    "table": "text",
    "op": "text",
    "key": "json",
    "before": "json",
    "after": "json",
}
COUNT_COLUMNS: Final = {
    "table": "text",
    "schema": "bigint",
    "insert": "bigint",
    "update": "bigint",
    "delete": "bigint",
}
_ONCE = "This is the only time that the secret is shown: keep it now, the server cannot show it.\n"


def run_key(options: argparse.Namespace) -> int:
    return _run(_KEY_ACTIONS, options)


def run_database(options: argparse.Namespace) -> int:
    return _run(_DATABASE_ACTIONS, options)


def _run(
    actions: Mapping[str, Callable[[Client, argparse.Namespace], int]], options: argparse.Namespace
) -> int:
    with connect(options) as client:
        return actions[options.action](client, options)


# --- keys ----------------------------------------------------------------------------------------


def _create_key(client: Client, options: argparse.Namespace) -> int:
    made = client.create_key(
        options.name,
        options.scopes,
        options.databases,
        options.expires_in,
        _statements(options),
        options.bound,
    )
    return _show_secret(made, options)


def _statements(options: argparse.Namespace) -> dict[str, str] | None:
    """The statements of a file, and those on the command line."""
    found: dict[str, str] = {}
    if options.statements_from is not None:
        try:
            text = options.statements_from.read_bytes()
            found.update(msgspec.json.decode(text, type=dict[str, str]))
        except (OSError, UnicodeDecodeError, msgspec.MsgspecError) as error:
            raise InvalidRequest(
                f"{options.statements_from} cannot be read: {error}",
                hint='It holds a JSON object: {"name": "SELECT …"}.',
            ) from None
    for each in options.statements or ():
        name, equals, sql = each.partition("=")
        if not equals:
            raise InvalidRequest(f"{each!r} is not NAME=SQL")
        found[name.strip()] = sql.strip()
    return found or None


def _list_keys(client: Client, options: argparse.Namespace) -> int:
    return _show(client.keys(), _KEY_COLUMNS, options)


def _revoke_key(client: Client, options: argparse.Namespace) -> int:
    if not _confirmed(f"Revoke the key {options.id} and its sessions, at once?", options):
        return 1
    client.revoke_key(options.id)
    sys.stdout.write(f"Revoked {options.id}.\n")
    return 0


def _rotate_key(client: Client, options: argparse.Namespace) -> int:
    made = client.rotate_key(options.id, options.grace)
    return _show_secret(made, options)


# --- databases -----------------------------------------------------------------------------------


def _create_database(client: Client, options: argparse.Namespace) -> int:
    made = client.create_database(options.name)
    return _tell(made, f"Created the database {made['name']} ({made['id']}).\n", options)


def _branch_database(client: Client, options: argparse.Namespace) -> int:
    made = client.create_database(options.name, options.parent, options.as_of)
    text = (
        f"Created the database {made['name']} ({made['id']}), a branch of {made['branch_of']} at"
        f" version {made['branch_version']}.\n"
    )
    return _tell(made, text, options)


def _list_databases(client: Client, options: argparse.Namespace) -> int:
    return _show(client.databases(), _DATABASE_COLUMNS, options)


def _delete_database(client: Client, options: argparse.Namespace) -> int:
    if not _confirmed(f"Delete the database {options.name} and everything in it?", options):
        return 1
    client.delete_database(options.name)
    sys.stdout.write(f"Deleted {options.name}.\n")
    return 0


def _versions(client: Client, options: argparse.Namespace) -> int:
    return _show(client.versions(options.name, options.limit), _VERSION_COLUMNS, options)


def _difference(client: Client, options: argparse.Namespace) -> int:
    asked = options.name, options.since, options.until, options.tables
    if options.count:
        counts = client.count_differences(*asked, from_database=options.from_database)
        return _show(counts, COUNT_COLUMNS, options)
    changes = client.difference(*asked, from_database=options.from_database)
    return _show(changes, _CHANGE_COLUMNS, options)


def _restore_database(client: Client, options: argparse.Namespace) -> int:
    question = f"Make the database {options.name} what it was at {options.as_of}?"
    if not _confirmed(question, options):
        return 1
    newest = [each["version"] for each in client.versions(options.name, 1)]
    made = client.restore_database(options.name, options.as_of)
    text = (
        f"Version {made['version']} of {options.name} is what version {made['restored']} was.\n"
        f"To undo it: qserver database restore {options.name} {made['version'] - 1}\n"
    )
    if made["version"] in newest:
        text = f"{options.name} is what version {made['restored']} was already.\n"
    return _tell(made, text, options)


_KEY_ACTIONS: Final = {
    "create": _create_key,
    "list": _list_keys,
    "revoke": _revoke_key,
    "rotate": _rotate_key,
}
_DATABASE_ACTIONS: Final = {
    "create": _create_database,
    "branch": _branch_database,
    "list": _list_databases,
    "delete": _delete_database,
    "versions": _versions,
    "diff": _difference,
    "restore": _restore_database,
}

# --- output and questions ------------------------------------------------------------------------


def _show_secret(made: JsonObject, options: argparse.Namespace) -> int:
    if options.json:
        print_json(made)
    else:
        sys.stdout.write(f"{made['key']}\n")
        sys.stderr.write(f"The key {made['id']} ({made['name']}).\n")
    sys.stderr.write(_ONCE)
    return 0


def _tell(made: JsonObject, text: str, options: argparse.Namespace) -> int:
    if options.json:
        return print_json(made)
    sys.stdout.write(text)
    return 0


def _show(
    records: Sequence[JsonObject], columns: Mapping[str, str], options: argparse.Namespace
) -> int:
    if options.json:
        return print_json(records)
    rows = [
        tuple(_cell(each.get(name), kind) for name, kind in columns.items()) for each in records
    ]
    sys.stdout.write(table(tuple(columns), tuple(columns.values()), rows))
    return 0


def _cell(value: Any, kind: str) -> Any:
    if kind == "json":
        return value
    if isinstance(value, list | dict):
        return ", ".join(map(str, value))
    return "" if value is None else value


def print_json(value: Any) -> int:
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    sys.stdout.write(f"{text}\n")
    return 0


def _confirmed(question: str, options: argparse.Namespace) -> bool:
    if options.yes:
        return True
    if not sys.stdin.isatty():
        raise InvalidRequest(
            "nobody is here to confirm: standard input is no terminal",
            hint="Pass --yes to do it without being asked.",
        )
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    sys.stderr.write("Nothing was done.\n")
    return False
