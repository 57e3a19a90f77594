"""The bench runs, says what it should and notices a wrong sum; contention spares the rate."""

from __future__ import annotations

import io
import re

import pytest
import trio

from qserver.benchmarks.printing import Progress
from tests.speed.engine import KEPT_AIM, Plan, filled_counters, main, run

TINY = Plan(seconds=0.01, clients=(1, 8), keys=(1, 3, 200), long_clients=4, long_keys=(1, 50))

SHAPE = r"""
commits per second through the coordinator, keys without contention
 +per CPU s +per s   aim per CPU s
a key on one shard, 8 clients +[\d,]+ +[\d,]+   15,000, (reached|missed)
a key on each of 4 shards, 8 clients +[\d,]+ +[\d,]+   5,000, (reached|missed)
a key on one shard, 1 client +[\d,]+ +[\d,]+
a key on each of 4 shards, 1 client +[\d,]+ +[\d,]+

short work: each client increments one random key in a loop
 clients +keys +per CPU s +per s  conflicts per commit  retries  exclusive   sum of all counters
       1 +1 +[\d,]+ +[\d,]+ +0\.000        0          0   is what was acknowledged
       8 +1 +[\d,]+ +[\d,]+ +0\.\d{3} +\d+          0   is what was acknowledged
       1 +3 +[\d,]+ +[\d,]+ +0\.000        0          0   is what was acknowledged
       8 +3 +[\d,]+ +[\d,]+ +0\.\d{3} +\d+          0   is what was acknowledged
       1 +200 +[\d,]+ +[\d,]+ +0\.000        0          0   is what was acknowledged
       8 +200 +[\d,]+ +[\d,]+ +0\.\d{3} +\d+          0   is what was acknowledged
8 clients on 3 keys keep \d+ % of the rate on 200 keys \(aim: at least 50 %\)

long work: the same, but it yields once between reading and writing
 clients +keys +per CPU s +per s  conflicts per commit  retries  exclusive   sum of all counters
       4 +1 +[\d,]+ +[\d,]+ +\d+\.\d{3} +\d+ +\d+   is what was acknowledged
       4 +50 +[\d,]+ +[\d,]+ +\d+\.\d{3} +\d+ +\d+   is what was acknowledged
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


async def test_the_bench_prints_its_three_blocks_and_shows_how_far_it_is() -> None:
    written: list[str] = []
    stream = Terminal()
    await run(TINY, written.append, Progress(TINY.cells, stream))
    lines = "\n".join(written).splitlines()
    for line, shape in zip(lines, SHAPE.strip("\n").splitlines(), strict=True):
        assert re.fullmatch(shape, line), f"{line!r} is not like {shape!r}"
    shown = stream.getvalue().split("\r\x1b[K")
    assert shown[1] == f"{'░' * 30} 0/12  a key on one shard, 8 clients"
    assert shown[-2] == f"{'█' * 27}{'░' * 3} 11/12  long work on 50 keys"
    assert shown[-1] == "", "a clean line at the end"


async def test_there_is_no_bar_where_there_is_no_terminal() -> None:
    async def step() -> None:
        await trio.lowlevel.checkpoint()

    stream = io.StringIO()
    await Progress(1, stream).step("a step", step())
    assert stream.getvalue() == ""


async def test_an_increment_too_many_or_too_few_is_noticed() -> None:
    async with filled_counters(3) as counters:
        await counters.check()
        work, _ = counters.one_key()
        await counters.database.transact(work)
        with pytest.raises(SystemExit, match="add up to 1, but 0 increments were acknowledged"):
            await counters.check()


def test_the_seconds_are_an_argument(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    assert "--seconds" in capsys.readouterr().out


async def test_contention_costs_at_most_half_of_the_rate() -> None:
    """256 clients on 10 keys against 100,000 keys, by CPU time; noise can only spoil a try."""
    kept: list[float] = []
    async with filled_counters(10) as few, filled_counters(100_000) as many:
        for _ in range(3):
            contended = await few.measure(256, 0.2, few.one_key)
            free = await many.measure(256, 0.2, many.one_key)
            kept.append(contended.per_cpu_second / free.per_cpu_second)
            if kept[-1] >= KEPT_AIM:
                return
    raise AssertionError(f"only {max(kept):.0%} of the rate is kept")
