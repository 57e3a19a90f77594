"""A key that was given as an argument is not among those of the running process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from qserver.cli.hidden_key import without_key

KEY = "svc_k_0123456789abcdef"


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (["q", "sql", "--key", KEY, "-c", "select 1"], ["q", "sql", "-c", "select 1"]),
        (["q", "sql", f"--key={KEY}", "-c", "select 1"], ["q", "sql", "-c", "select 1"]),
        (["q", "serve", "--api-key", KEY], ["q", "serve"]),
        (["q", "serve", f"--api-k={KEY}", "--port", "1"], ["q", "serve", "--port", "1"]),
        (["q", "serve", "--api", KEY], ["q", "serve"]),
        (["q", "sql", "--key-file", "x", "--k", KEY], ["q", "sql", "--key-file", "x"]),
        (["q", "sql", "--", "--key", "other"], ["q", "sql", "--", "--key", "other"]),
        (["q", "sql", "-c", f"select '{KEY}'"], ["q", "sql", "-c", f"select '{KEY}'"]),
    ],
)
def test_the_flag_with_the_key_is_left_out(given: list[str], left: list[str]) -> None:
    assert without_key(given, KEY) == left


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="there is no /proc")
def test_no_list_of_processes_shows_the_key() -> None:
    environ = {name: value for name, value in os.environ.items() if name != "QSERVER_API_KEY"}
    command = [sys.executable, "-m", "qserver", "sql", "--url", "http://127.0.0.1:1", "--key", KEY]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stderr=pipe, env=environ, text=True) as running:
        arguments = Path(f"/proc/{running.pid}/cmdline")
        while not (shown := arguments.read_bytes()) or KEY.encode() in shown:
            assert running.poll() is None, "it ended, and showed the key until then"
        assert shown.split(b"\0")[1:-1] == [
            b"-m",
            b"qserver",
            b"sql",
            b"--url",
            b"http://127.0.0.1:1",
        ]
        variables = Path(f"/proc/{running.pid}/environ").read_bytes().split(b"\0")
        assert f"_QSERVER_KEY={KEY}".encode() in variables
        _, told = running.communicate("select 1;\n", timeout=120)
    assert "no API key" not in told and "127.0.0.1" in told


@pytest.mark.long
def test_a_key_that_is_wrong_is_not_called_a_setting(tmp_path: Path) -> None:
    """It has come by a flag, and the server's own key may be another one."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("QSERVER_")}
    command = [sys.executable, "-m", "qserver", "doctor", "--data", str(tmp_path), "--key"]
    for key, told in (("nonsense", ""), (KEY, "--key looks like that of an example")):
        done = subprocess.run([*command, key], env=clean, capture_output=True, text=True)
        assert "QSERVER_API_KEY" not in done.stdout and key not in done.stdout
        assert told in done.stdout, done.stdout + done.stderr
