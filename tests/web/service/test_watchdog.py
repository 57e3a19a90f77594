"""A loop that stands still is seen, named and, in the end, ended."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from sys import _getframe

import pytest

from qserver.lexing.fingerprint import parameterize
from qserver.web.service.watchdog import EVIDENCE, fingerprint_of
from tests.patience import PATIENCE_SECONDS

PROGRAM = """
import re, sys, time, trio
from pathlib import Path
from qserver.lexing.fingerprint import parameterize
from qserver.web.service import watchdog

counted = []
watch = watchdog.Watchdog(
    lambda text: print(text, flush=True),
    exit_seconds={exit_seconds},
    evidence=Path(sys.argv[1]),
    count=lambda: counted.append(1),
)

def sleeps():
    parameterized = parameterize("select pg_sleep(12345), 'secret'")
    time.sleep({seconds})

def keeps_the_interpreter():
    began, size = time.monotonic(), 24
    while time.monotonic() - began < {seconds}:
        re.match("(a|a)+b", "a" * size)
        size += 1

async def main():
    async with watch.running():
        await trio.sleep(0.6)
        {what}()
        await trio.sleep(0.6)
    print("stalls:", len(counted), flush=True)

trio.run(main)
"""


RUNS: Mapping[str, Mapping[str, object]] = {
    "sleeps": {"exit_seconds": None, "seconds": 2, "what": "sleeps"},
    "keeps": {"exit_seconds": None, "seconds": 1.5, "what": "keeps_the_interpreter"},
    "is stuck": {"exit_seconds": 2, "seconds": 60, "what": "sleeps"},
    "never returns": {
        "exit_seconds": 1,
        "seconds": 0,
        "what": "(lambda: re.match('(a|a)+b', 'a' * 100))",
    },
}


def begin(folder: Path, values: Mapping[str, object]) -> Popen[str]:
    command = [sys.executable, "-c", PROGRAM.format(**values), str(folder / EVIDENCE)]
    return Popen(command, stdout=PIPE, stderr=PIPE, text=True)


@dataclass(frozen=True)
class Run:
    folder: Path
    process: Popen[str]

    def output(self) -> str:
        output, errors = self.process.communicate(timeout=PATIENCE_SECONDS)
        return output + errors


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Run]]:
    """All at once, because they mostly wait."""
    with ExitStack() as stack:
        begun = {}
        for name, values in RUNS.items():
            folder = tmp_path_factory.mktemp("watched")
            process = stack.enter_context(begin(folder, values))
            stack.callback(process.kill)
            begun[name] = Run(folder, process)
        yield begun


@pytest.mark.long
def test_a_loop_that_stands_still_is_reported_once_with_its_statement_and_place(
    runs: dict[str, Run],
) -> None:
    run = runs["sleeps"]
    output = run.output()
    assert run.process.returncode == 0, output
    assert "stalls: 1" in output
    assert "in the statement select pg_sleep(?), ?" in output
    assert "in sleeps" in output
    assert "12345" not in output and "secret" not in output
    assert not list(run.folder.iterdir()), "nothing is left of a process that ended well"


@pytest.mark.long
def test_a_stall_in_code_that_keeps_the_interpreter_is_reported_when_it_is_over(
    runs: dict[str, Run],
) -> None:
    run = runs["keeps"]
    output = run.output()
    assert run.process.returncode == 0, output
    assert re.search("the event loop (stood|has stood) still for", output), output
    assert "stalls: 0" not in output


@pytest.mark.long
def test_a_process_that_is_stuck_is_ended_and_leaves_evidence(runs: dict[str, Run]) -> None:
    run = runs["is stuck"]
    output, file = run.output(), run.folder / EVIDENCE
    assert run.process.returncode == -6, output
    evidence = file.read_text()
    assert "in the statement select pg_sleep(?), ?" in evidence
    assert "in sleeps" in evidence and "in _watch_for_ever" in evidence
    assert file.stat().st_mode & 0o077 == 0

    values = {"exit_seconds": PATIENCE_SECONDS, "seconds": 0, "what": "sleeps"}
    with begin(run.folder, values) as process:
        again = Run(run.folder, process)
        output = again.output()
    assert process.returncode == 0
    (kept,) = run.folder.glob("stall-*.txt")
    assert f"see {kept}" in output
    assert kept.read_text() == evidence


@pytest.mark.half
def test_code_that_never_gives_the_interpreter_back_is_ended_too(runs: dict[str, Run]) -> None:
    run = runs["never returns"]
    output = run.output()
    assert run.process.returncode == 1, output
    assert "most recent call first" in (run.folder / EVIDENCE).read_text()


def test_a_stack_without_a_statement_has_no_fingerprint() -> None:
    assert fingerprint_of(None) == "(none)"
    parameterized = parameterize("select 'x'")
    assert parameterized.literals == ["x"]
    assert fingerprint_of(_getframe()) == "select ?"
