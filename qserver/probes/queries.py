"""Probes of queries: joins, subqueries, grouping, windows, WITH, set operations."""

from __future__ import annotations

from typing import Final

from qserver.probes.run import Probe
from qserver.probes.steps import changes, does, fails, gives

SHOP: Final = (
    does("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)"),
    does("CREATE TABLE orders (id INTEGER PRIMARY KEY, person INTEGER, amount INTEGER)"),
    changes("INSERT INTO people VALUES (1, 'Ada'), (2, 'Bob'), (3, 'Cy')", 3),
    changes("INSERT INTO orders VALUES (10, 1, 5), (11, 1, 7), (12, 2, 9), (13, NULL, 1)", 4),
)
TEAM: Final = (
    does("CREATE TABLE team (name TEXT PRIMARY KEY, side TEXT, points INTEGER)"),
    changes(
        "INSERT INTO team VALUES ('a', 'x', 1), ('b', 'x', 3), ('c', 'x', 3), ('d', 'y', 2)", 4
    ),
)

JOINS: Final = (
    Probe(
        "inner_join",
        "joins",
        "INNER JOIN with ON and with USING.",
        (
            *SHOP,
            gives(
                "SELECT name, amount FROM people JOIN orders ON person = people.id ORDER BY 2",
                *("Ada | 5", "Ada | 7", "Bob | 9"),
            ),
            gives("SELECT count(*) FROM orders a JOIN orders b USING (person)", "5"),
        ),
    ),
    Probe(
        "outer_join",
        "joins",
        "LEFT, RIGHT and FULL JOIN keep the rows that match nothing.",
        (
            *SHOP,
            gives(
                "SELECT name, amount FROM people p LEFT JOIN orders o ON o.person = p.id"
                " WHERE p.id > 1 ORDER BY p.id",
                *("Bob | 9", "Cy | NULL"),
            ),
            gives(
                "SELECT name, o.id FROM people p RIGHT JOIN orders o ON o.person = p.id"
                " WHERE p.id IS NULL",
                "NULL | 13",
            ),
            gives(
                "SELECT count(*), count(p.id), count(o.id)"
                " FROM people p FULL JOIN orders o ON o.person = p.id",
                "5 | 4 | 4",
            ),
        ),
    ),
    Probe(
        "cross_and_natural_join",
        "joins",
        "CROSS JOIN and NATURAL JOIN.",
        (
            *SHOP,
            gives("SELECT count(*) FROM people CROSS JOIN orders", "12"),
            gives(
                "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS l (k, v)"
                " NATURAL JOIN (VALUES (2, 'c')) AS r (k, w)",
                "2 | b | c",
            ),
        ),
    ),
    Probe(
        "lateral_join",
        "joins",
        "LATERAL: a subquery in FROM that looks at the tables before it.",
        (
            *SHOP,
            gives(
                "SELECT name, best FROM people p, LATERAL"
                " (SELECT max(amount) AS best FROM orders WHERE person = p.id) o ORDER BY p.id",
                *("Ada | 7", "Bob | 9", "Cy | NULL"),
            ),
        ),
    ),
)

SUBQUERIES: Final = (
    Probe(
        "scalar_subquery",
        "subqueries",
        "A query as a value, also one that refers to the row around it.",
        (
            *SHOP,
            gives(
                "SELECT name, (SELECT sum(amount) FROM orders WHERE person = p.id)"
                " FROM people p ORDER BY id",
                *("Ada | 12", "Bob | 9", "Cy | NULL"),
            ),
            fails("SELECT (SELECT id FROM people)", "21000"),
        ),
    ),
    Probe(
        "exists_and_in",
        "subqueries",
        "EXISTS, IN, NOT IN with its NULLs, ANY and ALL.",
        (
            *SHOP,
            gives(
                "SELECT name FROM people p WHERE NOT EXISTS"
                " (SELECT 1 FROM orders WHERE person = p.id)",
                "Cy",
            ),
            gives(
                "SELECT name FROM people WHERE id IN (SELECT person FROM orders) ORDER BY id",
                *("Ada", "Bob"),
            ),
            gives("SELECT name FROM people WHERE id NOT IN (SELECT person FROM orders)"),
            gives("SELECT 9 >= ALL (SELECT amount FROM orders)", "t"),
            gives("SELECT 6 = ANY (SELECT amount FROM orders)", "f"),
        ),
    ),
    Probe(
        "subquery_in_from",
        "subqueries",
        "A query as a table.",
        (
            *SHOP,
            gives(
                "SELECT max(total) FROM"
                " (SELECT person, sum(amount) AS total FROM orders GROUP BY person) AS t",
                "12",
            ),
        ),
    ),
)

GROUPING: Final = (
    Probe(
        "aggregates",
        "aggregation",
        "GROUP BY, HAVING, DISTINCT and FILTER within aggregates.",
        (
            *SHOP,
            gives(
                "SELECT person, count(*), sum(amount), avg(amount)::NUMERIC(9, 2) FROM orders"
                " GROUP BY person HAVING count(*) > 1",
                "1 | 2 | 12 | 6.00",
            ),
            gives(
                "SELECT count(DISTINCT person), count(*) FILTER (WHERE amount > 5) FROM orders",
                "2 | 2",
            ),
            gives("SELECT string_agg(name, ', ' ORDER BY name DESC) FROM people", "Cy, Bob, Ada"),
            gives("SELECT sum(amount) FROM orders WHERE false", "NULL"),
            fails("SELECT name FROM people GROUP BY id % 2", "42803"),
        ),
    ),
    Probe(
        "grouping_sets",
        "aggregation",
        "ROLLUP, CUBE and GROUPING SETS.",
        (
            *TEAM,
            gives(
                "SELECT side, sum(points) FROM team GROUP BY ROLLUP (side)"
                " ORDER BY side NULLS LAST",
                *("x | 7", "y | 2", "NULL | 9"),
            ),
            gives("SELECT count(*) FROM (SELECT 1 FROM team GROUP BY CUBE (side, points)) t", "9"),
        ),
    ),
    Probe(
        "distinct_on",
        "aggregation",
        "DISTINCT and DISTINCT ON.",
        (
            *TEAM,
            gives("SELECT DISTINCT points FROM team ORDER BY points", "1", "2", "3"),
            gives(
                "SELECT DISTINCT ON (side) side, name FROM team ORDER BY side, points DESC, name",
                *("x | b", "y | d"),
            ),
        ),
    ),
    Probe(
        "set_operations",
        "aggregation",
        "UNION, INTERSECT and EXCEPT, with and without ALL.",
        (
            gives("SELECT 1 UNION SELECT 1 UNION ALL SELECT 2 ORDER BY 1", "1", "2"),
            gives("VALUES (1), (2), (2) EXCEPT ALL VALUES (2)  ORDER BY 1", "1", "2"),
            gives("VALUES (1), (2) INTERSECT VALUES (2), (3)", "2"),
            fails("SELECT 1 UNION SELECT 1, 2", "42601"),
        ),
    ),
)

WINDOWS: Final = (
    Probe(
        "window_ranks",
        "window functions",
        "row_number, rank, dense_rank and ntile over partitions.",
        (
            *TEAM,
            gives(
                "SELECT name, rank() OVER w, dense_rank() OVER w, row_number() OVER"
                " (ORDER BY name) FROM team WINDOW w AS (PARTITION BY side ORDER BY points DESC)"
                " ORDER BY name",
                *("a | 3 | 2 | 1", "b | 1 | 1 | 2", "c | 1 | 1 | 3", "d | 1 | 1 | 4"),
            ),
        ),
    ),
    Probe(
        "window_frames",
        "window functions",
        "ROWS, RANGE and GROUPS frames with offsets and EXCLUDE.",
        (
            gives(
                "SELECT n, sum(n) OVER (ORDER BY n ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)"
                " FROM generate_series(1, 4) AS s (n) ORDER BY n",
                *("1 | 3", "2 | 6", "3 | 9", "4 | 7"),
            ),
            gives(
                "SELECT n, count(*) OVER (ORDER BY n RANGE BETWEEN 2 PRECEDING AND CURRENT ROW"
                " EXCLUDE CURRENT ROW) FROM (VALUES (1), (2), (5), (6)) AS s (n) ORDER BY n",
                *("1 | 0", "2 | 1", "5 | 0", "6 | 1"),
            ),
        ),
    ),
    Probe(
        "window_neighbours",
        "window functions",
        "lag, lead, first_value and a running total.",
        (
            *TEAM,
            gives(
                "SELECT name, lag(name) OVER w, lead(name, 1, '-') OVER w, first_value(name)"
                " OVER w, sum(points) OVER w FROM team WINDOW w AS (ORDER BY name) ORDER BY name",
                *("a | NULL | b | a | 1", "b | a | c | a | 4"),
                *("c | b | d | a | 7", "d | c | - | a | 9"),
            ),
        ),
    ),
)

COMMON_TABLES: Final = (
    Probe(
        "with",
        "common table expressions",
        "WITH, several of them, each using the one before.",
        (
            gives(
                "WITH a AS (SELECT 2 AS n), b AS (SELECT n * 3 AS n FROM a)"
                " SELECT a.n, b.n FROM a, b",
                "2 | 6",
            ),
        ),
    ),
    Probe(
        "with_recursive",
        "common table expressions",
        "WITH RECURSIVE: counting, and walking a graph that has a circle.",
        (
            gives(
                "WITH RECURSIVE n (i, f) AS"
                " (SELECT 1, 1 UNION ALL SELECT i + 1, f * (i + 1) FROM n WHERE i < 5)"
                " SELECT max(f) FROM n",
                "120",
            ),
            does("CREATE TABLE edges (a INTEGER, b INTEGER, PRIMARY KEY (a, b))"),
            changes("INSERT INTO edges VALUES (1, 2), (2, 3), (3, 1), (4, 5)", 4),
            gives(
                "WITH RECURSIVE reached (node) AS"
                " (SELECT 1 UNION SELECT b FROM edges JOIN reached ON a = node)"
                " SELECT node FROM reached ORDER BY node",
                *("1", "2", "3"),
            ),
        ),
    ),
    Probe(
        "with_changes",
        "common table expressions",
        "WITH that changes rows: moving them from one table to another in one statement.",
        (
            does("CREATE TABLE inbox (id INTEGER PRIMARY KEY)"),
            does("CREATE TABLE archive (id INTEGER PRIMARY KEY)"),
            changes("INSERT INTO inbox VALUES (1), (2), (3)", 3),
            does(
                "WITH moved AS (DELETE FROM inbox WHERE id < 3 RETURNING id)"
                " INSERT INTO archive SELECT id FROM moved"
            ),
            gives("SELECT id FROM archive ORDER BY id", "1", "2"),
            gives("SELECT id FROM inbox", "3"),
        ),
    ),
)

PROBES: Final = (*JOINS, *SUBQUERIES, *GROUPING, *WINDOWS, *COMMON_TABLES)
