"""What both flavours of the client are: the way of a request from its value to its answer, once.

All that waits is a coroutine over a few steps that each flavour does in its own way: `_open` a
request, read a `Body`, `_pause`. Those of `Client` block and never suspend: a coroutine over them
runs from its beginning to its end in one go. Those of `AsyncClient` wait in their loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, aclosing
from math import inf
from typing import Any, Literal

import httpx

from qserver.client import requests
from qserver.client.answers import record_of
from qserver.client.columns import Columns, columns_of
from qserver.client.python_values import Values
from qserver.client.requests import Kept, Request
from qserver.client.result_cache import ResultCache
from qserver.client.retrying import Trials
from qserver.client.seen import SeenVersions
from qserver.client.transport import SILENCE_SECONDS, time_limits, trouble_named
from qserver.errors import NotFreshEnough, QserverError

JsonObject = dict[str, Any]


class Body(ABC):
    """An answer whose body is read piece by piece."""

    def __init__(self, answer: httpx.Response) -> None:
        self.status = answer.status_code
        self.headers = answer.headers
        self._answer = answer

    @abstractmethod
    async def piece(self) -> bytes | None:
        """The next bytes; None is the end."""

    @abstractmethod
    async def aclose(self) -> None:
        """Leave the rest; it does not wait for the server."""

    async def rest(self) -> bytes:
        pieces = []
        while (piece := await self.piece()) is not None:
            pieces.append(piece)
        return b"".join(pieces)


class Caller(ABC):
    """One server, one key and, if named, one database."""

    _http: httpx.Client | httpx.AsyncClient
    _http_class: type[httpx.Client] | type[httpx.AsyncClient]

    def __init__(
        self,
        url: str,
        key: str | None,
        database: str | None = None,
        *,
        silence_seconds: float = SILENCE_SECONDS,
        cache_bytes: int = 0,
        retry_seconds: float = 0.0,
        consistency: Literal["strong", "session", "any"] | None = None,
        values: Values = "json",
    ) -> None:
        """`cache_bytes`: how much of the answers of `read` the client keeps, see there.

        `retry_seconds`: for how long a request that failed is sent again, see `retrying`.
        `consistency`: of statements that name none; with `"session"` reads may be answered by what
        is near, never by what is older than this client has seen; with `"any"` by that, too.
        `values`: in rows, what JSON carries, or with `"python"` Python's own, see `python_values`.
        """
        self.values = values
        self.consistency = consistency
        self.seen = SeenVersions()
        self.retry_seconds = retry_seconds
        self.url = requests.checked_url(url)
        self.database = database
        self.cache = ResultCache(cache_bytes)
        with trouble_named(self.url):
            self._http = self._http_class(
                base_url=self.url,
                headers=requests.headers_with(key, self.url),
                timeout=time_limits(silence_seconds),
                verify=self.url.startswith("https:"),  # to load certificates takes 20 ms
            )

    def __repr__(self) -> str:
        return f"<client of {self.url}, database {self.database or 'of the key'}>"

    def trials(self, retry_seconds: float | None = None) -> Trials:
        """For one request or stream; without a time of its own it has the client's."""
        return Trials(self.retry_seconds if retry_seconds is None else retry_seconds)

    @abstractmethod
    async def _open(self, request: Request, kept: Kept | None = None) -> Body:
        """Send a request, and receive the head of its answer."""

    @abstractmethod
    def _now(self) -> float:
        """Seconds on the clock of `_pause`."""

    @abstractmethod
    async def _pause(self, seconds: float) -> None: ...

    @abstractmethod
    def _last_step(self) -> AbstractContextManager[object]:
        """Let a step go on for a moment, although whoever called may not wait any more."""

    async def _ask(self, request: Request) -> JsonObject:
        """The object of the answer to a request, which is sent again while that may help."""
        trials = self.trials()
        while True:
            try:
                return await self._ask_once(request)
            except QserverError as error:
                request = await self._next_try(error, request, trials)

    async def _ask_once(self, request: Request) -> JsonObject:
        kept = self.cache.find(request)
        with trouble_named(self.url):
            async with aclosing(await self._open(self.seen.with_token(request), kept)) as body:
                content = await body.rest()
        found = self.cache.answer(request, kept, body.status, body.headers, content)
        if request.versions_of is not None:  # a transaction on a branch names it
            self.seen.note(found.get("database", request.versions_of), found.get("version"))
        return found

    async def _columns(self, request: Request) -> Columns:
        """The columns of an answer, which is sent again while that may help."""
        trials = self.trials()
        while True:
            try:
                with trouble_named(self.url):
                    asked = self.seen.with_token(request)
                    async with aclosing(await self._open(asked)) as body:
                        content = await body.rest()
                return columns_of(body.status, body.headers, content)
            except QserverError as error:
                request = await self._next_try(error, request, trials)

    async def _record(self, method: str, *path: str, **fields: Any) -> JsonObject:
        """A record of the control plane; fields that are None are not sent."""
        return record_of(await self._ask(requests.record(method, *path, **fields)))

    async def _pages(
        self, wanted: str, *path: str, cursor: str = "cursor", most: float = inf, **given: Any
    ) -> list[JsonObject]:
        """The records of a list, page by page, until there are `most`."""
        found: list[JsonObject] = []
        while len(found) < most:
            answer = await self._ask(requests.listing(*path, **given))
            found += answer[wanted]
            given[cursor] = answer.get("next_cursor")
            if given[cursor] is None:
                break
            if "to" in given:  # all pages of a difference compare the same two versions
                given["from_"], given["to"] = answer["from"], answer["to"]
        return found

    async def _next_try(self, error: QserverError, request: Request, trials: Trials) -> Request:
        """Wait until the request may be sent again, and return it, or raise its error.

        Of what no replica has, the process that writes the database knows whether it exists.
        """
        if isinstance(error, NotFreshEnough) and request.strong is not None:
            self.seen.forget(request.versions_of)
            return request.strong()
        pause = trials.pause_after(error, request, self._now())
        if pause is None:
            raise error
        await self._pause(pause)
        return request

    def _options(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """The options of statements, with the client's own consistency if they name none."""
        if self.consistency is None or options.get("transaction") is not None:
            return options
        return {"consistency": self.consistency, **options}
