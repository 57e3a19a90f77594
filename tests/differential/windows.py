"""Random calls of window functions, with PARTITION BY, ORDER BY and frames.

Where a source has a key, it ends the order of functions and frames that count rows. Where it has
none, only what treats equal rows alike is drawn: ranks, and frames by RANGE or GROUPS.
"""

from __future__ import annotations

from random import Random
from typing import Final

from tests.differential.expressions import Expressions, Scope, Visible
from tests.differential.kinds import COMMON
from tests.differential.sources import Source
from tests.differential.templates import draw

STARTS: Final = ("UNBOUNDED PRECEDING", "{n} PRECEDING", "CURRENT ROW")
ENDS: Final = ("CURRENT ROW", "{n} FOLLOWING", "UNBOUNDED FOLLOWING")
EXCLUDE: Final = ("", "", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES")
RANGE_OFFSETS: Final = {
    "int2": ("1", "2"),
    "int4": ("1", "2", "10"),
    "int8": ("1", "5"),
    "numeric": ("0.5", "2"),
    "float8": ("0.25", "3"),
    "float4": ("0.5", "2"),
    "date": ("INTERVAL '1 month'", "INTERVAL '10 days'"),
    "timestamp": ("INTERVAL '1 month'", "INTERVAL '36 hours'"),
    "timestamptz": ("INTERVAL '5 days'",),
    "time": ("INTERVAL '1 hour'",),
    "interval": ("INTERVAL '1 day'",),
}


def windowed(
    random: Random, expressions: Expressions, source: Source, scope: Scope
) -> tuple[str, str]:
    """A call with its OVER clause, and its kind."""
    usable = [column for column in source.columns if column.kind != "json"]
    partition = ""
    if usable and random.random() < 0.6:
        chosen = random.sample(usable, random.randint(1, min(2, len(usable))))
        partition = f"PARTITION BY {', '.join(column.text for column in chosen)} "
    lot = random.random()
    if lot < 0.35 and source.key is not None:
        return _neighbour(random, expressions, source, scope, partition)
    if lot < 0.55 and usable:
        kind = random.choice(("int8", "float8"))
        template = draw(random, "rank", kind)
        assert template is not None
        call = expressions.fill(template, kind, scope, 1)
        return f"{call} OVER ({partition}ORDER BY {_order(random, usable, 2)})", kind
    return _aggregate(random, expressions, source, scope, partition)


def _neighbour(
    random: Random, expressions: Expressions, source: Source, scope: Scope, partition: str
) -> tuple[str, str]:
    assert source.key is not None
    kind = random.choice((*COMMON, *scope.kinds()))
    template = draw(random, "neighbour", kind)
    assert template is not None
    call = expressions.fill(template, kind, scope, 1)
    order = _total_order(random, source)
    frame = ""
    if "_value" in call and random.random() < 0.7:
        frame = _frame(random, "ROWS")
    return f"{call} OVER ({partition}ORDER BY {order}{frame})", kind


def _aggregate(
    random: Random, expressions: Expressions, source: Source, scope: Scope, partition: str
) -> tuple[str, str]:
    kind = random.choice(COMMON)
    inside = Scope((), scope.outer, grouped=scope)
    call = expressions.aggregate(kind, inside, 1, windowed=True)
    if call is None:
        kind, call = "int8", "count(*)"
    usable = [column for column in source.columns if column.kind != "json"]
    lot = random.random()
    if not usable or lot < 0.2:
        return f"{call} OVER ({partition.rstrip()})", kind
    if lot < 0.45 and source.key is not None:
        order = _total_order(random, source)
        return f"{call} OVER ({partition}ORDER BY {order}{_frame(random, 'ROWS')})", kind
    if lot < 0.6:
        order = _order(random, usable, 2)
        return f"{call} OVER ({partition}ORDER BY {order}{_frame(random, 'GROUPS')})", kind
    ranged = [column for column in usable if column.kind in RANGE_OFFSETS]
    if lot < 0.85 and ranged:
        column = random.choice(ranged)
        offsets = RANGE_OFFSETS[column.kind]
        frame = _frame(random, "RANGE", offsets)
        return f"{call} OVER ({partition}ORDER BY {_directed(random, column.text)}{frame})", kind
    return f"{call} OVER ({partition}ORDER BY {_order(random, usable, 2)})", kind


def _total_order(random: Random, source: Source) -> str:
    assert source.key is not None
    usable = [column.text for column in source.columns if column.kind != "json"]
    first = [_directed(random, random.choice(usable))] if random.random() < 0.6 else []
    return ", ".join([*first, *(_directed(random, name) for name in source.key)])


def _order(random: Random, usable: list[Visible], most: int) -> str:
    chosen = random.sample(usable, random.randint(1, min(most, len(usable))))
    return ", ".join(_directed(random, column.text) for column in chosen)


def _directed(random: Random, text: str) -> str:
    direction = random.choice(("", "", " DESC"))
    return text + direction + random.choice(("", "", " NULLS FIRST", " NULLS LAST"))


def _frame(random: Random, mode: str, offsets: tuple[str, ...] = ("0", "1", "2", "3")) -> str:
    exclude = random.choice(EXCLUDE)
    if mode == "ROWS" and "TIES" in exclude:
        exclude = ""
    lot = random.random()
    if lot < 0.2:
        start = random.choice(STARTS).replace("{n}", random.choice(offsets))
        return f" {mode} {start}{exclude}"
    if lot < 0.8:
        start = random.choice(STARTS).replace("{n}", random.choice(offsets))
        end = random.choice(ENDS).replace("{n}", random.choice(offsets))
    elif lot < 0.9:
        start, end = f"{offsets[-1]} PRECEDING", f"{offsets[0]} PRECEDING"
    else:
        start, end = f"{offsets[0]} FOLLOWING", f"{offsets[-1]} FOLLOWING"
    return f" {mode} BETWEEN {start} AND {end}{exclude}"
