"""PostgreSQL's driver for JDBC: prepared statements, batches, savepoints and metadata.

The driver is a jar that JDBC_POSTGRESQL names, or the one of Debian's libpostgresql-jdbc-java.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.pgwire.serving import KEY, in_thread, serving

PROGRAM = Path(__file__).parent / "Tried.java"
JAR = Path(os.environ.get("JDBC_POSTGRESQL", "/usr/share/java/postgresql.jar"))
PRINTED = """\
batch 10
keys 55
error 23505
6 part 5 5.50 0 [a, null] 00000000-0000-0000-0000-000000000005
7 part 6 6.50 0 [a, null] 00000000-0000-0000-0000-000000000006
fetched 7
PostgreSQL
table parts
table uses
column id serial 10 0 nextval('parts_id_seq'::regclass) YES
column name varchar 20 0 null NO
column price numeric 8 1 0 NO
column made timestamptz 35 1 null NO
column tags _text 2147483647 1 null NO
column token uuid 2147483647 1 null NO
key id parts_pkey
index parts_pkey id f
index parts_name name t
imported parts id part
exported uses
schema public
catalog main
numeric 8
uuid
"""


def _run(url: str) -> str:
    done = subprocess.run(
        ["java", "-cp", str(JAR), str(PROGRAM), url],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("javac") is None, reason="there is no Java to compile with")
@pytest.mark.skipif(not JAR.exists(), reason="there is no driver: install libpostgresql-jdbc-java")
async def test_jdbc() -> None:
    async with serving() as served:
        options = f"user=me&password={KEY}&sslmode=disable"
        url = f"jdbc:postgresql://127.0.0.1:{served.port}/main?{options}"
        printed = await in_thread(_run, url)
    assert printed == PRINTED
