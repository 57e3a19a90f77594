"""Short statements that could become long programs: each level of a shape repeats the one below.

A shape wraps an expression, a query or a view in itself, as often as is asked for. What is wrapped
may be used twice by the level above it, in the text of SQL or in what SQL makes of it (BETWEEN
compares its operand twice). A compiler that copies what is used twice doubles with each level.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

TABLE: Final = (
    "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b BOOLEAN, c BOOLEAN,"
    " j JSONB, n NUMERIC, s TEXT, f FLOAT, d DATE, l INTEGER[])"
)

EXPRESSIONS: Final = {
    # Conditions with NULL.
    "and": ("b", "({x} AND c) = b"),
    "or": ("b", "({x} OR c) = b"),
    "not": ("b", "(NOT {x}) = b"),
    "not and": ("b", "NOT ({x} AND NOT c)"),
    "and, or": ("b", "(c OR ({x} AND b))"),
    "and of nulls": ("b", "(({x}) IS NULL AND c) = b"),
    "is true": ("b", "({x} AND c) IS TRUE"),
    "is unknown": ("b", "(({x} OR c) IS UNKNOWN AND b)"),
    "is distinct": ("b", "(({x} AND c) IS DISTINCT FROM b)"),
    "case of and": ("b", "CASE WHEN {x} AND c THEN b ELSE c END"),
    "and of case": ("b", "(CASE WHEN {x} THEN b ELSE c END AND c)"),
    # Operands that SQL uses more than once.
    "between": ("a", "({x} BETWEEN 1 AND 5)::INTEGER"),
    "not between": ("a", "({x} NOT BETWEEN 1 AND 5)::INTEGER"),
    "between symmetric": ("a", "({x} BETWEEN SYMMETRIC 1 AND 5)::INTEGER"),
    "between bounds": ("a", "(a BETWEEN SYMMETRIC {x} AND 5)::INTEGER"),
    "in a list": ("a", "({x} IN (1, 2, 3))::INTEGER"),
    "not in a list": ("a", "({x} NOT IN (1, NULL, 3))::INTEGER"),
    "in expressions": ("a", "({x} IN (id, id + 1, id + 2))::INTEGER"),
    "item of a list": ("a", "(a IN ({x}, id, 3))::INTEGER"),
    "not in expressions": ("a", "({x} NOT IN (id, id + 1, NULL))::INTEGER"),
    "any of items": ("a", "({x} < ANY (ARRAY[id, 1, a]))::INTEGER"),
    "all of items": ("a", "({x} >= ALL (ARRAY[id, 1, a]))::INTEGER"),
    "any of an array": ("a", "({x} = ANY (l))::INTEGER"),
    "row comparison": ("a", "(({x}, id, a) < (id, a, 3))::INTEGER"),
    "row equality": ("a", "(({x}, id) = (id, a))::INTEGER"),
    "row distinct": ("a", "(({x}, id) IS DISTINCT FROM (id, a))::INTEGER"),
    "row in": ("a", "(({x}, id) IN ((1, a), (a, 2), (id, id)))::INTEGER"),
    "row is null": ("a", "(({x}, id) IS NULL)::INTEGER"),
    "case of": ("a", "CASE {x} WHEN 1 THEN 2 WHEN a THEN id WHEN 7 THEN a END"),
    "case branches": ("a", "CASE WHEN a > 1 THEN {x} ELSE id END"),
    "coalesce": ("a", "coalesce({x} + id, a)"),
    "nullif": ("a", "nullif({x}, id)"),
    "nullif, second": ("a", "nullif(id, {x})"),
    "greatest": ("a", "greatest({x}, id, a)"),
    "distinct from": ("a", "({x} IS DISTINCT FROM id)::INTEGER"),
    # Functions and operators, by how they are printed.
    "sum": ("a", "({x} + 1)"),
    "division": ("a", "({x} / id)"),
    "modulo": ("a", "({x} % id)"),
    "abs": ("a", "abs({x})"),
    "sign": ("a", "sign({x})::INTEGER"),
    "numeric": ("n", "({x} + 1.5)"),
    "numeric division": ("n", "({x} / 1.5)"),
    "round": ("n", "round({x}, 2)"),
    "float": ("f", "({x} * 1.5::FLOAT)"),
    "float power": ("f", "({x} ^ 1.5::FLOAT)"),
    "negation": ("f", "(- {x})"),
    "concatenation": ("s", "({x} || s)"),
    "substring": ("s", "substring({x}, 1, 3)"),
    "left": ("s", "left({x}, 3)"),
    "replace": ("s", "replace({x}, 'a', s)"),
    "concat": ("s", "concat({x}, s)"),
    "format": ("s", "format('%s %s', {x}, s)"),
    "like": ("s", "({x} LIKE s)::TEXT"),
    "similar": ("s", "({x} SIMILAR TO 'a|b')::TEXT"),
    "case of text": ("s", "upper(lower({x}))"),
    "position": ("s", "strpos({x}, s)::TEXT"),
    "cast": ("s", "{x}::INTEGER::TEXT"),
    "overlay": ("s", "overlay({x} PLACING s FROM 2)"),
    "trim": ("s", "trim({x})"),
    "json": ("j", "({x} || j)"),
    "json path": ("j", "({x} -> 'a')"),
    "json set": ("j", "jsonb_set({x}, '{{a}}', j)"),
    "json build": ("j", "jsonb_build_array({x}, j)"),
    "json contains": ("j", "to_jsonb({x} @> j)"),
    "array": ("l", "({x} || l)"),
    "array item": ("a", "(ARRAY[{x}, id])[1]"),
    "array slice": ("l", "({x})[1:2]"),
    "array of arrays": ("l", "array_cat({x}, ARRAY[a, id])"),
    "date": ("d", "({x} + 1)"),
    "date field": ("a", "extract(day FROM d + {x})::INTEGER"),
    "record": ("a", "(CASE WHEN ROW({x}, id) = ROW(a, id) THEN 1 ELSE 2 END)"),
    # Subqueries.
    "scalar query": ("a", "(SELECT {x} + o.id FROM t AS o WHERE o.id = 1)"),
    "exists": ("a", "(EXISTS (SELECT 1 FROM t AS o WHERE o.id = {x}))::INTEGER"),
    "in a query": ("a", "({x} IN (SELECT o.id FROM t AS o))::INTEGER"),
    "row in a query": ("a", "(({x}, id) IN (SELECT o.id, o.a FROM t AS o))::INTEGER"),
    "any of a query": ("a", "({x} < ANY (SELECT o.id FROM t AS o))::INTEGER"),
    "between of a query": ("a", "((SELECT {x} + id) BETWEEN 1 AND 2)::INTEGER"),
    "array of a query": ("a", "cardinality(ARRAY(SELECT {x} + o.id FROM t AS o))"),
}
"""By name: the innermost expression, and what each level makes of the one below."""

QUERIES: Final = {
    "star": "SELECT * FROM {x}",
    "columns": "SELECT id, a, b, c, j, n, s, f, d, l FROM {x}",
    "twice": "SELECT id, a + a AS a, b, c, j || j AS j, n + n AS n, s || s AS s, f, d, l FROM {x}",
    "choice": "SELECT id, coalesce(a, id) AS a, b, c, CASE WHEN b THEN j ELSE j END AS j,"
    " coalesce(n, n) AS n, coalesce(s, s) AS s, f, d, l FROM {x}",
    "condition": "SELECT id, a + a AS a, b, c, j, n + n AS n, s || s AS s, f, d, l"
    " FROM {x} WHERE n > 0 AND s <> '' AND a > 1",
    "order": "SELECT id, a + a AS a, b, c, j, n + n AS n, s || s AS s, f, d, l"
    " FROM {x} ORDER BY n, s, a",
    "limit": "SELECT id, a + a AS a, b, c, j, n + n AS n, s, f, d, l FROM {x} ORDER BY n LIMIT 10",
    "groups": "SELECT id, max(a) + max(a) AS a, bool_or(b) AS b, bool_or(c) AS c,"
    " jsonb_agg(j) AS j, sum(n) AS n, string_agg(s, s) AS s, max(f) AS f, max(d) AS d, max(l) AS l"
    " FROM {x} GROUP BY id",
    "group keys": "SELECT id + id AS id, a + a AS a, b, c, j, n + n AS n, s || s AS s, f, d, l"
    " FROM {x} GROUP BY 1, 2, b, c, j, 6, 7, f, d, l",
    "windows": "SELECT id, lag(a) OVER w AS a, b, c, lag(j) OVER w AS j, n + n AS n, s, f, d, l"
    " FROM {x} WINDOW w AS (ORDER BY n + n, id)",
    "distinct": "SELECT DISTINCT * FROM {x}",
    "distinct on": "SELECT DISTINCT ON (n + n) id, a, b, c, j, n + n AS n, s, f, d, l FROM {x}"
    " ORDER BY n + n",
    "join": "SELECT x.* FROM {x} AS x JOIN {x} AS y ON x.id = y.a",
    "left join": "SELECT x.* FROM {x} AS x LEFT JOIN {x} AS y ON x.n = y.n",
    "join using": "SELECT id, x.a, x.b, x.c, x.j, x.n, x.s, x.f, x.d, x.l"
    " FROM {x} AS x FULL JOIN t AS y USING (id)",
    "lateral": "SELECT x.* FROM {x} AS x, LATERAL (SELECT x.n + y.n AS n FROM t AS y) AS z",
    "union": "SELECT * FROM {x} UNION ALL SELECT * FROM {x}",
    "union of one": "SELECT * FROM {x} UNION SELECT * FROM t",
    "except": "SELECT * FROM {x} EXCEPT SELECT * FROM t",
    "scalar query": "SELECT id, (SELECT max(y.a) FROM {x} AS y WHERE y.id = x.id) AS a,"
    " b, c, j, n, s, f, d, l FROM {x} AS x",
    "exists": "SELECT * FROM {x} AS x WHERE EXISTS (SELECT 1 FROM {x} AS y WHERE y.n = x.n)",
    "not in": "SELECT * FROM {x} AS x WHERE x.a NOT IN (SELECT y.a FROM {x} AS y)",
    "values": "SELECT x.* FROM {x} AS x, LATERAL (VALUES (1, x.a), (2, x.id)) AS v(k, w)",
}
"""By name: a query over {x}, which has the columns of the table."""


def nested(name: str, levels: int) -> str:
    """Return a statement with an expression inside of itself."""
    code, shape = EXPRESSIONS[name]
    for _ in range(levels):
        code = shape.format(x=code)
    return f"SELECT {code} FROM t"


def derived(name: str, levels: int) -> str:
    """Return a statement over common tables, each over the one before."""
    tables = [f"c0 AS ({QUERIES[name].format(x='t')})"]
    tables += [
        f"c{n} AS NOT MATERIALIZED ({QUERIES[name].format(x=f'c{n - 1}')})"
        for n in range(1, levels)
    ]
    return f"WITH {', '.join(tables)} {read(f'c{levels - 1}')}"


def views(name: str, levels: int) -> Iterator[str]:
    """Yield the definitions of views, each over the one before."""
    below = "t"
    for number in range(levels):
        yield f"CREATE VIEW v{number} AS {QUERIES[name].format(x=below)}"
        below = f"v{number}"


def read(name: str) -> str:
    """Return a query of the last table or view."""
    return f"SELECT * FROM {name} WHERE n > 1 AND s < 'a' ORDER BY n, a"
