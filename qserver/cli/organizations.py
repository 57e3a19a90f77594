"""`qserver organization …`: what organizations use and may use, for whoever runs the server."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any, Final

from qserver.cli.connection import connect
from qserver.cli.control import JsonObject, print_json
from qserver.cli.layouts import table
from qserver.client import Client
from qserver.errors import InvalidRequest

_USED_AS: Final = {"requests_per_minute": "requests_this_minute"}
"""The names of what is used, where they are not those of the limit."""
_UNITS: Final = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_NUMBER: Final = re.compile(r"([0-9]+) ?([KMGT]B)?", re.IGNORECASE)
_OF_THE_TIER: Final = "tier"


def run(options: argparse.Namespace) -> int:
    with connect(options) as client:
        return _list(client, options) if options.action == "list" else _change(client, options)


def _list(client: Client, options: argparse.Namespace) -> int:
    return _show(client.organizations(), options)


def _change(client: Client, options: argparse.Namespace) -> int:
    limits = dict(map(_limit, options.limits or ()))
    if options.tier is None and not limits:
        raise InvalidRequest("there is nothing to change", hint="Give --tier, --limit, or both.")
    made = client.change_organization(options.organization, options.tier, limits or None)
    return print_json(made) if options.json else _show([made], options)


def _limit(given: str) -> tuple[str, int | None]:
    """The name and the value of a limit; None stands for that of the tier."""
    name, equals, value = (part.strip() for part in given.partition("="))
    if value == _OF_THE_TIER:
        return name, None
    number = _NUMBER.fullmatch(value)
    if not equals or number is None:
        raise InvalidRequest(
            f"{given!r} is not NAME=VALUE",
            hint="The value is a number, such as 50 or 10GB, or the word `tier`.",
        )
    return name, int(number[1]) * _UNITS[(number[2] or "").upper()]


def _show(records: list[JsonObject], options: argparse.Namespace) -> int:
    if options.json:
        return print_json(records)
    rows = [row for each in records for row in _rows(each)]
    columns = "organization", "tier", "limit", "used", "most"
    sys.stdout.write(table(columns, ("text", "text", "text", "bigint", "bigint"), rows))
    return 0


def _rows(record: JsonObject) -> list[tuple[Any, ...]]:
    """A row for each limit of an organization, whose name stands in the first."""
    use, rows = record["use"], list[tuple[Any, ...]]()
    for name, most in record["limits"].items():
        used = use.get(_USED_AS.get(name, name))
        shown = (record["name"], record["tier"]) if not rows else ("", "")
        rows.append((*shown, name, "" if used is None else used, "" if most is None else most))
    return rows
