"""Arguments before WITHIN GROUP in every form of grouping, over no, few and many rows."""

from __future__ import annotations

from itertools import product
from typing import Final

from tests.differential.enumerated.grids import Grid

DIRECT: Final = ("2", "a", "a + 1", "b", "c", "coalesce(a, 1)", "(SELECT a)", "NULL")
CALLS: Final = (
    "rank({d}) WITHIN GROUP (ORDER BY c)",
    "dense_rank({d}) WITHIN GROUP (ORDER BY c DESC)",
    "percent_rank({d}) WITHIN GROUP (ORDER BY c NULLS FIRST)",
    "cume_dist({d}, {d}) WITHIN GROUP (ORDER BY c, a DESC) FILTER (WHERE c > 0)",
    "percentile_disc(({d}) / 10.0) WITHIN GROUP (ORDER BY c)",
    "percentile_cont(({d}) / 10.0) WITHIN GROUP (ORDER BY c)",
)
GROUPED: Final = (
    "GROUP BY a, b",
    "GROUP BY a + 1, a",
    "GROUP BY ROLLUP (a, b)",
    "GROUP BY CUBE (a, b)",
    "GROUP BY GROUPING SETS ((a))",
    "GROUP BY GROUPING SETS ((a), (b), ())",
    "GROUP BY b, GROUPING SETS ((a), ()) HAVING count(*) > 1",
)
TABLES: Final = ("t", "empty", "many")

GRIDS: Final = (
    Grid(
        (
            "CREATE TABLE t (a int, b int, c int)",
            "CREATE TABLE empty (a int, b int, c int)",
            "CREATE TABLE many (a int, b int, c int)",
            "INSERT INTO t VALUES (1, 1, 5), (1, 2, 1), (2, 1, 2), (2, 2, NULL), (NULL, 1, 3)",
            "INSERT INTO many SELECT i % 3, i % 5, i % 11 FROM generate_series(1, 2500) AS i",
        ),
        tuple(
            f"SELECT {call.format(d=direct)} FROM {table} {grouped}"
            for call, direct, table, grouped in product(CALLS, DIRECT, TABLES, GROUPED)
        ),
    ),
)
