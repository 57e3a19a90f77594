"""What only qserver has: older versions, branches, differences and live queries."""

from __future__ import annotations

from typing import Any, Final

from qserver.cli.command_line import moment
from qserver.cli.control import COUNT_COLUMNS
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
    shell, words = call.shell, call.words(5)
    if not words:
        newest = [
            (each["version"], each["time"], ", ".join(each["tables"]), each["rows_changed"])
            for each in shell.client.versions(shell.database, 20)
        ]
        columns = ("Version", "Time", "Tables", "Rows changed")
        types = ("bigint", "timestamptz", "text", "bigint")
        shell.print_table(columns, types, newest, "Newest versions")
        return
    is_counted = words[0] == "count"
    words, other = words[is_counted:], None
    if words and words[0] == "of":
        if len(words) == 1:
            raise InvalidRequest("\\diff of needs a database", hint="\\diff of main")
        other, words = plain_name(words[1]), words[2:]
    since, until = [*map(moment, words), None, None][:2]
    asked = shell.database, since, shell.as_of if until is None else until
    if is_counted:
        counts = shell.client.count_differences(*asked, from_database=other)
        rows = [tuple(each[name] for name in COUNT_COLUMNS) for each in counts]
        shell.print_table(tuple(COUNT_COLUMNS), tuple(COUNT_COLUMNS.values()), rows)
        return
    changes = shell.client.difference(*asked, from_database=other)
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
    Command(
        "\\diff [count] [of database] [version] [version]",
        "changes since a version, or from another database; alone: versions",
        _difference,
    ),
    Command("\\live [query]", "a query, and then its changes, until Ctrl-C", _live),
)
