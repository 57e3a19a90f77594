"""The JavaScript client in a real browser: a page of another origin imports it from the server."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.dbapi.served import served
from tests.javascript.installed import packages_of
from tests.javascript.scripts import run_script, variables_of

CHROMIUM = shutil.which("chromium")


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not on PATH")
def test_a_page_imports_the_client_and_follows_a_query(tmp_path: Path) -> None:
    assert CHROMIUM is not None
    project = packages_of("client", tmp_path)
    with served(tmp_path) as server:
        variables = {**variables_of(server), "CHROMIUM": CHROMIUM, "HOME": str(tmp_path)}
        assert run_script(project / "browser.mjs", variables) == ["ok"]
