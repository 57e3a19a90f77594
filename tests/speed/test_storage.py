"""The bench runs and prints its table, and a batch costs far less than its changes one by one."""

from __future__ import annotations

import gc
import re

import pytest

from tests.speed.storage import BATCH, BATCH_RATIO_AIM, Bench, collector_off, main

TIME = r"\d+\.\d+"


@pytest.mark.long
def test_the_bench_prints_a_line_for_each_measurement(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--rows", "1000", "--repeats", "1"])
    title, *blocks = capsys.readouterr().out.strip().split("\n\n")
    assert re.fullmatch(r"storage bench, best of 1 runs, Python 3\.\S+", title)
    lines = [line for block in blocks for line in block.splitlines()]
    other_map = rf"{TIME} +{TIME} +{TIME} +{TIME}"
    batch = rf"{TIME} +{TIME} +{TIME} +(met|missed)"
    patterns = [
        r"maps: random get and put on 1,000 rows +get µs +of B\+tree +put µs +of B\+tree",
        rf"  B\+tree +{TIME} +{TIME}",
        rf"  immutables\.Map +({other_map}|not installed)",
        rf"  pyrsistent\.pmap +{other_map}",
        r"batches: 1,000 sorted rows into 1,000, per row +batch µs +single µs +ratio +aim < 0\.33",
        rf"  contiguous new keys +{batch}",
        rf"  spread over the table +{batch}",
        r"reading: all of 1,000 rows, per row +ns",
        rf"  scan of one tree +{TIME}",
        rf"  scan of ranges +{TIME}",
        rf"  backward scan of ranges +{TIME}",
        r"comparing: 1,000 rows then and now +µs",
        rf"  difference after 1 changed +{TIME}",
        rf"  difference after 100 changed +{TIME}",
        rf"  conflict test of one key after 1 changed +{TIME}",
        rf"  conflict test of the whole table after 1 changed +{TIME}",
    ]
    for pattern, line in zip(patterns, lines, strict=True):
        assert re.fullmatch(pattern, line), line


@pytest.mark.parametrize("wrong", [["--rows", "999"], ["--repeats", "0"], ["--rows", "many"]])
def test_the_bench_refuses_what_it_cannot_measure(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(wrong)
    assert "usage: python -m tests.speed.storage" in capsys.readouterr().err


@pytest.mark.long
def test_the_collector_is_off_during_a_measurement_only() -> None:
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), collector_off():
        assert not gc.isenabled()
        assert gc.get_freeze_count() > 0
        raise ZeroDivisionError
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


@pytest.mark.long
def test_a_batch_of_contiguous_rows_costs_less_than_a_third_of_single_puts() -> None:
    bench = Bench(rows=100_000, repeats=5)
    keys = bench.contiguous_keys()
    assert len(keys) == BATCH
    with collector_off():
        measured = bench.batch(keys)
    assert measured.ratio < BATCH_RATIO_AIM
