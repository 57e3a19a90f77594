"""The console in a real browser, on a real server: what `tests/console/browser/*.test.mjs` claim.

They are run by `make test-browser`, which installs what they need. Without it they are skipped, and
the reason says what is missing. With QSERVER_SCREENSHOTS=1 the pictures of the docs are drawn anew.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.cli.real_server import KEY, real_server
from tests.given import GIVEN
from tests.patience import PATIENCE_SECONDS

HERE: Final = Path(__file__).parent
BROWSER: Final = HERE / "browser"
CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser")
NODE: Final = shutil.which("node")
FILES: Final = sorted(path.name for path in BROWSER.glob("*.test.mjs"))


def missing() -> str | None:
    """What keeps the tests from being run."""
    if GIVEN.get("QSERVER_BROWSER_TESTS") != "1":
        return "run by `make test-browser`"
    if NODE is None:
        return "node is not installed"
    if CHROMIUM is None:
        return "Chromium is not installed"
    if not (BROWSER / "node_modules" / "playwright-core").exists():
        return "npm could not install playwright-core"
    return None


MISSING: Final = missing()


def test_there_are_tests_for_the_browser() -> None:
    assert "sql.test.mjs" in FILES


@pytest.mark.skipif(MISSING is not None, reason=MISSING or "")
@pytest.mark.parametrize("name", FILES)
def test_in_a_browser(name: str) -> None:
    assert NODE is not None and CHROMIUM is not None
    with real_server() as url:
        variables = {"URL": url, "KEY": KEY, "CHROMIUM": CHROMIUM}
        if GIVEN.get("QSERVER_SCREENSHOTS"):
            variables["SCREENSHOTS"] = str(HERE.parents[1] / "docs" / "console")
        done = subprocess.run(
            [NODE, "--test", "--test-concurrency=1", "--test-reporter=spec", name],
            cwd=BROWSER,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
