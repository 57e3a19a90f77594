"""The JavaScript client as a package: its size, its types, its files, its hook for React."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from qserver import __version__
from tests.dbapi.served import served
from tests.javascript.installed import packages_of
from tests.javascript.scripts import CLIENT, ROOT, run_script, variables_of
from tests.patience import PATIENCE_SECONDS

MINIFIED_BYTES_MAX: Final = 12_000
TSC: Final = (
    *("tsc", "--strict", "--noEmit", "--preserveSymlinks", "--target", "es2022"),
    *("--module", "nodenext", "--lib", "es2023,dom,dom.iterable,dom.asynciterable"),
)
TYPED: Final = re.compile(r"^```(?:js|ts)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the scripts with its packages; the client is one of them."""
    own = packages_of("client", tmp_path_factory.mktemp("packages"))
    shutil.copytree(CLIENT, own / "node_modules" / "qserver-client")  # it finds React from there
    yield own


def run(project: Path, *command: str) -> str:
    done = subprocess.run(
        ["npx", "--no-install", *command],
        cwd=project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_minified_the_client_is_small(project: Path) -> None:
    options = ["--module", "--ecma", "2022", "--compress", "passes=3", "--mangle"]
    minified = run(project, "terser", str(CLIENT / "client.js"), *options)
    print(f"{len(minified.encode()):,} bytes")
    assert len(minified.encode()) < MINIFIED_BYTES_MAX


@pytest.mark.long
def test_programs_are_checked_by_its_types(project: Path) -> None:
    run(project, *TSC, "examples.ts")


@pytest.mark.long
def test_the_programs_of_the_page_fit_the_types(project: Path) -> None:
    names = []
    text = (ROOT / "docs" / "javascript.md").read_text(encoding="utf-8")
    (project / "process.d.ts").write_text("declare const process: { env: Record<string, string> };")
    for number, program in enumerate(TYPED.findall(text)):
        names.append(f"page_{number}.mts")
        (project / names[-1]).write_text(program, encoding="utf-8")
    assert names
    run(project, *TSC, "process.d.ts", *names)


def test_the_package_has_the_version_and_the_files_of_the_release() -> None:
    package = json.loads((CLIENT / "package.json").read_text())
    assert package["version"] == __version__
    assert sorted([*package["files"], "package.json"]) == sorted(
        path.name for path in CLIENT.iterdir()
    )


@pytest.mark.long
def test_npm_packs_all_files(project: Path) -> None:
    done = subprocess.run(
        ["npm", "pack", "--dry-run", "--json", str(CLIENT)],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    packed = json.loads(done.stdout)
    (only,) = packed if isinstance(packed, list) else packed.values()
    assert {each["path"] for each in only["files"]} == {path.name for path in CLIENT.iterdir()}


@pytest.mark.long
def test_the_hook_shows_a_query_and_follows_it(project: Path, tmp_path: Path) -> None:
    with served(tmp_path) as server:
        assert run_script(project / "hook.mjs", variables_of(server)) == ["ok"]
