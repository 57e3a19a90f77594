"""GET /v1/tables/{name}/rows: streams the rows of a table as CSV, JSON lines or a JSON array.

    ?columns=id,name&where=id > $1&params=[7]&order=name DESC&limit=10
    ──► SELECT "id", "name" FROM "t" WHERE (id > $1) ORDER BY "name" DESC LIMIT 10 ──► `streams`

`where` is parsed on its own first, so it is exactly one expression. Names are quoted.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final

import msgspec
import trio

from qserver.control.records import Grant
from qserver.errors import InvalidRequest, QserverError
from qserver.query.bulk import find_relation
from qserver.query.sql_database import Statement
from qserver.sql import parse_expression
from qserver.storage.catalog import Catalog
from qserver.values.identifiers import quoted
from qserver.values.relations import View
from qserver.values.schema import Table
from qserver.web.bulk.bulk import names_of
from qserver.web.calls import Facts, KeyedCall, Serving
from qserver.web.query_strings import read_query_string, whole_number
from qserver.web.route import Route
from qserver.web.statements.cached_reads import ReadCall, ReadEndpoint, typed_fields
from qserver.web.statements.requests import query_request
from qserver.web.statements.rows import RowEncoders
from qserver.web.streaming.streams import JsonArray, form_of

_DIRECTION: Final = re.compile(r"(?s)(.*?)(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?", re.I)
_OF_TEXT: Final = ("columns", "where", "order", "limit")
"""Parameters that become parts of the statement; the others are fields of its request."""

_encode: Final = msgspec.json.Encoder().encode


class RowsOutEndpoint(ReadEndpoint):
    def __init__(self, facts: Facts, route: Route, encoders: RowEncoders) -> None:
        super().__init__(facts, f"GET {route.path}", encoders)
        self.kind = RowsOutCall
        self.table = facts.request.path.split("/")[3]
        self.queries = route.parameters
        self.form = form_of(facts.headers.get(b"accept", b"")) or JsonArray


class RowsOutCall(ReadCall):
    endpoint: RowsOutEndpoint
    notes_leaving = False
    _given: dict[str, str]
    _where_at = 0

    def limit(self, grant: Grant) -> None:
        KeyedCall.limit(self, grant)

    def run(self, body: bytes) -> Serving:
        self.check_head()
        self._given = given = read_query_string(self.endpoint.request.query, self.endpoint.queries)
        fields = typed_fields({name: given[name] for name in given if name not in _OF_TEXT})
        request = query_request(b"", _encode({**fields, "sql": "-"}))
        self._statements = (Statement(request.sql, request.params),)
        if not self.use_nowait(request):
            yield from self.use()
        assert self._opened is not None
        wanted, source = self._options.freshness, self._opened.sql
        snapshot = source.snapshots.take_fresh(wanted)
        if snapshot is None:
            until = trio.current_time() + self.seconds_left()
            snapshot = yield partial(source.wait_fresh, wanted, until)
        sql = self._text(snapshot.catalog)
        self._statements = (Statement(sql, request.params),)
        return (yield from self._open_stream())

    def _text(self, catalog: Catalog) -> str:
        given = self._given
        columns = names_of(given["columns"]) if "columns" in given else None
        text = "SELECT * FROM " if columns is None else f"SELECT {_listed(columns)} FROM "
        text += _target(catalog, self.endpoint.table)
        if "where" in given:
            parse_expression(given["where"])
            text += "\nWHERE (\n"
            self._where_at = len(text)
            text += given["where"] + "\n)"
        if "order" in given:
            text += f"\nORDER BY {_ordered(given['order'])}"
        if "limit" in given:
            text += f"\nLIMIT {whole_number('limit', given['limit'], 0)}"
        return text

    def known(self, error: Exception) -> QserverError:
        """The error, with a position in `where`, if there: the rest of the text is not theirs."""
        known = super().known(error)
        if known.position is None:
            return known
        if "where" not in self._given:
            known.position = None
        elif self._where_at:
            position = known.position - self._where_at
            known.position = position if 0 < position <= len(self._given["where"]) + 1 else None
        return known


def _target(catalog: Catalog, name: str) -> str:
    """The SQL of a relation's name: a dot may follow a schema, or be part of the name."""
    found = find_relation(catalog, name)
    if isinstance(found, Table | View):
        return ".".join(map(quoted, found.path))
    schema, dot, rest = name.partition(".")
    return f"{quoted(schema)}.{quoted(rest)}" if dot and rest else quoted(name)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(quoted, names))


def _ordered(text: str) -> str:
    """The ORDER BY list: names with ASC or DESC, and where NULLs go."""
    items = []
    for item in text.split(","):
        match = _DIRECTION.fullmatch(item.strip())
        assert match is not None, "it matches everything"
        name, direction, nulls = match.groups()
        if not name:
            raise InvalidRequest(
                "order is names of columns with commas between them",
                hint="Each may be followed by ASC or DESC, and NULLS FIRST or NULLS LAST.",
            )
        words = [direction, f"nulls {nulls}" if nulls else None]
        items.append(" ".join([quoted(name), *[each.upper() for each in words if each]]))
    return ", ".join(items)
