"""Every aggregate and window function of the catalogue, and every type of key, over many rows.

`sweep` measures single calls. What a statement does at its end is one step as well: an aggregate
is finished, a list is sorted, a set is hashed. So here whole statements run, and each step of the
event loop is measured: the processor time between two moments at which others may run. The
statements come from the catalogue: what is added to it is covered from that day.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from random import Random
from time import thread_time
from typing import Final

import trio
from trio.lowlevel import Task, add_instrument, remove_instrument

from qserver.errors import QserverError
from qserver.functions.all_functions import AGGREGATES
from qserver.query.sql_database import SqlDatabase

_MANY: Final = "generate_series(1, 8000) AS s(i)"
_SOME: Final = "generate_series(1, 3000) AS s(i)"
_FEW: Final = "generate_series(1, 200) AS s(i)"

VALUES: Final[dict[str, tuple[str, str]]] = {
    "integer": ("i % 5000", _MANY),
    "bigint": ("i::bigint * 1000003 % 700001", _MANY),
    "smallint": ("(i % 30000)::smallint", _MANY),
    "double precision": ("i::double precision / 7", _MANY),
    "real": ("i::real / 7", _MANY),
    "numeric": ("i::numeric / 7", _MANY),
    "numeric, long": ("(repeat('9', 20000) || i)::numeric", _FEW),
    "boolean": ("i % 3 = 0", _MANY),
    "text": ("'row ' || i * 7919 % 100003", _MANY),
    "text, alike": ("repeat('x', 5000) || i * 7919 % 3001", _SOME),
    "text, long": ("repeat('ä', 50000) || i", _FEW),
    "bytea": ("('row ' || i)::bytea", _MANY),
    "date": ("DATE '2000-01-01' + i % 3000", _MANY),
    "timestamp": ("TIMESTAMP '2000-01-01' + i * INTERVAL '1 minute'", _MANY),
    "timestamptz": ("TIMESTAMPTZ '2000-01-01' + i * INTERVAL '1 minute'", _MANY),
    "interval": ("i % 1000 * INTERVAL '1 minute'", _MANY),
    "jsonb": ("to_jsonb(i)", _MANY),
    "jsonb, objects": ("jsonb_build_object('k', i, 'a', jsonb_build_array(i, 1.5))", _MANY),
    "jsonb, long": ("('[' || repeat('1, ', 3000) || i || ']')::jsonb", _SOME),
    "json": ("json_build_object('k', i)", _MANY),
    "integer[]": ("ARRAY[i % 100, i]", _MANY),
    "integer[], long": ("array_fill(1, ARRAY[3000]) || i", _SOME),
    "text[]": ("ARRAY['a', i::text]", _MANY),
    "numeric[]": ("ARRAY[i / 7.0, i]", _MANY),
    "record": ("ROW(i % 100, 'row ' || i)", _MANY),
}
"""An expression over the rows of a source, for each type; the long ones have fewer rows."""

_FORMS: Final = (
    "SELECT {call} FROM {source}",
    "SELECT {distinct} FROM {source}",
    "SELECT {ordered} FROM {source}",
    "SELECT count(v) FROM (SELECT {call} OVER (ORDER BY i) AS v FROM {source}) q",
    "SELECT count(v) FROM (SELECT {call} OVER (ORDER BY i ROWS 3 PRECEDING) AS v FROM {source}) q",
    "SELECT count(v) FROM (SELECT i % 1000, {call} AS v FROM {source} GROUP BY 1) q",
    "SELECT count(v) FROM (SELECT i % 70, {call} AS v FROM {source} GROUP BY 1) q",
)
"""What an aggregate is called in."""

_KEYS: Final = (
    "SELECT count(*) FROM (SELECT {value} AS x FROM {source} ORDER BY 1 OFFSET 1) q",
    "SELECT {value} AS x FROM {source} ORDER BY 1 DESC LIMIT 500",
    "SELECT count(*) FROM (SELECT {value} AS x FROM {source} GROUP BY 1) q",
    "SELECT count(*) FROM (SELECT DISTINCT {value} AS x FROM {source}) q",
    "SELECT count(*) FROM (SELECT DISTINCT ON ({value}) i FROM {source}) q",
    "SELECT count(*) FROM (SELECT {value} AS x FROM {source} UNION SELECT {value} FROM {source}) q",
    "SELECT count(*) FROM (SELECT {value} AS x FROM {source}"
    " EXCEPT SELECT {value} FROM {source}) q",
    "SELECT count(*) FROM (SELECT {value} AS x FROM {source}) p"
    " JOIN (SELECT {value} AS x FROM {source}) q ON p.x = q.x",
    "SELECT count(*) FROM {source} WHERE {value} IN (SELECT {value} FROM {source})",
    "SELECT count(*) FROM {source} WHERE {value} = ANY(ARRAY(SELECT {value} FROM {source}))",
    "SELECT count(v) FROM (SELECT rank() OVER (ORDER BY {value}) AS v FROM {source}) q",
    "SELECT count(v) FROM (SELECT count(*) OVER (PARTITION BY {value}) AS v FROM {source}) q",
    "SELECT count(v) FROM (SELECT lag({value}) OVER (ORDER BY {value}) AS v FROM {source}) q",
    "SELECT count(v) FROM (SELECT first_value({value}) OVER (ORDER BY i) AS v FROM {source}) q",
    "SELECT count(v) FROM (SELECT nth_value({value}, 3) OVER (ORDER BY i ROWS 9 PRECEDING) AS v"
    " FROM {source}) q",
    "SELECT mode() WITHIN GROUP (ORDER BY {value}) FROM {source}",
    "SELECT percentile_disc(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY {value}) FROM {source}",
    "SELECT percentile_cont(0.3) WITHIN GROUP (ORDER BY {value}) FROM {source}",
    "SELECT greatest(max({value}), min({value})) FROM {source}",
)
"""Where a value is a key, or is carried along."""


def statements() -> Iterator[tuple[str, str]]:
    """All statements, by what they are about."""
    for (name, (value, source)), form in product(VALUES.items(), _KEYS):
        yield f"{name}: {form}", form.format(value=value, source=source)
    for name, signatures in AGGREGATES.items():
        for count in sorted({len(each.parameters) for each in signatures}):
            for kind, (value, source) in VALUES.items():
                yield from _calls(name, count, kind, value, source)


def _calls(name: str, count: int, kind: str, value: str, source: str) -> Iterator[tuple[str, str]]:
    if count not in (1, 2):
        return
    pairs = (f"{value}, {value}", f"{value}, ','", f"i::text, {value}")
    for listed in (value,) if count == 1 else pairs:
        parts = {
            "call": f"{name}({listed})",
            "distinct": f"{name}(DISTINCT {listed})",
            "ordered": f"{name}({listed} ORDER BY {value} DESC)",
        }
        for form in _FORMS:
            yield f"{name} of {kind}: {form}", form.format(source=source, **parts)


class LoopSteps(trio.abc.Instrument):
    """Measures the steps of the event loop, in processor time."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._began: float | None = None

    def before_task_step(self, task: Task) -> None:
        self._began = thread_time()

    def after_task_step(self, task: Task) -> None:
        if self._began is not None:  # not the step in which this was begun
            self.longest = max(self.longest, thread_time() - self._began)


@contextmanager
def loop_steps() -> Iterator[LoopSteps]:
    found = LoopSteps()
    add_instrument(found)
    try:
        yield found
    finally:
        remove_instrument(found)


@dataclass(frozen=True)
class Run:
    """A statement that ran, and its longest step in seconds."""

    what: str
    sql: str
    seconds: float
    end: str

    def __str__(self) -> str:
        return f"{self.seconds * 1000:.0f} ms ({self.end}): {self.what}"


async def measured(database: SqlDatabase, what: str, sql: str, timeout_ms: float = 10_000) -> Run:
    """Run a statement and measure its longest step."""
    end = "done"
    with loop_steps() as found:
        try:
            await database.execute(sql, timeout_ms=timeout_ms)
        except QserverError as error:
            end = error.code
        await trio.lowlevel.checkpoint()
    return Run(what, sql, found.longest, end)


def drawn(random: Random) -> list[tuple[str, str]]:
    """All statements in an order of chance."""
    found = list(statements())
    random.shuffle(found)
    return found
