"""Measures what several processes bring: point reads and inserts over eight databases.

    python -m tests.speed.processes                     one process beside two, three rounds
    python -m tests.speed.processes --processes 4 --requests 20000

`side_by_side` says what counts. Connections either stay with one database, after they have moved to
its process, or change it with each request.
"""

from __future__ import annotations

from typing import Final

from tests.speed.side_by_side import TABLE, Comparison, make_database
from tests.web.contract.servers import Server

DATABASES: Final = 8
READ, INSERT, CHANGING = "point read", "insert", "point read, another database each time"


def fill(made: Server, processes: int) -> None:
    for number in range(DATABASES):
        make_database(made, f"d{number}", [*TABLE, "create table log (n int)"])


def request(work: str, number: int, at: int) -> tuple[str, str]:
    sql = "insert into log values ($1)" if work == INSERT else "select n from t where id = $1"
    return sql, f"d{(number + (at if work == CHANGING else 0)) % DATABASES}"


COMPARISON: Final = Comparison("processes", (READ, INSERT, CHANGING), fill, request)

if __name__ == "__main__":
    raise SystemExit(COMPARISON.main())
