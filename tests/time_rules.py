"""No test bounds a time in seconds: a rule over the syntax trees of the tests.

A bound that holds here fails on a machine that is slower. So only few modules may read a clock, and
whoever waits for something that must come has the patience of minutes, or Trio's clock that jumps.
`tests/known_work.py` measures times; `tests/patience.py` waits.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Final

from tests.house_rules import Module, Rule

CLOCKS: Final = frozenset(
    f"time.{name}{unit}"
    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time")
    for unit in ("", "_ns")
)
MAY_READ_CLOCKS: Final[Mapping[str, str]] = {
    "tests/known_work.py": "measures, beside known work",
    "tests/patience.py": "ends what hangs",
    "tests/steady_clock.py": "is a clock",
    "tests/django/suite/running.py": "a program that tells how far it is",
    "tests/conformance.py": "a program that lasts as long as it is told",
    "tests/differential/__main__.py": "a program that lasts as long as it is told",
    "tests/differential/metamorphic/__main__.py": "a program that tells its rate",
    "tests/powerloss/__main__.py": "a program that lasts as long as it is told",
    "tests/hostile/__main__.py": "a program that lasts as long as it is told",
    "tests/hostile/sweep.py": "its figures are for `make hostile`; tests judge them in steps",
    "tests/hostile/statement_sweep.py": "its figures are for `make hostile`",
    "tests/hostile/siege.py": "its figures are for `make hostile`; tests judge them in steps",
    "tests/hostile/heartbeat.py": "its figures are for `make hostile`; tests judge them in steps",
    "tests/hostile/side_by_side.py": "its figures are for `make hostile`",
    "tests/torture/branching.py": "knows how old versions are that must be kept",
    "tests/powerloss/worker.py": "gives a server its clock",
    "tests/web/service/test_health.py": "gives a server its clock",
    "tests/simulations/test_repeatable.py": "shows that a simulation may not read the clock",
    "tests/http1/test_pending_answers.py": "names a time that is far away",
    "tests/durability/test_appending_here.py": "names a time that is far away",
    "tests/benchmarks/test_bench.py": "a rate is so many requests in the time that passed",
}
PATIENCE_SECONDS_MIN: Final = 60
WAITS: Final = frozenset({"fail_after", "settimeout", "wait", "join", "communicate"})
"""Calls whose first argument may be how long to wait for what must come."""

JUMPING: Final = frozenset({"autojump_clock", "mock_clock"})
MAY_BE_IMPATIENT: Final[Mapping[str, str]] = {
    "tests/web/contract/test_greedy_readers.py": "the answer is cut off, or nobody sends more",
}


def clocks_are_read_where_times_are_measured(module: Module) -> Iterator[str]:
    if module.path in MAY_READ_CLOCKS or _measures(module):
        return
    for node in module.nodes:
        if isinstance(node, ast.Name | ast.Attribute) and module.origin(node) in CLOCKS:
            yield module.at(
                node.lineno, f"{module.origin(node)}: judge a time in steps of known work"
            )


def _measures(module: Module) -> bool:
    """Programs of `make bench`: their figures are for people."""
    return module.path.startswith("tests/speed/") and "/test_" not in module.path


def what_must_come_is_waited_for_in_minutes(module: Module) -> Iterator[str]:
    if module.path in MAY_BE_IMPATIENT or _measures(module):
        return
    jumping = {
        id(node)
        for function in module.nodes
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        and JUMPING & {argument.arg for argument in function.args.args}
        for node in ast.walk(function)
    }
    for node in module.nodes:
        if isinstance(node, ast.Call) and id(node) not in jumping:
            seconds = _waited_seconds(node)
            if seconds is not None and 0 < seconds < PATIENCE_SECONDS_MIN:
                yield module.at(node.lineno, f"{seconds} s are too little on a slow machine")


def _waited_seconds(call: ast.Call) -> float | None:
    """How long a call waits, if it says so in a number."""
    match call:
        case ast.Call(
            func=ast.Attribute(attr=name) | ast.Name(id=name),
            args=[ast.Constant(value=int() | float() as seconds)],
        ) if name in WAITS:
            return seconds
    for keyword in call.keywords:
        match keyword:
            case ast.keyword(arg="timeout", value=ast.Constant(value=int() | float() as seconds)):
                return seconds
    return None


RULES: Final[tuple[Rule, ...]] = (
    clocks_are_read_where_times_are_measured,
    what_must_come_is_waited_for_in_minutes,
)
