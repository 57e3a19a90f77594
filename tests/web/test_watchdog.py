"""A loop that stands still is seen, named and, in the end, ended."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from sys import _getframe

from qserver.lexing.fingerprint import parameterize
from qserver.web.watchdog import EVIDENCE, fingerprint_of

PROGRAM = """
import re, sys, time, trio
from pathlib import Path
from qserver.lexing.fingerprint import parameterize
from qserver.web import watchdog

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


def run(folder: Path, **values: object) -> subprocess.CompletedProcess[str]:
    program = PROGRAM.format(**values)
    return subprocess.run(
        [sys.executable, "-c", program, str(folder / EVIDENCE)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_loop_that_stands_still_is_reported_once_with_its_statement_and_place(
    tmp_path: Path,
) -> None:
    ended = run(tmp_path, exit_seconds=None, seconds=3, what="sleeps")
    assert ended.returncode == 0, ended.stderr
    assert "stalls: 1" in ended.stdout
    assert "in the statement select pg_sleep(?), ?" in ended.stdout
    assert "in sleeps" in ended.stdout
    assert "12345" not in ended.stdout and "secret" not in ended.stdout
    assert not list(tmp_path.iterdir()), "nothing is left of a process that ended well"


def test_a_stall_in_code_that_keeps_the_interpreter_is_reported_when_it_is_over(
    tmp_path: Path,
) -> None:
    ended = run(tmp_path, exit_seconds=None, seconds=2, what="keeps_the_interpreter")
    assert ended.returncode == 0, ended.stderr
    assert re.search("the event loop (stood|has stood) still for", ended.stdout), ended.stdout
    assert "stalls: 0" not in ended.stdout


def test_a_process_that_is_stuck_is_ended_and_leaves_evidence(tmp_path: Path) -> None:
    ended = run(tmp_path, exit_seconds=2, seconds=60, what="sleeps")
    assert ended.returncode == -6, ended.stdout
    evidence = (tmp_path / EVIDENCE).read_text()
    assert "in the statement select pg_sleep(?), ?" in evidence
    assert "in sleeps" in evidence and "in _watch_for_ever" in evidence
    assert (tmp_path / EVIDENCE).stat().st_mode & 0o077 == 0

    again = run(tmp_path, exit_seconds=2, seconds=0, what="sleeps")
    assert again.returncode == 0
    (kept,) = tmp_path.glob("stall-*.txt")
    assert f"see {kept}" in again.stdout
    assert kept.read_text() == evidence


def test_code_that_never_gives_the_interpreter_back_is_ended_too(tmp_path: Path) -> None:
    endless = "(lambda: re.match('(a|a)+b', 'a' * 100))"
    ended = run(tmp_path, exit_seconds=2, seconds=0, what=endless)
    assert ended.returncode == 1, ended.stdout
    assert "most recent call first" in (tmp_path / EVIDENCE).read_text()


def test_a_stack_without_a_statement_has_no_fingerprint() -> None:
    assert fingerprint_of(None) == "(none)"
    parameterized = parameterize("select 'x'")
    assert parameterized.literals == ["x"]
    assert fingerprint_of(_getframe()) == "select ?"
