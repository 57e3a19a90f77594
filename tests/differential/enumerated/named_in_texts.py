"""What texts of definitions name in each place, types, labels, sequences, keys; and their ends."""

from __future__ import annotations

from itertools import product
from typing import Final

from tests.differential.enumerated.grids import Grid

_MADE: Final = (
    "CREATE SCHEMA apart",
    "CREATE TYPE mood AS ENUM ('sad', 'ok')",
    "CREATE SEQUENCE numbers",
    "CREATE TABLE owner (id serial PRIMARY KEY, n int)",
    "CREATE TABLE t (id int PRIMARY KEY, a text, m text)",
    "INSERT INTO t VALUES (1, 'ok', 'ok'), (2, 'sad', NULL)",
)
_OF_TYPES: Final = (
    "ALTER TABLE t ALTER m SET DEFAULT 'ok'::mood::text",
    "ALTER TABLE t ALTER m SET DEFAULT '{ok,sad}'::mood[]::text",
    "ALTER TABLE t ADD CHECK (id < 9 OR a::mood <> 'sad')",
    "ALTER TABLE t ADD CHECK (id < 9 OR a::mood = ANY ('{ok, \"sad\"}'))",
    "ALTER TABLE t ADD COLUMN c mood DEFAULT 'ok'",
    "ALTER TABLE t ADD COLUMN c mood[] DEFAULT '{sad,ok}' CHECK (c <> '{sad}')",
    "ALTER TABLE t ADD COLUMN c mood DEFAULT 'ok', ADD CHECK (CASE c WHEN 'ok' THEN a <> 'x' END)",
    "CREATE VIEW v AS SELECT id, a = 'ok' AS is_text FROM t WHERE a::mood = 'ok'",
    "CREATE VIEW v AS SELECT id, NULL::mood AS m FROM t",
)
_OF_SEQUENCES: Final = (
    "ALTER TABLE t ALTER m SET DEFAULT nextval('numbers')",
    "ALTER TABLE t ALTER m SET DEFAULT 'no. ' || nextval('numbers')",
    "ALTER TABLE t ADD CHECK (id < 9 OR nextval('numbers') > 0)",
    "CREATE VIEW v AS SELECT id, a, m FROM t WHERE nextval('numbers') > 0",
    "ALTER TABLE t ALTER m SET DEFAULT 1 + nextval('owner_id_seq')",
    "ALTER TABLE t ALTER m SET DEFAULT nextval('owner_id_seq')",
)
_OF_KEYS: Final = (
    "CREATE VIEW v AS SELECT id, a, count(*) AS n FROM t GROUP BY id",
    "CREATE VIEW v AS SELECT id, count(*) AS n FROM t GROUP BY id",
    "CREATE VIEW v AS SELECT q.id, q.m FROM (SELECT id, m FROM t GROUP BY id) q",
)
_ENDS_OF_TYPES: Final = (
    "DROP TYPE mood",
    "DROP TYPE mood CASCADE",
    "ALTER TYPE mood RENAME TO temper",
    "ALTER TYPE mood SET SCHEMA apart",
    "ALTER TYPE mood RENAME VALUE 'ok' TO 'it''s {fine}'",
)
_ENDS_OF_SEQUENCES: Final = (
    "DROP SEQUENCE numbers",
    "DROP SEQUENCE numbers CASCADE",
    'ALTER SEQUENCE numbers RENAME TO "Other\'s"',
    "ALTER SEQUENCE numbers SET SCHEMA apart",
    "ALTER SEQUENCE owner_id_seq SET SCHEMA apart",
    "ALTER SEQUENCE owner_id_seq RENAME TO ids",
    "ALTER TABLE owner SET SCHEMA apart",
    "ALTER TABLE owner DROP COLUMN id",
    "ALTER TABLE owner DROP COLUMN id CASCADE",
    "DROP TABLE owner",
    "DROP TABLE owner CASCADE",
)
_ENDS_OF_KEYS: Final = (
    "ALTER TABLE t DROP CONSTRAINT t_pkey",
    "ALTER TABLE t DROP CONSTRAINT t_pkey CASCADE",
)
_USES: Final = (
    "INSERT INTO t (id, a) VALUES (3, 'x') RETURNING id, a",
    "INSERT INTO t (id) VALUES (9), (10) RETURNING m",
    "UPDATE t SET id = id + 20 RETURNING *",
    "SELECT * FROM t ORDER BY id",
    "TABLE v",
    "INSERT INTO t (id, a) VALUES (70, 'sad') RETURNING id",
    "INSERT INTO owner (n) VALUES (1)",
)


def _grids() -> list[Grid]:
    return [
        Grid((*_MADE, made, end), _USES)
        for places, ends in (
            (_OF_TYPES, _ENDS_OF_TYPES),
            (_OF_SEQUENCES, _ENDS_OF_SEQUENCES),
            (_OF_KEYS, _ENDS_OF_KEYS),
        )
        for made, end in product(places, ends)
    ]


GRIDS: Final = tuple(_grids())
