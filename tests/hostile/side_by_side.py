"""Two organizations side by side, one of them hostile: how much longer does the other wait?

    hostile:  ─────── ▓▓ crowd ▓▓ ─────── ▓▓ crowd ▓▓ ───────   of one class, then of the next
    good:     ▏▏▏▏▏▏▏ ▏ ▏ ▏ ▏ ▏ ▏ ▏▏▏▏▏▏▏ ▏ ▏ ▏ ▏ ▏ ▏           reads, inserts and statements
               alone    beside     alone    beside

The good one sends all the time, from a process of its own. Its times alone and beside are taken in
alternation, so that whatever else the machine does lengthens both.

Clients have machines of their own. So the crowd leaves a processor to the server here, and keeps
neither the server nor the good one waiting for the others: on one processor the kernel lets each
run for milliseconds before the next, which is as long as what is measured.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.hostile import heartbeat
from tests.hostile.crowds import CROWDS, ROWS, TABLE, Crowd
from tests.hostile.heartbeat import POINT_READ, Ask, Pulse
from tests.hostile.siege import KEY, Beat, beats_in
from tests.patience import eventually
from tests.web.contract.servers import Client, Server, start

MOST_PRIORITY: Final = -20

ROUNDS: Final = 2
"""Of alone and beside, for each class."""

WINDOW_SECONDS: Final = 2.0
WINDOWS_MAX: Final = 10
"""How many windows may pass until a request of each kind was answered."""

STATEMENT: Final = Ask(
    "statement",
    "select count(*) from generate_series(1, 150000) s(i) where i % 7 = 3",
    [{"count": 21_429}],
)
"""About 90 ms, on a machine of its own."""

PULSE: Final = Pulse(
    [
        Ask(POINT_READ.name, POINT_READ.sql, POINT_READ.rows, POINT_READ.params, times=20),
        Ask("insert", "insert into beats (name) values ('eight')", [], times=10),
        STATEMENT,
    ],
    pause_seconds=0.002,
)
SETTINGS: Final = {"QSERVER_API_KEY": KEY, "QSERVER_OPEN_SIGNUP": "1"}
LIMITS: Final = {
    "requests_per_minute": 2**40,
    "stored_bytes": 2**40,
    "databases": 1000,
    "branches": 1000,
}
"""Of both: what they may store and how often they may ask is not what is looked at."""

RATIO_WANTED: Final = 2.0
"""How many times as long the good one should wait at most, beside the hostile one."""

RATIO_MOST: Final = 12.0
"""Past that it is a fault: a statement's median, in processor time of the loop, which is what the
hostile one took of it."""


@dataclass(frozen=True)
class Waits:
    """How long requests of one kind took, of the good organization."""

    on_the_clock: list[float]
    of_the_loop: list[float]
    """Processor time that the server's loop used meanwhile, for whomever."""

    @classmethod
    def of(cls, beats: Sequence[Beat]) -> Waits:
        return cls(
            sorted(beat.seconds for beat in beats), sorted(beat.loop_seconds for beat in beats)
        )


def at_share(ordered: Sequence[float], share: float) -> float:
    """The least of them that is not exceeded by this share of all."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass(frozen=True)
class Comparison:
    """The good organization's requests of one kind, alone and beside a crowd."""

    crowd: str
    kind: str
    alone: Waits
    beside: Waits

    def ratio(self, share: float, *, of_the_loop: bool = False) -> float:
        if of_the_loop:
            return at_share(self.beside.of_the_loop, share) / at_share(
                self.alone.of_the_loop, share
            )
        return at_share(self.beside.on_the_clock, share) / at_share(self.alone.on_the_clock, share)

    def __str__(self) -> str:
        alone, beside = self.alone.on_the_clock, self.beside.on_the_clock
        figures = [
            1000 * at_share(waits, share) for share in (0.5, 0.99) for waits in (alone, beside)
        ]
        loop = [self.ratio(share, of_the_loop=True) for share in (0.5, 0.99)]
        return (
            f"{self.crowd:<26}{self.kind:<10}{len(alone):>5}{len(beside):>7}"
            f"{figures[0]:>10.1f}{figures[1]:>8.1f}{self.ratio(0.5):>6.1f}x"
            f"{figures[2]:>10.1f}{figures[3]:>8.1f}{self.ratio(0.99):>6.1f}x"
            f"{loop[0]:>8.1f}x{loop[1]:>5.1f}x"
        )


def verdict(found: Sequence[Comparison]) -> str:
    over = [each for each in found if each.ratio(0.99) > RATIO_WANTED]
    return f"{len(over)} of {len(found)} waited more than {RATIO_WANTED:g} times as long, by p99"


def problems(found: Sequence[Comparison]) -> list[str]:
    """What must not be on any machine."""
    return [
        f"beside {each.crowd}, a statement took {ratio:.1f} times the loop's processor time"
        for each in found
        if each.kind == STATEMENT.name and (ratio := each.ratio(0.5, of_the_loop=True)) > RATIO_MOST
    ]


HEADING: Final = (
    f"{'':<36}{'requests':>12}{'median, ms':>25}{'p99, ms':>25}{'of the loop':>15}\n"
    f"{'beside':<26}{'kind':<10}{'alone':>5}{'beside':>7}"
    f"{'alone':>10}{'beside':>8}{'':>7}{'alone':>10}{'beside':>8}{'':>7}{'median':>9}{'p99':>6}"
)


def compare(folder: Path, tell: Callable[[str], None], match: str = "") -> list[Comparison]:
    """Measure beside each crowd whose name has `match` in it."""
    server = start("own", folder, SETTINGS)
    try:
        good, hostile = good_organization(server), hostile_organization(server)
        found = []
        with _apart(), _beating(server, good) as beats:
            for name in CROWDS:
                if match in name:
                    made = _beside(server, hostile, name, beats)
                    for each in made:
                        tell(str(each))
                    found += made
        assert server.stop() == 0, server.output
        return found
    finally:
        server.kill()


def good_organization(server: Server) -> str:
    """Make it, with its table; its key."""
    columns = "id int generated always as identity primary key, name text"
    rows = "insert into beats (name) select 'seven' from generate_series(1, 1000)"
    return _organization(server, "good", f"create table beats ({columns})", rows)


def hostile_organization(server: Server) -> str:
    return _organization(server, "hostile", TABLE, ROWS)


def use(server: Server, key: str) -> dict[str, int]:
    """What an organization has of what it may have, this request too."""
    found = Client(server, key).get("/v1/organization")
    assert found.status_code == 200, found.text
    counts: dict[str, int] = found.json()["use"]
    return counts


def crowd_at(server: Server, key: str, name: str) -> Crowd:
    return Crowd(("127.0.0.1", server.port), key, CROWDS[name])


def _organization(server: Server, name: str, *statements: str) -> str:
    admin = Client(server, KEY)
    made = admin.post("/v1/signup", {"organization": name}).json()
    changed = admin.patch(f"/v1/organizations/{name}", {"limits": LIMITS})
    assert changed.status_code == 200, changed.text
    key: str = made["key"]
    for sql in statements:
        Client(server, key).query(sql)
    return key


@contextmanager
def _apart() -> Iterator[None]:
    """Leave a processor to the server alone, if there are several."""
    all_of_them = os.sched_getaffinity(0)
    if others := sorted(all_of_them)[1:]:
        os.sched_setaffinity(0, others)
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_of_them)


@contextmanager
def _beating(server: Server, key: str) -> Iterator[list[Beat]]:
    """The good organization's requests, in a list that grows."""
    arguments = [server.url, key, str(server.process.pid), PULSE.text()]
    command = [sys.executable, heartbeat.__file__, *arguments]
    beats: list[Beat] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as heart:
        lines = heart.stdout
        assert lines is not None
        with suppress(PermissionError):  # only an administrator may
            os.setpriority(os.PRIO_PROCESS, heart.pid, MOST_PRIORITY)
        listening = threading.Thread(target=lambda: beats.extend(beats_in(lines)))
        listening.start()
        try:
            yield beats
        finally:
            heart.kill()
            listening.join()


def _beside(server: Server, key: str, crowd: str, beats: list[Beat]) -> list[Comparison]:
    alone: list[Beat] = []
    beside: list[Beat] = []
    for _ in range(ROUNDS):
        alone += _window(beats)
        made = crowd_at(server, key, crowd)
        try:
            beside += _window(beats)
        finally:
            made.end()
        eventually(lambda: use(server, key)["connections"] <= 1, "the crowd does not end")
    bad = [beat for beat in (*alone, *beside) if beat.status != 200]
    assert not bad, f"beside {crowd}, the good organization got {bad[0]}"
    return [
        Comparison(crowd, ask.name, *(Waits.of(_of(ask, each)) for each in (alone, beside)))
        for ask in PULSE.asks
    ]


def _of(ask: Ask, beats: list[Beat]) -> list[Beat]:
    return [beat for beat in beats if beat.name == ask.name]


def _window(beats: list[Beat]) -> list[Beat]:
    """Those of the requests that begin and end from now on, for a while.

    It goes on until there is one of each kind.
    """
    before, began = len(beats), time.monotonic()
    for _ in range(WINDOWS_MAX):
        time.sleep(WINDOW_SECONDS)
        found = [beat for beat in beats[before:] if beat.at - beat.seconds >= began]
        if all(_of(ask, found) for ask in PULSE.asks):
            return found
    raise AssertionError("requests were not answered any more")
