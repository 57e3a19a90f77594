"""System calls on files per lone commit, counted by strace."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final

from tests.hot_path.commits import BEGIN, COMMITS, END

ROOT: Final = Path(__file__).parent.parent.parent
_CALL: Final = re.compile(r"^\d+\s+(?:<\.\.\. )?(\w+)")
# Which of these a C library uses differs between machines.
_SAME: Final = dict.fromkeys(("fstat", "lstat", "newfstatat", "statx"), "stat")


class StraceUnusable(Exception):
    """There is no strace, or it may not trace."""


def calls_of_commit(folder: Path) -> dict[str, float]:
    """Calls per commit, by name; waiting for events and for other threads does not count."""
    strace = shutil.which("strace")
    if strace is None:
        raise StraceUnusable("strace is not installed")
    output = folder / "strace.txt"
    tracing = [strace, "-f", "-qq", "-o", str(output), "-e", "trace=%file,%desc"]
    try:
        subprocess.run([*tracing, "true"], check=True, capture_output=True)
    except subprocess.CalledProcessError as error:
        raise StraceUnusable(error.stderr.decode(errors="replace").strip()) from error
    command = [sys.executable, "-m", "tests.hot_path.commits", str(folder / "data")]
    subprocess.run([*tracing, *command], check=True, cwd=ROOT)
    counted: Counter[str] = Counter()
    counts = False
    for line in output.read_text(errors="replace").splitlines():
        if BEGIN in line:
            counts = True
        elif END in line:
            break
        elif counts and "resumed>" not in line and (found := _CALL.match(line)):
            counted[_SAME.get(found[1], found[1])] += 1
    return {
        name: round(number / COMMITS, 2)
        for name, number in sorted(counted.items())
        if not name.startswith("epoll")
    }
