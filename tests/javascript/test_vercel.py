"""@vercel/postgres: a pool over HTTP, and a client over a WebSocket."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.javascript.installed import installed

REX = {"name": "Rex", "age": 3, "born": "1970-01-01T00:00:00.000Z"}


@pytest.mark.nightly
def test_the_pool_and_the_client_of_vercel(tmp_path: Path) -> None:
    with installed("vercel", tmp_path) as project:
        asked = project.asked()
    assert asked == [1, [REX], "23505", [{"age": 4}], [{"age": 3}]]
