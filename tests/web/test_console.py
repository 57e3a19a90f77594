"""The console's files over HTTP: who gets them, with which headers, and when they are kept."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping

import pytest

from qserver.console import build
from tests.http1.serving import Answer
from tests.web.served import Served, message, serving

FILE = f"/console/{build()}/core/dom.js"
PATHS = ["/console", FILE, f"/console/{build()}/main.js", "/console/x/vendor/editor.js"]


async def ask(
    opened: Served, path: str, method: str = "GET", headers: Mapping[str, str] | None = None
) -> Answer:
    async with await opened.client() as client:
        return await client.ask(message(method, path, headers=dict(headers or {})), method)


@pytest.mark.parametrize("path", PATHS)
async def test_a_file_is_there_for_anybody_and_says_what_it_may_do(path: str) -> None:
    async with serving() as opened:
        answer = await ask(opened, path, headers={"Authorization": "Bearer nonsense"})
        assert answer.status == 200
        headers = dict(answer.headers)
        policy = headers["content-security-policy"]
        for rule in (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
        ):
            assert rule in policy.split("; ")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert "set-cookie" not in headers


async def test_the_page_of_the_interface_runs_its_own_script_and_is_in_no_frame() -> None:
    async with serving() as opened:
        headers = dict((await ask(opened, "/docs")).headers)
    policy = headers["content-security-policy"].split("; ")
    (scripts,) = [rule for rule in policy if rule.startswith("script-src ")]
    assert "'self'" not in scripts and "unsafe" not in scripts and "'sha256-" in scripts
    assert {"default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'"} <= {*policy}
    assert headers["x-frame-options"] == "DENY" and headers["x-content-type-options"] == "nosniff"


async def test_the_page_is_asked_for_again_and_a_file_of_its_build_is_kept() -> None:
    async with serving() as opened:
        page, file = await ask(opened, "/console"), await ask(opened, FILE)
        other = await ask(opened, "/console/another/core/dom.js")
        assert dict(page.headers)["cache-control"] == "no-cache"
        assert "immutable" in dict(file.headers)["cache-control"]
        assert dict(other.headers)["cache-control"] == "no-cache"
        assert build().encode() in page.body and other.body == file.body


async def test_who_has_a_file_is_not_sent_it_again() -> None:
    async with serving() as opened:
        tag = dict((await ask(opened, "/console")).headers)["etag"]
        again = await ask(opened, "/console", headers={"if-none-match": f'"x", {tag}'})
        assert (again.status, again.body) == (304, b"")
        assert (await ask(opened, "/console", headers={"if-none-match": '"x"'})).status == 200


async def test_a_file_is_compressed_for_those_who_take_it() -> None:
    async with serving() as opened:
        plain = await ask(opened, FILE)
        packed = await ask(opened, FILE, headers={"accept-encoding": "gzip, br, zstd"})
        refused = await ask(opened, FILE, headers={"accept-encoding": "gzip;q=0"})
        assert dict(packed.headers)["content-encoding"] == "gzip"
        assert gzip.decompress(packed.body) == plain.body == refused.body
        assert "accept-encoding" in dict(packed.headers)["vary"].lower()


async def test_head_has_the_headers_and_no_body() -> None:
    async with serving() as opened:
        answer = await ask(opened, FILE, "HEAD")
        assert (answer.status, answer.body) == (200, b"")
        assert "etag" in dict(answer.headers)


@pytest.mark.parametrize(
    "path",
    [
        "/console/x/no_such.js",
        "/console/x/..%2fpage.py",
        "/console/x/core/..%2f..%2fpage.py",
        "/console/x/index.html",
    ],
)
async def test_what_is_no_file_of_the_console_is_not_found(path: str) -> None:
    async with serving() as opened:
        answer = await ask(opened, path)
        assert answer.status == 404
        assert json.loads(answer.body)["error"]["code"] == "QS006"


async def test_the_console_can_be_off() -> None:
    async with serving(QSERVER_CONSOLE="0") as opened:
        for path in PATHS:
            answer = await ask(opened, path)
            assert answer.status == 404
            assert "off" in json.loads(answer.body)["error"]["message"]


async def test_the_page_may_send_to_the_hosts_of_the_service() -> None:
    settings = {"QSERVER_DATA_URL": "https://d.test", "QSERVER_CONTROL_URL": "https://c.test"}
    async with serving(**settings) as opened:
        answer = await ask(opened, "/console")
        policy = dict(answer.headers)["content-security-policy"]
        assert "connect-src 'self' https://d.test https://c.test;" in policy
        assert b'content="https://c.test"' in answer.body
