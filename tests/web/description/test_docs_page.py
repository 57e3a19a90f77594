"""The page /docs shows every operation with its fields, what they mean, and a request to try."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import qserver.web
from qserver.config import load
from qserver.web.description.catalogue import ROUTES
from qserver.web.description.openapi import describe

NODE = shutil.which("node")
SMALL_DOM = Path(__file__).parents[1] / "small_dom.js"


@pytest.mark.skipif(NODE is None, reason="there is no node")
def test_every_operation_is_drawn_with_its_fields_and_their_meaning(tmp_path: Path) -> None:
    assert NODE is not None and qserver.web.__file__ is not None
    page = (Path(qserver.web.__file__).parent / "description/docs.html").read_text()
    (script,) = re.findall(r"<script>(.*)</script>", page, re.DOTALL)
    (tmp_path / "script.js").write_text(script)
    document = describe(ROUTES, load({}))
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    command = [NODE, str(SMALL_DOM), "script.js", "openapi.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    drawn = json.loads(done.stdout)
    assert drawn.keys() == {route.name for route in ROUTES}
    for route in ROUTES:
        text = drawn[route.name]
        for shape in (route.request, route.named_request):
            schema = document["components"]["schemas"].get(getattr(shape, "__name__", ""), {})
            for name, field in schema.get("properties", {}).items():
                assert f" {name} " in text, f"{route.name} does not show {name}"
                assert field.get("description", "") in text
        for parameter in document["paths"][route.path][route.method.lower()].get("parameters", ()):
            assert parameter["name"] in text
    assert "SELECT 1 AS one" in drawn["post_v1_query"]
    assert "SELECT 1 AS one" in drawn["post_v1_transaction"]
    assert "Headers: X-Request-Id, RateLimit" in drawn["get_v1_query"]
    assert "then one `done` or `error`" in drawn["post_v1_query"]
