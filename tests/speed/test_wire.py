"""PostgreSQL's wire is measured beside HTTP: each way of asking once, with few requests."""

from __future__ import annotations

import pytest

from tests.speed import wire


@pytest.mark.long
def test_each_way_is_measured_beside_http(capsys: pytest.CaptureFixture[str]) -> None:
    assert wire.main(["--requests", "320", "--rounds", "1"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert "wire" in head and "HTTP" in head
    assert [line.split()[0] for line in lines] == list(wire.WORKS)
    for line in lines:
        over_wire, over_http, ratio = map(float, line.split()[1:])
        assert abs(over_http / over_wire - ratio) < 0.01
