"""The files of the JavaScript client: what every server gives to everybody."""

from __future__ import annotations

from importlib.resources import files

from qserver import __version__
from qserver.web.description.client_files import CLIENT_FILES
from tests.http1.serving import Answer
from tests.web.served import Served, message, serving

PAGE = {"Origin": "https://elsewhere.example"}


async def ask(opened: Served, path: str, method: str = "GET", **headers: str) -> Answer:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    sent = message(method, path, token="no key", headers={**PAGE, **names})
    async with await opened.client() as client:
        return await client.ask(sent, method)


async def test_every_server_has_the_files_for_pages_of_any_origin() -> None:
    """Also if its own origins are listed: to import a file is not to call."""
    async with serving(QSERVER_CORS_ORIGINS="https://own.example") as opened:
        for route in CLIENT_FILES:
            answer = await ask(opened, route.path)
            content = (files("qserver") / "javascript" / route.path[1:]).read_bytes()
            assert (answer.status, answer.body) == (200, content)
            assert answer.header("content-type") == f"{route.media}; charset=utf-8"
            assert answer.header("access-control-allow-origin") == "*"
            assert answer.header("x-qserver-version") == __version__
            assert answer.header("cache-control") == "public, max-age=300"
            head = await ask(opened, route.path, "HEAD")
            assert (head.status, head.body) == (200, b"")
            assert head.header("etag") == answer.header("etag")


async def test_who_has_a_file_is_not_sent_it_again() -> None:
    async with serving() as opened:
        tag = (await ask(opened, "/client.js")).header("etag")
        assert tag is not None
        for known in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
            answer = await ask(opened, "/client.js", If_None_Match=known)
            assert (answer.status, answer.body, answer.header("etag")) == (304, b"", tag)
            assert answer.header("access-control-allow-origin") == "*"
        assert (await ask(opened, "/client.js", If_None_Match='"other"')).status == 200
        assert (await ask(opened, "/react.js", If_None_Match=tag)).status == 200


async def test_a_file_is_compressed_for_those_who_accept_that() -> None:
    async with serving() as opened:
        plain = await ask(opened, "/client.js")
        packed = await ask(opened, "/client.js", Accept_Encoding="gzip")
        assert packed.header("content-encoding") == "gzip"
        assert len(packed.body) < len(plain.body) / 2
        assert "Accept-Encoding" in (packed.header("vary") or "")


async def test_a_file_is_only_read() -> None:
    async with serving() as opened:
        answer = await ask(opened, "/client.js", "POST")
        assert (answer.status, answer.header("allow")) == (405, "GET, HEAD, OPTIONS")
