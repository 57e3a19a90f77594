"""Prisma's client without an engine, over the wire.

`prisma db push` and `prisma migrate` need an engine that is downloaded from Prisma's own host; they
are not tried.
"""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.javascript.installed import installed

NO_ENGINE = "PRISMA_SCHEMA_ENGINE_BINARY=/bin/true npx prisma generate --schema schema.prisma"
FOUND = {
    "created": ["ada@example.com", ["a", "b"], {"k": [1, None]}, ["one", "two"]],
    "many": {"count": 3},
    "page": [{"title": "two"}, {"title": "t5"}],
    "inside": 1,
    "grouped": [{"_count": 5, "_max": {"title": "two"}, "authorId": 1}],
    "back": ["back", 1],
    "batch": [{"count": 5}, 5],
    "upsert": [],
    "raw": [{"n": 5}],
    "left": {"email": "ada@example.com"},
}


@pytest.mark.nightly
def test_the_client_of_prisma_writes_and_reads(tmp_path: Path) -> None:
    with installed("prisma", tmp_path) as project:
        project.run("sh", "-c", NO_ENGINE)
        with psycopg.connect(project.variables["DATABASE_URL"], autocommit=True) as connection:
            connection.execute((project.folder / "tables.sql").read_bytes())
        asked = project.asked()
    assert asked.pop("twice")[0] == "P2002"
    assert asked == FOUND
