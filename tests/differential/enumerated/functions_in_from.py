"""Functions in FROM, with and without names for them and their columns, in every place."""

from __future__ import annotations

from typing import Final

from tests.differential.enumerated.grids import Grid

FUNCTIONS: Final = (
    "jsonb_array_elements_text(p.tags)",
    "jsonb_array_elements(p.tags)",
    "json_array_elements(p.tags::json)",
    "json_array_elements_text(p.tags::json)",
    'jsonb_object_keys(\'{"a": 1, "b": 2}\')',
    'json_object_keys(\'{"a": 1, "b": 2}\')',
    "jsonb_each('{\"a\": 1}')",
    "jsonb_each_text('{\"a\": 1}')",
    "unnest(ARRAY['a', 'b', NULL])",
    "unnest(ARRAY[1, NULL], ARRAY['a'])",
    "unnest(ARRAY[ARRAY[1], ARRAY[2]])",
    "generate_series(1, p.id)",
    "generate_subscripts(ARRAY['a', 'b'], 1)",
    "string_to_table('a,b', ',')",
    "regexp_split_to_table('a,b', ',')",
    "regexp_matches('ab', '(.)', 'g')",
    "upper('a')",
    "abs(-1)",
    "nullif(1, 1)",
    "ROWS FROM (generate_series(1, p.id))",
    "ROWS FROM (upper('a'), generate_series(1, p.id))",
    "ROWS FROM (jsonb_each('{\"a\": 1}'), unnest(ARRAY['a', 'b', NULL]))",
    "ROWS FROM (json_to_recordset('[{\"a\": 1}]') AS (a int, b text), abs(-1))",
)
ALIASES: Final = ("", "AS t", "t", "AS t(a)", "AS t(t)", "AS t(a, b)", "AS t(a, b, c)")
ORDINALITIES: Final = ("", "WITH ORDINALITY ")
TARGETS: Final = (
    "t",
    "t.t",
    "t.*",
    "*",
    "a",
    "t.a",
    "value",
    "t.value",
    "(t).a",
    "(t).*",
    "count(t)",
    "count(t.*)",
    "t IS NULL",
    "ROW(t)",
    "ROW(t.*)",
    "t = 'a'",
    "to_json(t)",
    "row_to_json(t)",
    "t::text LIKE 'a%'",
    "pg_typeof(t)::text",
    "coalesce(t, t)",
    "p.id, t",
)
TAILS: Final = (
    "SELECT t, count(*) FROM p, {f} GROUP BY t",
    "SELECT DISTINCT t FROM p, {f} ORDER BY t",
    "SELECT id FROM p, {f} WHERE t = 'b'",
    "SELECT id FROM p, {f} WHERE t LIKE 'b%'",
    "SELECT t->>'a' FROM p, {f}",
    "SELECT id, t FROM p CROSS JOIN LATERAL {f}",
    "SELECT id, t FROM p LEFT JOIN LATERAL {f} ON true WHERE t IS NOT NULL",
    "SELECT id, t IS NULL FROM p LEFT JOIN {f} ON id > 1",
    "SELECT (SELECT max(t) FROM {f}) FROM p",
    "SELECT (SELECT t FROM {f} LIMIT 1) FROM p",
    "SELECT EXISTS (SELECT FROM {f} WHERE t = 'a') FROM p",
    "SELECT ARRAY(SELECT t FROM {f}) FROM p",
    "SELECT row_number() OVER (ORDER BY t), t FROM p, {f} WHERE id = 1",
    "WITH w AS (SELECT t FROM p, {f}) SELECT w.t FROM w",
    "SELECT x.t FROM p, LATERAL (SELECT t FROM {f}) x",
    "SELECT t FROM p, {f} UNION SELECT t FROM p, {f}",
)

_SETUP: Final = (
    "CREATE TABLE p (id int PRIMARY KEY, tags jsonb)",
    """INSERT INTO p VALUES (1, '["a", "b"]'), (2, '["b"]'), (3, '[]')""",
)


def _sources() -> list[str]:
    return [
        f"{function} {ordinality}{alias}".strip()
        for function in FUNCTIONS
        for alias in ALIASES
        for ordinality in ORDINALITIES
    ]


GRIDS: Final = (
    Grid(
        _SETUP,
        tuple(f"SELECT {target} FROM p, {source}" for source in _sources() for target in TARGETS),
    ),
    Grid(_SETUP, tuple(tail.format(f=source) for source in _sources() for tail in TAILS)),
)
