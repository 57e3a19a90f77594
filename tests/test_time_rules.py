"""The tests are held to the rules about time and patches; each rule is shown to be able to fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import patch_rules, time_rules
from tests.house_rules import Module

ROOT = Path(__file__).parents[1]


def test_the_tests_keep_the_rules() -> None:
    paths = sorted((ROOT / "tests").rglob("*.py"))
    assert len(paths) > 300
    modules = (Module(path.relative_to(ROOT).as_posix(), path.read_text()) for path in paths)
    rules = (*time_rules.RULES, *patch_rules.RULES)
    complaints = [complaint for module in modules for rule in rules for complaint in rule(module)]
    assert complaints == []


def test_every_exception_is_still_needed() -> None:
    exceptions = (time_rules.MAY_READ_CLOCKS, time_rules.MAY_BE_IMPATIENT, patch_rules.PATCHED)
    rules = (*time_rules.RULES, *patch_rules.RULES)
    for allowed, rule in zip(exceptions, rules, strict=True):
        for path in allowed:
            elsewhere = Module("tests/test_elsewhere.py", (ROOT / path).read_text())
            assert list(rule(elsewhere)), f"{path} keeps the rule"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import time\nassert time.monotonic() - began < 50", 1),
        ("from time import perf_counter as now\nbegan = now()", 1),
        ("import time as t\nassert t.thread_time_ns() < 5", 1),
        ("import time\ntime.sleep(0.01)", 0),
        ("from tests.known_work import measured\nwith measured() as taken:\n    pass", 0),
    ],
)
def test_a_clock_that_is_read_is_found(source: str, found: int) -> None:
    module = Module("tests/web/test_any.py", source)
    assert len(list(time_rules.clocks_are_read_where_times_are_measured(module))) == found


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("with trio.fail_after(5): pass", 1),
        ("assert done.wait(10)", 1),
        ("connection.settimeout(0.5)", 1),
        ("subprocess.run(command, timeout=30)", 1),
        ("subprocess.run(command, timeout=240)", 0),
        ("with trio.fail_after(PATIENCE_SECONDS): pass", 0),
        ("with trio.move_on_after(0.02): pass", 0),
        ("done.wait()", 0),
    ],
)
def test_too_little_patience_is_found(statement: str, found: int) -> None:
    rule = time_rules.what_must_come_is_waited_for_in_minutes
    plain = Module("tests/web/test_any.py", f"def test_it(tmp_path):\n    {statement}")
    assert len(list(rule(plain))) == found
    jumps = Module("tests/web/test_any.py", f"def test_it(autojump_clock):\n    {statement}")
    assert list(rule(jumps)) == []


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("patch.setattr(shard, 'prepare', broken)", 1),
        ("patch.setattr(shard.Shard, 'prepare', broken)", 1),
        ("patch.setattr('qserver.engine.shard.Shard.prepare', broken)", 1),
        ("patch.setattr(shard.Shard, name, broken)", 1),
        ("patch.setattr(shard, 'ROWS_MAX', 3)", 0),
        ("patch.setattr('qserver.engine.shard.ROWS_MAX', 3)", 0),
        ("patch.setattr(shard, f'ROWS_{name}', 3)", 0),
        ("patch.setattr(shard, 'monotonic', clock)", 0),
        ("patch.setattr('sys.stdin', terminal)", 0),
        ("patch.setattr(fake, 'prepare', broken)", 0),
    ],
)
def test_a_function_of_the_product_that_is_replaced_is_found(statement: str, found: int) -> None:
    module = Module("tests/web/test_any.py", f"from qserver.engine import shard\n{statement}")
    assert len(list(patch_rules.only_clocks_and_limits_are_replaced(module))) == found
