"""drizzle-kit makes a schema and reads it back; drizzle-orm asks over the wire and over HTTP."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.javascript.installed import installed

PULLED = """
    mood: mood().default('happy'),
    tags: text().array(),
    data: jsonb().default({"a":1}),
    token: uuid().defaultRandom(),
    price: numeric({ precision: 10, scale:  2 }),
    made: timestamp({ withTimezone: true, mode: 'string' }).defaultNow(),
    good: boolean().default(true).notNull(),
    index("users_name").using("btree", table.name.desc().nullsLast().op("text_ops")),
    uniqueIndex("users_lower").using("btree", sql`lower(email)`),
    unique("users_email_unique").on(table.email),
    size: integer().generatedAlwaysAs(sql`length(body)`),
"""
FOUND = [
    *("Ada", ["a", "b,c"], {"k": [1, None]}, 0),
    [{"name": "Bob", "n": 0}, {"name": "Ada", "n": 2}],
    [{"name": "Ann"}, {"name": "Bob"}],
    *([{"n": 2}], "23505", 2),
]
DEFINITIONS = """
    SELECT oid, relname, relkind FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT oid, conname, contype FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace ORDER BY 1
"""


@pytest.mark.nightly
def test_drizzle_pushes_changes_nothing_again_pulls_and_asks(tmp_path: Path) -> None:
    with installed("drizzle", tmp_path) as project:
        found = []
        for _ in range(2):
            project.run("npx", "drizzle-kit", "push", "--force")
            with psycopg.connect(project.variables["DATABASE_URL"]) as connection:
                found.append(connection.execute(DEFINITIONS).fetchall())
        assert found[0] == found[1] and len(found[0]) > 10
        project.run("npx", "drizzle-kit", "pull")
        text = (project.folder / "out" / "schema.ts").read_text()
        pulled = [line.strip() for line in text.splitlines()]
        assert [line for line in PULLED.split("\n") if line.strip() not in pulled] == [], text
        asked = project.asked()
    assert asked["wire"] == asked["http"] == FOUND
    assert (asked["back"], asked["batch"]) == ("Rollback", [{"name": "x"}])
