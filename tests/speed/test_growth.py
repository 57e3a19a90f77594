"""The benchmark of growth measures a real server, saves its curves, and they can be drawn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docs.generate.line_chart import Scale, chart
from tests.speed.growth import server
from tests.speed.growth.__main__ import main
from tests.speed.growth.curves import Chart, Line, Panel, sizes_up_to


@pytest.mark.long
def test_small_sizes_are_measured_saved_and_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(server, "BATCH_CPU_SECONDS", 0.001)
    small = ["--connections-max", "2", "--statements-max", "2", "--output", str(tmp_path)]
    assert main(["connections", "transactions", *small]) == 0
    assert capsys.readouterr().out.count("saved in") == 2
    for part in ("connections", "transactions"):
        data = json.loads((tmp_path / f"growth_{part}.json").read_text())
        (panel,) = data["panels"]
        for line in panel["lines"]:
            assert [size for size, _ in line["points"]] == [1, 2]
            assert all(value > 0 for _, value in line["points"])
        assert chart(data).endswith("</svg>\n")


def test_a_part_that_is_unknown_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["columns"])
    assert "there is no part 'columns'" in capsys.readouterr().err


def test_sizes_are_steps_of_each_power_of_ten_and_the_largest() -> None:
    assert sizes_up_to(1_000_000, first=1000) == [1000, 10_000, 100_000, 1_000_000]
    assert sizes_up_to(250, per_decade=(1, 3)) == [1, 3, 10, 30, 100, 250]
    assert sizes_up_to(2) == [1, 2]


def test_equal_factors_are_equal_distances() -> None:
    scale = Scale.over([3.0, 4000.0], 100.0, 400.0)
    assert (scale.low, scale.high) == (0, 4)
    assert [scale.at(value) for value in scale.ticks()] == [100.0, 200.0, 300.0, 400.0, 500.0]


def test_a_chart_names_its_lines_with_their_ends_and_leaves_out_empty_panels() -> None:
    line, empty = Line("read"), Line("nothing")
    line.add(1, 2.34567)
    line.add(1000, 45678.9)
    panel = Panel("Time", "rows", "µs", [line, Line("write", [(1, 5.0), (1000, 5.0)])])
    made = Chart("test", "A title", [panel, Panel("Memory", "rows", "bytes", [empty])])
    data = json.loads(made.as_json())
    assert [panel["title"] for panel in data["panels"]] == ["Time"]
    drawn = chart(data)
    assert "read: 2.35 to 45,700" in drawn and "write: 5 to 5" in drawn
    assert drawn.count("stroke-dasharray") == 1, "growth in proportion, where there is growth"
