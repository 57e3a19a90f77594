"""The JavaScript client as every server has it: files that pages, programs and bundlers import.

    GET /client.js ─► the file, its ETag and the server's version; 304 to those who have it

A page of any origin may import them, whatever QSERVER_CORS_ORIGINS says: they are public, and what
the page asks later passes the usual checks. So the answer never depends on the Origin.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

from qserver import __version__
from qserver.http1 import Headers
from qserver.web.calls import Call, Endpoint, Facts, Serving
from qserver.web.cors import EXPOSED
from qserver.web.route import Route
from qserver.web.statements.cached_reads import tags_in
from qserver.web.statuses import Pairs

CACHE_CONTROL: Final = b"public, max-age=300"
"""A new release is there five minutes after the server has it."""
_OF_CORS: Final = (b"access-control-allow-origin", b"access-control-expose-headers")


@dataclass(frozen=True, slots=True)
class ClientFile:
    content: bytes
    tag: bytes


@cache
def client_file(name: str) -> ClientFile:
    content = (files("qserver") / "javascript" / name).read_bytes()
    return ClientFile(content, b'W/"%b"' % sha256(content).hexdigest()[:32].encode())


class ClientFileCall(Call):
    endpoint: ClientFileEndpoint

    def serve(self) -> Serving:
        yield from ()
        endpoint = self.endpoint
        if endpoint.is_known:
            return self.answer(304, Headers(endpoint.pairs), b"")
        media = (b"content-type", b"%b; charset=utf-8" % endpoint.route.media.encode())
        return self.answer(200, Headers([media, *endpoint.pairs]), endpoint.file.content)


class ClientFileEndpoint(Endpoint):
    kind = ClientFileCall

    def __init__(self, facts: Facts, route: Route) -> None:
        super().__init__(facts, route.path, compressible=route.is_compressible)
        self.route = route
        self.file = client_file(route.path[1:])
        known = tags_in(facts.headers.get(b"if-none-match", b""))
        self.is_known = not known.isdisjoint((self.file.tag, b"*"))
        self.pairs: Pairs = [
            (b"etag", self.file.tag),
            (b"cache-control", CACHE_CONTROL),
            (b"x-qserver-version", __version__.encode()),
            (b"access-control-allow-origin", b"*"),
            (b"access-control-expose-headers", EXPOSED + b", x-qserver-version"),
            *(pair for pair in facts.every_answer if pair[0] not in _OF_CORS),
        ]
