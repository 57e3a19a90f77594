"""The commands of docs/moving.md, run in order, with what they print."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.real_server import KEY, ROOT

COMMAND = re.compile(r"(.*(?:\n> .*)*)\n((?:.*\n)*)")
"""A command, with lines that go on after `> `, and what it prints."""
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="sqlite3 is not installed")
def test_the_page_about_moving_goes_as_it_is_shown(url: str, tmp_path: Path) -> None:
    binaries = Path(sys.executable).parent
    environment = {
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "QSERVER_URL": url,
        "QSERVER_API_KEY": KEY,
    }
    text = (ROOT / "docs" / "moving.md").read_text(encoding="utf-8")
    commands = [
        COMMAND.fullmatch(part)
        for block in BLOCK.findall(text)
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    ]
    assert len(commands) > 3
    for found in commands:
        assert found is not None
        command, shown = found[1].replace("\n> ", "\n"), found[2]
        done = subprocess.run(
            ["bash", "-c", command],
            env=environment,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.stdout == shown, command
