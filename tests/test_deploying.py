"""What deployments are made of: the container, the unit of systemd, what buildpacks look for."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import httpx
import pytest

from qserver.config import SETTINGS
from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "deploying"
CONTAINERFILE = (FOLDER / "Containerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAMES = {setting.name for setting in SETTINGS}
DRAIN_SECONDS = next(
    float(each.default) for each in SETTINGS if each.name == "QSERVER_DRAIN_TIMEOUT_S"
)
EXPOSURE_MOST = 2.0
"""As `systemd-analyze security` counts it: 10 is worst."""


def instructions(word: str) -> list[str]:
    joined = CONTAINERFILE.replace("\\\n", " ")
    return [line.partition(" ")[2].strip() for line in joined.splitlines() if line.startswith(word)]


def test_what_the_image_copies_is_there_and_not_ignored() -> None:
    ignored = (ROOT / ".containerignore").read_text()
    assert ignored == (ROOT / ".dockerignore").read_text()
    let_through = [line[1:] for line in ignored.splitlines() if line.startswith("!")]
    copied = [
        each for line in instructions("COPY") if "--from" not in line for each in line.split()[:-1]
    ]
    assert copied
    for each in copied:
        assert (ROOT / each.removeprefix("./")).exists(), each
        assert any(fnmatch(each.removeprefix("./"), name) for name in let_through), each


def test_the_image_is_as_the_project_says() -> None:
    extras = re.search(r"'\.\[([\w,]+)\]'", CONTAINERFILE)
    assert extras is not None
    assert set(extras[1].split(",")) <= PROJECT["optional-dependencies"].keys()
    variables = re.findall(r"(QSERVER_\w+)=", " ".join(instructions("ENV")))
    assert variables
    assert set(variables) <= NAMES
    started = [
        *re.findall(r'"(\w+)"', instructions("ENTRYPOINT")[0]),
        *re.findall(r'"(\w+)"', instructions("CMD")[0]),
    ]
    assert started == (ROOT / "Procfile").read_text().partition(": ")[2].split()


def test_buildpacks_find_what_they_look_for() -> None:
    version = (ROOT / ".python-version").read_text().strip()
    assert re.fullmatch(r"3\.\d+", version)
    least = PROJECT["requires-python"].removeprefix(">=")
    assert [*map(int, version.split("."))] >= [*map(int, least.split("."))]
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    wanted = [line for line in lines if not line.startswith("#")]
    assert wanted == ["--constraint constraints.txt", "."]
    assert (ROOT / "Procfile").read_text().startswith("web: ")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_the_unit_is_valid_and_exposes_little(tmp_path: Path) -> None:
    text = (FOLDER / "qserver.service").read_text()
    program = re.search(r"^ExecStart=(\S+)", text, re.MULTILINE)
    assert program is not None
    unit = tmp_path / "qserver.service"
    unit.write_text(text.replace(program[1], sys.executable))
    verified = _run("systemd-analyze", "verify", str(unit))
    assert (verified.returncode, verified.stderr) == (0, "")
    rated = _run("systemd-analyze", "security", "--offline=true", "--no-pager", str(unit))
    exposure = re.search(r"exposure level for \S+: ([\d.]+)", rated.stdout)
    assert exposure is not None, rated.stdout + rated.stderr
    assert float(exposure[1]) <= EXPOSURE_MOST


def test_the_unit_waits_for_the_drain() -> None:
    text = (FOLDER / "qserver.service").read_text()
    waits = re.search(r"^TimeoutStopSec=(\d+)", text, re.MULTILINE)
    assert waits is not None
    assert int(waits[1]) > DRAIN_SECONDS
    assert set(re.findall(r"QSERVER_\w+(?==)", text)) <= NAMES


@pytest.mark.nightly
def test_a_wheel_serves_from_an_empty_environment(tmp_path: Path) -> None:
    """As a buildpack does it: build, install at the pinned versions, start the line of Procfile."""
    source = tmp_path / "source"
    ignore = shutil.ignore_patterns(".git", ".venv", "build", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, source, ignore=ignore)
    environment = tmp_path / "environment"
    _checked(sys.executable, "-m", "venv", str(environment))
    python = str(environment / "bin" / "python")
    _checked(python, "-m", "pip", "install", "--quiet", "-r", "requirements.txt", folder=source)
    shutil.rmtree(source / "qserver")  # what is installed serves
    line = shlex.split((source / "Procfile").read_text().partition(": ")[2])
    variables = {
        "PATH": f"{environment / 'bin'}:{os.environ['PATH']}",
        "PORT": "0",
        "QSERVER_DATA_DIR": str(tmp_path / "data"),
    }
    server = subprocess.Popen(
        line, cwd=source, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert server.stdout is not None
    try:
        head, key = "", None
        while key is None:
            text = server.stdout.readline()
            assert text, head
            head += text
            key = re.search(r"svc_k_[\w-]+", head)
        port = re.search(r"http://[\w.]+:(\d+)", head)
        assert port is not None, head
        answer = httpx.post(
            f"http://127.0.0.1:{port[1]}/v1/query",
            headers={"Authorization": f"Bearer {key[0]}"},
            json={"sql": "select 6 * 7 as answer"},
            timeout=PATIENCE_SECONDS,
        )
        assert answer.json()["rows"] == [{"answer": 42}]
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE_SECONDS) == 0
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def _run(*command: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, timeout=600
    )


def _checked(*command: str, folder: Path | None = None) -> None:
    done = _run(*command, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
