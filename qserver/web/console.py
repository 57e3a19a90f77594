"""Sends the files of the console, to anybody: they hold no secret.

    GET /console ─► the page, with its security policy     asked for again each time, by its tag
    GET /console/{build}/… ─► a file                       kept for a year, if the build is ours

The headers are the page's defence, and are on every file, because a browser may be led to any of
them: nothing is loaded from elsewhere, nothing is put into a frame, nothing is taken for another
kind than it is, and no address tells another site where its visitor came from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from qserver.config import Settings
from qserver.console import ConsoleFile, build, console_file, page_file, security_policy
from qserver.errors import NotFound
from qserver.http1 import Headers
from qserver.web.calls import NOTHING_TO_WAIT_FOR, Call, Endpoint, Facts, Serving
from qserver.web.compression import accepts_gzip
from qserver.web.route import Route
from qserver.web.statements.cached_reads import tags_in
from qserver.web.statuses import Pairs

PATH: Final = "/console"
KEPT: Final = b"public, max-age=31536000, immutable"
ASKED_AGAIN: Final = b"no-cache"
DEFENCE: Final[Pairs] = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
]


class ConsoleCall(Call):
    endpoint: ConsoleEndpoint

    def serve(self) -> Serving:
        yield from NOTHING_TO_WAIT_FOR
        endpoint = self.endpoint
        file = endpoint.file
        if file is None:
            raise endpoint.missing()
        if not endpoint.known_tags.isdisjoint((file.tag, b"*")):
            return self.answer(304, Headers(endpoint.pairs), b"")
        pairs = [(b"content-type", file.media.encode()), *endpoint.pairs]
        if not endpoint.compressed:
            return self.answer(200, Headers(pairs), file.content)
        pairs.append((b"content-encoding", b"gzip"))
        return self.answer(200, Headers(pairs), file.compressed)


class ConsoleEndpoint(Endpoint):
    kind = ConsoleCall

    def __init__(self, facts: Facts, route: Route) -> None:
        super().__init__(facts, route.path)
        settings = facts.service.settings
        _, _, below = facts.request.path.removeprefix("/").partition("/")
        asked, _, name = below.partition("/")
        self.is_on = settings.console
        self.file = _found(settings, name) if self.is_on else None
        accepted = (value for key, value in facts.request.headers if key == b"accept-encoding")
        self.compressed = facts.compression is not None and accepts_gzip(accepted)
        self.known_tags = tags_in(facts.headers.get(b"if-none-match", b""))
        origins = list(_origins(settings))
        self.pairs: Pairs = [
            (b"cache-control", KEPT if asked == build() else ASKED_AGAIN),
            (b"content-security-policy", security_policy(origins).encode()),
            *DEFENCE,
            *facts.every_answer,
        ]
        if self.file is not None:
            self.pairs.append((b"etag", self.file.tag))

    def missing(self) -> NotFound:
        if not self.is_on:
            return NotFound(
                "the console is off", hint="Start the server with QSERVER_CONSOLE=1 to have it."
            )
        return NotFound("the console has no such file", hint="Load /console again.")


def _found(settings: Settings, name: str) -> ConsoleFile | None:
    if name:
        return console_file(name)
    return page_file(settings.data_url or "", settings.control_url or settings.data_url or "")


def _origins(settings: Settings) -> Iterator[str]:
    """The other hosts of this service, where the page sends its requests."""
    yield from {url: None for url in (settings.data_url, settings.control_url) if url is not None}
