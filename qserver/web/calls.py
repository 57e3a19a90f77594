"""One request on its way to its answer, in steps; a step that has to wait hands the rest to a task.

    begin ─► admit ─────────► read ─► run ─► …           ─► Response
    key      rate limit       body    what is asked for     request id, CORS, metrics, errors

Each step ends by calling the next one if what that needs is available, and otherwise gives back
`after(work, step)`, a coroutine. So there is one list of steps, for requests that are answered at
once and for those that wait. What every answer carries is put on in one place, so that no route can
forget it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, TypeVar

from qserver.control.records import Grant
from qserver.errors import QserverError, RequestTooLarge
from qserver.http1 import (
    Answer,
    BodyRefused,
    Client,
    ClientGone,
    Headers,
    IncomingBody,
    Request,
    Respond,
    Response,
)
from qserver.web.answers import error_body
from qserver.web.service import UNLIMITED, Service, State
from qserver.web.statuses import STATUSES, Pair, Pairs, headers_of, status_of

T = TypeVar("T")

JSON: Final = (b"content-type", b"application/json")
ONLY_JSON: Final = (JSON,)
CLIENT_LEFT: Final = 0
"""What metrics have for a status where no answer was sent."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What follows from the head of a request, whatever its route."""

    service: Service
    next_id: Callable[[], str]
    request: Request
    headers: Mapping[bytes, bytes]
    """By name; of several that have one name, the last."""
    every_answer: Pairs
    """CORS, Via."""
    given_id: str | None
    """The caller's own X-Request-Id, if it is a decent one."""


class Endpoint:
    """Serves all requests with one head. What follows from the head is found when it is made."""

    kind: type[Call]

    def __init__(self, facts: Facts, name: str) -> None:
        self.service = facts.service
        self.next_id = facts.next_id
        self.request = facts.request
        self.headers = facts.headers
        self.every_answer = facts.every_answer
        self.given_id = facts.given_id
        self.metrics = facts.service.metrics.of_route(name)
        self.cost = 1
        """As how many requests one counts against the organization's limit."""
        self.token = _bearer(facts.headers.get(b"authorization"))
        self.json_headers = Headers([JSON, *UNLIMITED, *facts.every_answer])
        """Of most answers."""

    def handle(self, body: bytes | IncomingBody, client: Client, respond: Respond) -> Answer:
        call = self.kind(self, body, client, respond)
        try:
            return call.begin()
        except Exception as error:
            return call.failed(error)


class Call(ABC):
    """One request. Steps raise errors, which become answers in `failed`."""

    _limits: Sequence[Pair] = ()
    """What the answer says of the organization's rate limit."""

    def __init__(
        self, endpoint: Endpoint, body: bytes | IncomingBody, client: Client, respond: Respond
    ) -> None:
        self.started = perf_counter()
        """When the last byte of the request was there."""
        self.endpoint = endpoint
        self.body = body
        self.client = client
        self.request_id: str = endpoint.given_id or endpoint.next_id()
        self._respond = respond

    @abstractmethod
    def begin(self) -> Answer:
        """The first step."""

    def after(
        self, work: Coroutine[Any, Any, T], step: Callable[[T], Answer]
    ) -> Coroutine[Any, Any, Answer]:
        """Wait for the work, then take the step with its result."""
        return Rest(self, work, self._after(work, step))

    async def _after(self, work: Coroutine[Any, Any, T], step: Callable[[T], Answer]) -> Answer:
        try:
            return step(await work)
        except BodyRefused as refused:
            if refused.status == STATUSES[RequestTooLarge]:
                hint = "Send it in several requests."
                return self.failed(RequestTooLarge(str(refused), hint=hint))
            self.release()
            self.count(refused.status)  # the server answers
            raise
        except ClientGone:
            self.release()
            self.count(CLIENT_LEFT)
            raise
        except Exception as error:
            return self.failed(error)
        except BaseException:  # the server ends
            self.release()
            raise

    def respond(self, step: Callable[[T], Answer], outcome: T) -> None:
        """Answer a request that was pending by a step that has become possible."""
        try:
            answer = step(outcome)
        except Exception as error:
            answer = self.failed(error)
        if not self._respond(answer):
            self.release()
            if isinstance(answer, Coroutine):
                answer.close()

    # --- answers ----------------------------------------------------------------------------------

    def answer(self, status: int, headers: Headers, body: bytes) -> Response:
        self.endpoint.metrics.count(status, perf_counter() - self.started)
        return Response(status, headers, body, self.request_id)

    def failed(self, error: Exception) -> Response:
        """The answer of a request that met an error. All of them come by here."""
        self.release()
        known = (
            error
            if isinstance(error, QserverError)
            else self.endpoint.service.internal_error(error, self.request_id)
        )
        times = self.elapsed_us(), self.exec_us()
        body = error_body(known, self.request_id, *times, results=self.no_results())
        return self.answer(status_of(known), self.headers((JSON, *headers_of(known))), body)

    def headers(self, own: Sequence[Pair] = ONLY_JSON) -> Headers:
        """Those of this answer, with what every answer has."""
        endpoint = self.endpoint
        if own is ONLY_JSON and self._limits is UNLIMITED:
            return endpoint.json_headers
        return Headers([*own, *self._limits, *endpoint.every_answer])

    def count(self, status: int) -> None:
        self.endpoint.metrics.count(status, perf_counter() - self.started)

    def elapsed_us(self) -> int:
        return int((perf_counter() - self.started) * 1_000_000)

    # --- what some calls have besides -------------------------------------------------------------

    def exec_us(self) -> int:
        """For how long it was executed."""
        return 0

    def no_results(self) -> Sequence[Any] | None:
        """What an error has in place of results, if there would be several."""
        return None

    def release(self) -> None:
        """Give back what is held for the call; harmless when that was done before."""
        return


class Rest(Coroutine[Any, Any, Answer]):
    """The steps of a call that wait for some work.

    A coroutine that is closed before it was begun runs nothing, so this one gives back by itself
    what the call holds.
    """

    __slots__ = ("_begun", "_call", "_steps", "_work")

    def __init__(
        self, call: Call, work: Coroutine[Any, Any, Any], steps: Coroutine[Any, Any, Answer]
    ) -> None:
        self._call = call
        self._work = work
        self._steps = steps
        self._begun = False

    def __await__(self) -> Generator[Any, Any, Answer]:
        self._begun = True
        return self._steps.__await__()

    def send(self, value: Any) -> Any:
        self._begun = True
        return self._steps.send(value)

    def throw(self, *error: Any) -> Any:
        self._begun = True
        return self._steps.throw(*error)

    def close(self) -> None:
        self._steps.close()
        if not self._begun:
            self._work.close()
            self._call.release()


class KeyedCall(Call):
    """A request that needs a key."""

    grant: Grant

    def begin(self) -> Answer:
        """Find out who calls."""
        endpoint = self.endpoint
        token, service = endpoint.token, endpoint.service
        if token is not None and service.state is not State.STARTING:
            grant = service.plane.grant_nowait(token)
            if grant is not None:
                return self.admit(grant)
        return self.after(service.authenticate(endpoint.headers), self.admit)

    def admit(self, grant: Grant) -> Answer:
        """Count it against the organization's limit, and get its body."""
        self.grant = grant
        if grant.tier == "unlimited":
            self._limits = UNLIMITED
        else:
            endpoint = self.endpoint
            limits: Pairs = []
            self._limits = limits
            endpoint.service.count_request(grant, limits, endpoint.cost)
        body = self.body
        return self.run(body) if isinstance(body, bytes) else self.read(body)

    def read(self, body: IncomingBody, most: int | None = None) -> Answer:
        """Wait for the body, of so many bytes at most."""
        return self.after(body.read(most), self._arrived)

    def _arrived(self, body: bytes) -> Answer:
        self.started = perf_counter()
        return self.run(body)

    @abstractmethod
    def run(self, body: bytes) -> Answer:
        """Do what the request asks for."""


class Refusal(Endpoint):
    """Answers every request with an error; each with a new one, for it is raised."""

    def __init__(self, facts: Facts, name: str, error: Callable[[], QserverError]) -> None:
        super().__init__(facts, name)
        self.error = error


class _RefusedCall(Call):
    endpoint: Refusal

    def begin(self) -> Answer:
        raise self.endpoint.error()


Refusal.kind = _RefusedCall


class Preflight(Endpoint):
    """OPTIONS: which methods there are, and what pages of other origins may send."""

    def __init__(self, facts: Facts, allowed: Sequence[str], cors: Pairs) -> None:
        super().__init__(facts, "OPTIONS")
        allow = (b"allow", ", ".join(allowed).encode())
        self.answer_headers = Headers([allow, *facts.every_answer, *cors])


class _PreflightCall(Call):
    endpoint: Preflight

    def begin(self) -> Answer:
        return self.answer(204, self.endpoint.answer_headers, b"")


Preflight.kind = _PreflightCall


def _bearer(authorization: bytes | None) -> str | None:
    if authorization is None or authorization[:7].lower() != b"bearer ":
        return None
    return authorization[7:].decode("latin-1")
