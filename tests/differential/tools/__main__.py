"""`python -m tests.differential.tools [name …]`: all that tools send, compared."""

from __future__ import annotations

import sys
from typing import Any

import trio

from tests.differential.engines import started_postgres
from tests.differential.tools.answers import (
    differences,
    prepare_template,
    session_of_postgres,
    session_of_qserver,
)
from tests.differential.tools.sent import SENT, sent_by
from tests.pgwire.serving import in_thread, serving


async def run(names: list[str]) -> int:
    count = total = 0
    with started_postgres() as server:
        prepare_template(server)
        for path in SENT:
            if names and path.stem not in names:
                continue
            sent = sent_by(path)
            async with serving() as served:
                found = await in_thread(compare, server, served.url, sent)
            total, count = total + len(sent), count + len(found)
            print(f"{path.stem}: {len(sent)} statements, {len(found)} differences")
            for each in found:
                print(f"\n{each}\n")
    print(f"{total} statements, {count} differences")
    return 1 if count else 0


def compare(server: Any, url: str, sent: list[Any]) -> list[Any]:
    with session_of_postgres(server) as postgres, session_of_qserver(url) as qserver:
        return list(differences(postgres, qserver, sent))


if __name__ == "__main__":
    sys.exit(trio.run(run, sys.argv[1:]))
