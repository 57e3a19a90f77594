"""What a statement keeps is counted by its bytes, wherever it keeps it: a few long values in each
place where a plan holds rows, keys or arguments end the statement, instead of the process."""

from __future__ import annotations

from itertools import product
from typing import Final

import pytest

from qserver.errors import OutOfMemory, QserverError
from qserver.query.request import RequestContext
from qserver.sql.codegen.operators import PRODUCERS
from tests.sampling import sampled
from tests.sql.databases import opened_sql

ROWS: Final = 400
VALUE_BYTES: Final = 20_000
MEMORY_BYTES: Final = 1024 * 1024
"""An eighth of what the values of all rows take."""

_TEXT: Final = f"(repeat('x', {VALUE_BYTES}) || i)"
VALUES: Final = {
    "text": _TEXT,
    "bytea": f"{_TEXT}::bytea",
    "numeric": f"(repeat('9', {VALUE_BYTES}) || i)::numeric",
    "jsonb": f"to_jsonb({_TEXT})",
    "array": f"array_fill(i, ARRAY[{VALUE_BYTES // 16}])",
    "record": f"ROW(i, {_TEXT})",
}
"""By type: a long value that the statement computes for each row."""

_ROWS: Final = f"generate_series(1, {ROWS}) AS s(i)"
_MADE: Final = f"(SELECT {{x}} AS x, i FROM {_ROWS} OFFSET 1)"

PLACES: Final = {
    "Sort": (
        f"SELECT count(x) FROM (SELECT x FROM {_MADE} q ORDER BY i DESC OFFSET 1) r",
        f"SELECT count(*) FROM (SELECT i FROM {_ROWS} ORDER BY {{x}} OFFSET 1) r",
        f"SELECT count(*) FROM (SELECT i FROM {_ROWS} ORDER BY i % 2 DESC, {{x}} OFFSET 1) r",
    ),
    "TopN": (
        f"SELECT count(x) FROM (SELECT x FROM {_MADE} q ORDER BY i DESC LIMIT 500) r",
        f"SELECT count(*) FROM (SELECT i FROM {_ROWS} ORDER BY {{x}} LIMIT 500) r",
    ),
    "Window": (
        f"SELECT count(r) FROM (SELECT row_number() OVER (PARTITION BY {{x}}) r FROM {_ROWS}) q",
        f"SELECT count(r) FROM (SELECT row_number() OVER (ORDER BY {{x}}) r FROM {_ROWS}) q",
        f"SELECT count(r) FROM (SELECT rank() OVER (ORDER BY {{x}} DESC) r FROM {_ROWS}) q",
        f"SELECT count(r) FROM (SELECT rank() OVER (ORDER BY x) r FROM {_MADE} q) q",
        f"SELECT count(r) FROM (SELECT lag({{x}}) OVER (ORDER BY i) r FROM {_ROWS}) q",
        f"SELECT count(r) FROM (SELECT lead({{x}}, 2, {{x}}) OVER (ORDER BY i) r FROM {_ROWS}) q",
        f"SELECT count(r) FROM (SELECT first_value({{x}}) OVER (ORDER BY i) r FROM {_ROWS}) q",
        f"SELECT count(r) FROM (SELECT nth_value({{x}}, 2) OVER (ORDER BY i) r FROM {_ROWS}) q",
        f"SELECT count(r) FROM (SELECT count({{x}}) OVER (ORDER BY i ROWS 2 PRECEDING) r"
        f" FROM {_ROWS}) q",
        f"SELECT count(r) FROM (SELECT array_agg({{x}}) OVER (PARTITION BY i % 7) r"
        f" FROM {_ROWS}) q",
    ),
    "Aggregate": (
        f"SELECT count(m) FROM (SELECT i, max(({{x}})::text) AS m FROM {_ROWS} GROUP BY i) q",
        f"SELECT count(m) FROM (SELECT i, min(({{x}})::text) AS m FROM {_ROWS}"
        " GROUP BY ROLLUP (i)) q",
        f"SELECT count(*) FROM (SELECT {{x}} FROM {_ROWS} GROUP BY {{x}}) q",
        f"SELECT count(*) FROM (SELECT x, i FROM {_MADE} q GROUP BY CUBE (x, i)) q",
        f"SELECT count(*) FROM (SELECT i, array_agg({{x}}) FROM {_ROWS} GROUP BY i) q",
        f"SELECT count(DISTINCT {{x}}) FROM {_ROWS}",
        f"SELECT count(x ORDER BY x) FROM {_MADE} q",
        f"SELECT cardinality(array_agg(i ORDER BY {{x}})) FROM {_ROWS}",
        f"SELECT cardinality(array_agg({{x}} ORDER BY i)) FROM {_ROWS}",
        f"SELECT length(string_agg(({{x}})::text, ',')) FROM {_ROWS}",
        f"SELECT length(json_agg({{x}})::text) FROM {_ROWS}",
        f"SELECT length(jsonb_object_agg(i, {{x}})::text) FROM {_ROWS}",
        f"SELECT mode() WITHIN GROUP (ORDER BY {{x}}) IS NULL FROM {_ROWS}",
    ),
    "Distinct": (
        f"SELECT count(*) FROM (SELECT DISTINCT {{x}} FROM {_ROWS}) q",
        f"SELECT count(*) FROM (SELECT DISTINCT ON ({{x}}) i FROM {_ROWS}) q",
        f"SELECT count(x) FROM (SELECT DISTINCT ON (i) x FROM {_MADE} q ORDER BY i DESC) q",
    ),
    "SetOperation": (
        f"SELECT count(*) FROM (SELECT {{x}} FROM {_ROWS} UNION SELECT NULL) q",
        f"SELECT count(*) FROM (SELECT {{x}} FROM {_ROWS} EXCEPT SELECT NULL) q",
        f"SELECT count(*) FROM (SELECT {{x}} FROM {_ROWS} INTERSECT SELECT {{x}} FROM {_ROWS}) q",
        f"SELECT count(*) FROM (SELECT NULL EXCEPT ALL SELECT {{x}} FROM {_ROWS}) q",
    ),
    "Join": (
        f"SELECT count(*) FROM {_MADE} o JOIN {_MADE} q ON q.x = o.x",
        f"SELECT count(q.x), count(r.x) FROM {_MADE} r JOIN {_MADE} q ON q.i = r.i",
        f"SELECT count(x) FROM {_ROWS} LEFT JOIN {_MADE} q ON q.i = s.i AND q.x IS NOT NULL",
        f"SELECT count(x) FROM {_ROWS} FULL JOIN {_MADE} q ON q.i = s.i",
        f"SELECT count(x) FROM {_ROWS} LEFT JOIN {_MADE} q ON q.i < s.i AND q.x IS NOT NULL",
    ),
    "WithTables": (
        f"WITH q AS MATERIALIZED (SELECT {{x}} AS x FROM {_ROWS}) SELECT count(x) FROM q",
        f"WITH RECURSIVE r(x, i) AS (SELECT {{x}}, i FROM {_ROWS} UNION SELECT x, i + {ROWS}"
        f" FROM r WHERE i < 3) SELECT count(x) FROM r",
    ),
    "FunctionScan": (f"SELECT count(u) FROM unnest(ARRAY(SELECT {{x}} FROM {_ROWS})) AS u",),
    "subqueries": (
        f"SELECT cardinality(ARRAY(SELECT {{x}} FROM {_ROWS}))",
        f"SELECT NULL IN (SELECT {{x}} FROM {_ROWS})",
        "SELECT count((SELECT max(x) FROM (SELECT ({x})::text || o AS x"
        f" FROM generate_series(i, i) AS o) AS q)) FROM {_ROWS}",
    ),
    "changes": (f"CREATE TABLE made AS SELECT {{x}} AS x FROM {_ROWS}",),
}
"""By the plan node that keeps them: statements with a long value in each place."""

KEEPS_NOTHING: Final = {
    *("OneRow", "Scan", "Count", "Values", "Filter", "Project", "Limit", "CommonTableScan"),
    "Vectors",  # vectors have no long values; by rows, what it has below keeps them
}

CANNOT: Final = {
    ("record", "CREATE TABLE made"),
    ("record", "array_agg"),
    ("record", "ARRAY("),
    ("record", "unnest"),
}
"""Types that a place does not take."""


def test_all_nodes_are_here() -> None:
    names = {kind.__name__ for kind in PRODUCERS}
    assert names == (names & set(PLACES)) | KEEPS_NOTHING


@pytest.mark.parametrize("place", sampled(tuple(PLACES), 3))
async def test_long_values_are_counted(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RequestContext, "memory_bytes_most", MEMORY_BYTES)
    monkeypatch.setattr(RequestContext, "transaction_bytes_most", MEMORY_BYTES)
    # What is made between two pauses is counted, too, and must not help here.
    monkeypatch.setattr(RequestContext, "weigh", lambda self, value: value)
    kept = []
    async with opened_sql() as database:
        for (kind, value), shape in product(VALUES.items(), PLACES[place]):
            if any(kind == other and words in shape for other, words in CANNOT):
                continue
            try:
                await database.execute(shape.format(x=value))
            except OutOfMemory:
                continue
            except QserverError as error:
                kept.append(f"{kind}: {error.code} {error}: {shape}")
            else:
                kept.append(f"{kind}: {shape}")
    assert kept == []
