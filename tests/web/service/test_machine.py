"""What the machine has, or what a cgroup leaves of it."""

from __future__ import annotations

from pathlib import Path

from qserver.web.service.machine import cores, half_of_memory


def test_a_cgroup_may_leave_less_than_the_machine_has(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    whole = half_of_memory((limit,))
    assert whole > 1 << 27
    limit.write_text("max\n")
    assert half_of_memory((limit,)) == whole
    limit.write_text(f"{1 << 26}\n")
    assert half_of_memory((limit,)) == 1 << 25
    limit.write_text(f"{1 << 60}\n")
    assert half_of_memory((limit,)) == whole


def test_a_cgroup_may_leave_fewer_processors_than_the_machine_has(tmp_path: Path) -> None:
    quota = tmp_path / "cpu.max"
    every = cores(quota)
    assert every >= 1
    for text, count in (
        ("max 100000", every),
        ("50000 100000", 1),
        ("100000 100000", 1),
        ("150000 100000", min(every, 2)),
        ("9000000 100000", min(every, 90)),
    ):
        quota.write_text(f"{text}\n")
        assert cores(quota) == count, text
