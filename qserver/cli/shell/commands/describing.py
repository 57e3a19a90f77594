"""Commands that show what is in the database: \\d and its kin."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from qserver.cli.shell.catalog import lists, sources
from qserver.cli.shell.catalog.lists import Asked, Listing
from qserver.cli.shell.catalog.relations import show_relations
from qserver.cli.shell.commands.call import Call, Command
from qserver.cli.shell.failures import told

_FLAGS: Final = re.compile(r"(?P<name>\\[a-zA-Z]+?)(?P<flags>[S+]*)")
_RELATIONS: Final = re.compile(r"\\d(?P<kinds>[tvmisE]+)")
_FUNCTIONS: Final = re.compile(r"\\df(?P<kinds>[anpwt]*)")


def describing(name: str) -> Callable[[Call], None] | None:
    """The command with this name, which says what is asked: `\\dtv+`, `\\dfS`."""
    found = _FLAGS.fullmatch(name)
    if found is None:
        return None
    plain, flags = found["name"], found["flags"]
    listing, kinds = _LISTINGS.get(plain), ""
    if listing is None and (relations := _RELATIONS.fullmatch(plain)):
        listing, kinds = lists.RELATIONS, relations["kinds"]
    elif listing is None and (functions := _FUNCTIONS.fullmatch(plain)):
        listing, kinds = lists.FUNCTIONS, functions["kinds"]
    if listing is None and plain not in ("\\d", "\\du", "\\dg"):
        return None

    def run(call: Call) -> None:
        patterns: list[str | None] = [*patterns_of(call.line)]
        for pattern in patterns or [None]:
            asked = Asked(pattern, "+" in flags, "S" in flags, kinds)
            if plain in ("\\du", "\\dg"):
                lists.show_roles(call.shell, asked)
            elif listing is not None:
                lists.show(call.shell, listing, asked)
            elif pattern is None:
                everything = Asked(None, asked.is_verbose, asked.has_system, "tvmsE")
                lists.show(call.shell, lists.RELATIONS, everything)
            else:
                show_relations(call.shell, asked)

    return run


_LISTINGS: Final[dict[str, Listing]] = {
    "\\dn": lists.SCHEMAS,
    "\\dT": lists.TYPES,
    "\\dp": lists.ACCESSES,
    "\\z": lists.ACCESSES,
    "\\dx": lists.EXTENSIONS,
    "\\l": lists.DATABASES,
    "\\list": lists.DATABASES,
}


def patterns_of(line: str) -> list[str]:
    """The patterns of a line: blanks separate them, but for those in double quotes."""
    text = line.rstrip().removesuffix(";")
    return [found.group() for found in re.finditer(r'(?:"[^"]*"?|[^\s"])+', text)]


def _describe(call: Call) -> None:
    run = describing(call.name)
    assert run is not None, "the table has its name"
    run(call)


def _connection(call: Call) -> None:
    client = call.shell.client
    parts = urlsplit(client.url)
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    call.shell.write(
        f'You are connected to database "{call.shell.database}" on host "{parts.hostname}"'
        f' at port "{port}", by {parts.scheme.upper()}.\n'
    )


def _function(call: Call) -> None:
    text = sources.function_source(call.shell, sources.name_of(call.line, "function"))
    if call.name.endswith("+"):
        text = sources.numbered(text, "AS ")
    call.shell.write(f"{text}\n")


def _view(call: Call) -> None:
    text = sources.view_source(call.shell, sources.name_of(call.line, "view"))
    if call.name.endswith("+"):
        text = sources.numbered(text, None)
    call.shell.write(f"{text}\n")


def _errverbose(call: Call) -> None:
    failure = call.shell.last_failure
    if failure is None:
        call.shell.write("There is no previous error.\n")
        return
    call.shell.say(told(failure, verbosity="verbose"))


COMMANDS: Final = (
    Command("\\d[S+] [pattern]", "describe relations; alone: list them", _describe),
    Command("\\dt[S+] [pattern]", "list tables", _describe),
    Command("\\dv[S+] [pattern]", "list views", _describe),
    Command("\\di[S+] [pattern]", "list indexes", _describe),
    Command("\\ds[S+] [pattern]", "list sequences", _describe),
    Command("\\dn[S+] [pattern]", "list schemas", _describe),
    Command("\\df[anpw][S+] [pattern]", "list functions", _describe),
    Command("\\dT[S+] [pattern]", "list data types", _describe),
    Command("\\du[S+] [pattern]", "list roles", _describe, ("\\dg",)),
    Command("\\dp [pattern]", "list privileges", _describe, ("\\z",)),
    Command("\\dx[+] [pattern]", "list extensions", _describe),
    Command("\\l[+] [pattern]", "list databases", _describe, ("\\list",)),
    Command("\\sf[+] function", "show a function's definition", _function, ("\\sf+",)),
    Command("\\sv[+] view", "show a view's definition", _view, ("\\sv+",)),
    Command("\\conninfo", "show the database and the server", _connection),
    Command("\\errverbose", "show the last error with all that is known", _errverbose),
)
