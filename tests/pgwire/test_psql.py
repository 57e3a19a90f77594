"""What psql shows of a database with its backslash commands, beside what it shows of PostgreSQL.

Both databases are made of dumped.sql, and belong to a role `qserver`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.differential.engines import NoOracle, started_postgres
from tests.pgwire.serving import in_thread, serving
from tests.pgwire.test_dumps import SCRIPT, Programs, difference

COMMANDS = r"""
\d
\d users
\d+ users
\d shop.*
\d+ shop.lines
\d+ shop.orders
\d+ shop.products
\d "Odd Name".*
\d users_lower
\d+ users_name
\d invoice_numbers
\d shop.products_id_seq
\d nothing
\dt
\dt shop.*
\dt nothing
\di
\di shop.*
\ds
\ds shop.*
\dv
\dv shop.*
\dn shop
\dT
\dT+
\dT shop.*
\df
\df lower
\sf lower
\df pg_catalog.now
\dp
\dp shop.*
\dd
\du qserver
\dC integer
\dD
\des
\dO
\dRp
\dy
\ddp
\dl
\do =
\dAc btree bit
"""
"""Not those that show a view's query, which is shown as it was written, nor sizes."""
ROLE = "CREATE ROLE qserver SUPERUSER LOGIN CREATEROLE CREATEDB REPLICATION BYPASSRLS;"
PATHS = ("", "shop", "'Odd Name', public", "''")


@pytest.fixture(scope="module")
def programs() -> Iterator[Programs]:
    try:
        with started_postgres() as server:
            yield Programs(server)
    except NoOracle as error:
        pytest.skip(f"no PostgreSQL, so no psql: {error}")


@pytest.fixture(scope="module")
def native(programs: Programs) -> str:
    """The script in a PostgreSQL, as the database of a role `qserver`."""
    programs.psql(programs.server.get_uri(), ROLE)
    url = programs.database("shown").replace("postgres:@", "qserver:@", 1)
    programs.psql(url, SCRIPT.read_text(encoding="utf-8"))
    return url


def commands() -> list[str]:
    return COMMANDS.split("\n")[1:-1]


def shown(programs: Programs, url: str, path: str) -> dict[str, str]:
    """What each command prints, without a frame."""
    first = f"SET search_path TO {path};\n" if path else ""
    script = first + "".join(f"{each}\n\\echo ==\n" for each in commands())
    answers = programs.run("psql", "-XqAf-", url, given=script, complains=True).split("==\n")
    return dict(zip(commands(), answers[:-1], strict=True))


@pytest.mark.long
async def test_psql_shows_what_it_shows_of_postgresql(programs: Programs, native: str) -> None:
    async with serving() as served:
        await in_thread(programs.psql, served.url, SCRIPT.read_text(encoding="utf-8"))
        found = {path: await in_thread(shown, programs, served.url, path) for path in PATHS}
    different = {}
    for path in PATHS:
        wanted = shown(programs, native, path)
        for each in commands():
            if found[path][each] != wanted[each]:
                different[path, each] = difference(wanted[each], found[path][each])
    assert different == {}
