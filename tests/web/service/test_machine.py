"""Half of what the machine has, or of what a cgroup leaves of it."""

from __future__ import annotations

from pathlib import Path

from qserver.web.service.machine import half_of_memory


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
