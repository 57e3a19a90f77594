"""Measures what replicas bring: reads of one hot database, while it is written.

    python -m tests.speed.replicas                      one process beside two, three rounds
    python -m tests.speed.replicas --processes 4 --requests 20000

`side_by_side` says what counts. One connection of ten only writes; the others only read, and stay
with the process that accepted them.
"""

from __future__ import annotations

from typing import Final

from tests.speed.side_by_side import HEADERS, TABLE, Comparison, make_database
from tests.web.contract.servers import Server

WARM_REQUESTS: Final = 2000
APART_SECONDS: Final = 0.01
"""Of many connections at once, the first process that wakes up gets most."""
POINT, SUM = "point reads", "sums of 1,000 rows"
READS: Final = {POINT: "select n from t where id = $1", SUM: "select sum(n) from t where n <> $1"}
WRITE: Final = "update t set n = n + 1 where id = $1"


def fill(made: Server, processes: int) -> None:
    """One database, which all other processes may follow."""
    make_database(made, "hot", TABLE)
    body = {"replicas": processes - 1}
    assert made.http.patch("/v1/databases/hot", json=body, headers=HEADERS).status_code == 200


def request(work: str, number: int, at: int) -> tuple[str, str]:
    return WRITE if number % 10 == 0 else READS[work], "hot"


COMPARISON: Final = Comparison(
    "replicas", tuple(READS), fill, request, WARM_REQUESTS, APART_SECONDS
)

if __name__ == "__main__":
    raise SystemExit(COMPARISON.main())
