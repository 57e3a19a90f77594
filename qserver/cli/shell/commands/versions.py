"""What only qserver has: older versions, branches, differences and live queries."""

from __future__ import annotations

from typing import Any, Final

from qserver.cli.command_line import moment
from qserver.cli.shell.commands.call import Call, Command
from qserver.cli.shell.copying_in_bulk import plain_name
from qserver.cli.shell.failures import StatementFailed
from qserver.cli.splitting import Statement
from qserver.errors import InvalidRequest, QserverError

_DIFF_COLUMNS: Final = ("table", "op", "key", "before", "after")
_DIFF_TYPES: Final = ("text", "text", "jsonb", "jsonb", "jsonb")


def _as_of(call: Call) -> None:
    shell, argument = call.shell, " ".join(call.words())
    if shell.in_transaction:
        raise InvalidRequest("a transaction is open", hint="End it with COMMIT or ROLLBACK first.")
    if argument in ("", "now"):
        shell.as_of = None
        shell.note("Statements read the newest version.\n")
        return
    found = shell.client.query("SELECT 1", as_of=moment(argument))
    shell.as_of = found.version
    shell.note(f"Statements read version {found.version}, until \\asof now.\n")


def _branch(call: Call) -> None:
    shell, words = call.shell, call.words(1)
    if not words:
        found = [
            (each["name"], each["branch_of"], each.get("branch_version"), each["state"])
            for each in shell.client.databases()
            if each.get("branch_of")
        ]
        columns, types = ("Name", "Branch of", "At version", "State"), ("text", "text", "bigint")
        shell.print_table(columns, (*types, "text"), found, "List of branches")
        return
    if shell.in_transaction:
        raise InvalidRequest(
            "a transaction is open, which a branch would not have",
            hint="End it with COMMIT or ROLLBACK first.",
        )
    made = shell.client.create_database(plain_name(words[0]), shell.database, shell.as_of)
    shell.note(
        f"Created the database {made['name']}, a branch of {made['branch_of']} at version"
        f" {made['branch_version']}. \\c {made['name']} uses it.\n"
    )


def _difference(call: Call) -> None:
    shell, words = call.shell, call.words(2)
    if not words:
        newest = [
            (each["version"], each["time"], ", ".join(each["tables"]), each["rows_changed"])
            for each in shell.client.versions(shell.database, 20)
        ]
        columns = ("Version", "Time", "Tables", "Rows changed")
        types = ("bigint", "timestamptz", "text", "bigint")
        shell.print_table(columns, types, newest, "Newest versions")
        return
    since = moment(words[0])
    until = moment(words[1]) if len(words) > 1 else shell.as_of
    changes = shell.client.difference(shell.database, since, until)
    shell.print_table(_DIFF_COLUMNS, _DIFF_TYPES, [_change(each) for each in changes])


def _change(change: dict[str, Any]) -> tuple[Any, ...]:
    if change.get("definition") is not None:
        before, after = change["definition"]["before"], change["definition"]["after"]
        return change["table"], change["op"], None, before, after
    return tuple(change.get(name) for name in _DIFF_COLUMNS)


def _live(call: Call) -> None:
    shell = call.shell
    text = call.line.rstrip(";").rstrip()
    if not text:
        text = call.before.text if call.before is not None else shell.last_query
    if not text:
        raise InvalidRequest("\\live needs a query", hint="\\live SELECT …, or run one before.")
    try:
        shell.watch(text)
    except KeyboardInterrupt:
        shell.say("\n")
    except QserverError as error:  # its position is one of the query, not of the command
        raise StatementFailed(Statement(text, call.at), error) from error


COMMANDS: Final = (
    Command("\\asof version|time|now", "read the database as it was; writes are refused", _as_of),
    Command("\\branch [name]", "make a branch of the database; alone: list branches", _branch),
    Command("\\diff [version] [version]", "changes since a version; alone: versions", _difference),
    Command("\\live [query]", "a query, and then its changes, until Ctrl-C", _live),
)
