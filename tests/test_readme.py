"""The README's session, run as a newcomer would: every command, in order, with the answer it shows.

What cannot be the same twice (times, ids, secrets, sizes) is masked on both sides; all else must
be equal to the letter.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Timer

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.web.contract.servers import start

ROOT = Path(__file__).parent.parent
KEEPS = re.compile(r"export (\w+)=(svc_[ks]_)\w+")
EXAMPLE = re.compile(
    r"^```python\n(.*?)^```\n\n```\n(.*?)^```$|^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
"""A program and what it prints, or commands."""
pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")

KEY = "svc_k_readme_0123456789"
MASKS = (
    (r'"(\w+_us|size_bytes)":\d+', r'"\1":0'),
    (r'"(\w+_at|time)":"[^"]+"', r'"\1":"then"'),
    (r'"(id|key_id|request_id)":"[^"]+"', r'"\1":"some"'),
    (r"svc_([ks])_[\w-]+", r"svc_\1_secret"),
)


def masked(text: str) -> str:
    for pattern, replacement in MASKS:
        text = re.sub(pattern, replacement, text)
    return text.strip()


def commands_of(text: str) -> list[tuple[str, str]]:
    """The commands that use curl, each with the answer that is shown below it, and those that keep
    a secret of the last answer in a variable; and programs, since later answers depend on them."""
    commands = []
    for program, shown, block in EXAMPLE.findall(text):
        if program:
            commands.append((f"{sys.executable} -c {shlex.quote(program)}", shown))
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, answer = part.partition("\n")
            if command.startswith("curl") or KEEPS.fullmatch(command):
                commands.append((command, answer))
    return commands


def readme() -> str:
    return (ROOT / "README.md").read_text().split("## Quickstart")[1].split("\n## ")[0]


def page_on_http() -> str:
    return (ROOT / "docs" / "http.md").read_text()


def answer_to(command: str, shown: str, folder: Path, environment: dict[str, str]) -> str:
    """What a command prints. One that reads a stream without an end ends with what is shown."""
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command}" if "--max-time" in command else command],
        env=environment,
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    answered, hang = "", Timer(PATIENCE_SECONDS, process.kill)
    hang.start()
    with process:
        for line in process.stdout:
            answered += line
            if "--max-time" in command and masked(answered) == masked(shown):
                process.kill()
    hang.cancel()
    return answered


def page_on_dbapi() -> str:
    return (ROOT / "docs" / "dbapi.md").read_text()


def page_on_sqlalchemy() -> str:
    return (ROOT / "docs" / "sqlalchemy.md").read_text()


@pytest.mark.parametrize(
    ("page", "least"),
    [(readme, 10), (page_on_http, 3), (page_on_dbapi, 1), (page_on_sqlalchemy, 3)],
)
def test_a_session_goes_as_it_is_shown(tmp_path: Path, page: Callable[[], str], least: int) -> None:
    server = start("own", tmp_path, {"QSERVER_API_KEY": KEY})
    try:
        environment = {"PATH": os.environ["PATH"], "KEY": KEY, "URL": server.url}
        commands = commands_of(page())
        assert len(commands) >= least
        answered = ""
        for command, shown in commands:
            keeps = KEEPS.fullmatch(command)
            if keeps is not None:
                environment[keeps[1]] = re.findall(rf'"({keeps[2]}[^"]+)"', answered)[-1]
                continue
            answered = answer_to(command, shown, tmp_path, environment)
            assert masked(answered) == masked(shown), command
    finally:
        assert server.stop() == 0, server.output


def test_the_line_that_the_first_start_prints_works_when_pasted(tmp_path: Path) -> None:
    server = start("own", tmp_path, {})
    try:
        line = re.search(r"^ *(curl .*\\\n.*)$", server.output, re.MULTILINE)
        assert line is not None, server.output
        done = subprocess.run(
            ["bash", "-c", line[1]], capture_output=True, text=True, timeout=240, check=True
        )
        assert '"rows":[{"one":1}]' in done.stdout
    finally:
        assert server.stop() == 0, server.output
