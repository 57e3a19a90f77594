"""One request on its way to its answer: a generator, from its head to its answer (`engine.work`).

    authenticate ─► admit ─────► read ─► run ─► …        ─► Response
    key             rate limit   body    the work           request id, CORS, metrics, errors

It runs until it has to wait. If it does not, its answer leaves at once. If it waits for a commit,
the answer is pending, and who answers the commit continues it. Anything else is awaited by a task.
The headers of every answer are added in one place, so no route can forget them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from sys import maxsize
from time import perf_counter
from typing import Any, Final, TypeAlias

from qserver.control.long_reads import GivenAway
from qserver.control.owners import OwnedElsewhere
from qserver.control.plane import COUNTED_AGAIN
from qserver.control.rates import Uncounted
from qserver.control.records import Grant
from qserver.control.shares import Share
from qserver.engine.turns import OWNER
from qserver.engine.work import Rest, Step, finish, when_replied
from qserver.errors import (
    DatabaseMoved,
    DatabaseUnavailable,
    Forbidden,
    QserverError,
    RequestTooLarge,
)
from qserver.http1 import (
    PENDING,
    Answer,
    BodyRefused,
    Client,
    ClientGone,
    Elsewhere,
    Headers,
    IncomingBody,
    Parts,
    Request,
    Respond,
    Response,
    Values,
    request_id_of,
)
from qserver.limits import COMPRESSED_AT_ONCE_BYTES, REPLICA_WAIT_SECONDS_MAX
from qserver.query.cursor import END
from qserver.web.compression import Compression, compressed_parts
from qserver.web.service.service import UNLIMITED, Service
from qserver.web.statements.answers import error_body, error_event
from qserver.web.statuses import STATUSES, Pair, Pairs, headers_of, status_of
from qserver.web.streaming.parts import AnswerParts
from qserver.web.streaming.readers import stopping

JSON: Final = (b"content-type", b"application/json")
ONLY_JSON: Final = (JSON,)
TRACE_HEADERS: Final = (b"traceparent", b"tracestate")
"""By which a client says to which trace a request belongs; see `service.tracing`."""
CLIENT_LEFT: Final = 0
"""The status in metrics for a request without an answer."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts that follow from the head of a request, for any route."""

    service: Service
    next_id: Callable[[], str]
    request: Request
    headers: Mapping[bytes, bytes]
    """By name; of several with one name, the last."""
    every_answer: Pairs
    """CORS, Via, Vary."""
    compression: Compression | None
    """How the client wants its answers compressed."""


class Endpoint:
    """Serves all requests with one head. The constructor computes what depends only on the head."""

    kind: type[Call]

    def __init__(self, facts: Facts, name: str, *, compressible: bool = False) -> None:
        self.service = facts.service
        self.next_id = facts.next_id
        self.request = facts.request
        self.headers = facts.headers
        self.every_answer = facts.every_answer
        self.has_idempotency_key = b"idempotency-key" in facts.headers
        self.route_name = name
        self.metrics = facts.service.metrics.of_route(name)
        self.cost = 1
        """How many requests a call counts for in the organization's rate limit."""
        self.token = _bearer(facts.headers.get(b"authorization"))
        self.json_headers = Headers([JSON, *UNLIMITED, *facts.every_answer])
        """The headers of most answers."""
        self.compression = facts.compression if compressible else None
        self.body_bytes_max: int | None = None
        """The largest body, if that is not the same as everywhere."""
        self.plain_bytes_max = maxsize if self.compression is None else self.compression.bytes_min
        """The length of the longest body that is sent as it is."""

    takes_values = False
    """Whether it reads what varies in heads only in the values of a call."""

    def handle(
        self, body: bytes | IncomingBody, client: Client, respond: Respond, values: Values
    ) -> Answer:
        return self.kind(self, body, client, values).start(respond)


Serving: TypeAlias = Generator[Step, Any, Response]

NOTHING_TO_WAIT_FOR: Final[tuple[Step, ...]] = ()
"""For a `yield from`, in requests that are generators like all others and never wait."""


class Call(ABC):
    """One request. What serves it raises errors; `failed` turns them into answers."""

    _limits: Sequence[Pair] = ()
    """The rate limit headers of the answer."""
    _entered: Share | None = None
    """The share that counts the request as under way."""
    stays = False
    """Whether no other process was able to take it."""
    response: Response
    """The answer, when there is one."""

    def __init__(
        self, endpoint: Endpoint, body: bytes | IncomingBody, client: Client, values: Values
    ) -> None:
        self.started = perf_counter()
        """When the last byte of the request arrived."""
        self.endpoint = endpoint
        self.body = body
        self.client = client
        self.values = values
        self.request_id: str = (values and request_id_of(values)) or endpoint.next_id()

    def start(self, respond: Respond) -> Answer:
        """Serve the request as far as that goes without waiting."""
        try:
            steps = self.serve()
            step = next(steps, END)  # most end here, and catching a StopIteration takes long
        except Uncounted:
            return self._finish(Rest(self.counted_later(), None))
        except Exception as error:
            return self.failed(error)
        if step is END:
            return self.response
        rest = Rest(steps, step)
        if when_replied(rest, partial(self._replied, respond)):
            return PENDING
        return self._finish(rest)

    @abstractmethod
    def serve(self) -> Serving:
        """The request, from its head to its answer."""

    def _replied(self, respond: Respond, outcome: Response | Exception | Rest) -> None:
        """Called when the reply that the request waited for has continued it."""
        answer: Answer
        if isinstance(outcome, Rest):
            answer = self._finish(outcome)
        else:
            answer = self.failed(outcome) if isinstance(outcome, Exception) else outcome
        if not respond(answer) and isinstance(answer, Coroutine):
            answer.close()

    async def _finish(self, rest: Rest) -> Response | Elsewhere:
        """Serve the rest in a task.

        If it is closed before it starts, nothing refers to the rest any more, and that ends, too.
        """
        self.enter(self.share())
        try:
            return await finish(rest)  # type: ignore[no-any-return]
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
        finally:
            assert self._entered is not None
            self._entered.connections -= 1

    def enter(self, share: Share) -> None:
        """Have the present task count as work of an organization, and of no other."""
        OWNER.set(share.turns)
        if self._entered is not None:
            self._entered.connections -= 1
        share.connections += 1
        self._entered = share

    # --- answers ----------------------------------------------------------------------------------

    def answer(
        self, status: int, headers: Headers, body: bytes, seconds: float | None = None
    ) -> Response:
        """Count and return an answer; `seconds` since the request arrived, if that is known."""
        endpoint = self.endpoint
        if seconds is None:
            seconds = perf_counter() - self.started
        endpoint.metrics.count(status, seconds)
        if len(body) > endpoint.plain_bytes_max:
            response = self._compressed(status, headers, body)
        else:
            response = Response(status, headers, body, self.request_id)
        self.response = response
        return response

    def answer_in_parts(self, headers: Headers, parts: Parts, *, live: bool = False) -> Response:
        """An answer that is made while it is sent. A reader of a `live` one waits for each part."""
        compression = self.endpoint.compression
        parts = self._counted(parts)
        if compression is None or (live and not compression.required):
            farewell = error_event(stopping(), self.request_id) if live else b""
            self.response = Response(200, headers, parts, self.request_id, farewell)
        else:
            self.response = self._compressed(200, headers, parts)
        return self.response

    def _counted(self, parts: Parts) -> Parts:
        """Count the answer as under way until its end."""
        share = self.share()
        share.connections += 1

        async def ended() -> None:
            share.connections -= 1

        return AnswerParts(parts, ended)

    def _compressed(self, status: int, headers: Headers, body: bytes | Parts) -> Response:
        endpoint = self.endpoint
        compression = endpoint.compression
        assert compression is not None
        coding = compression.coding
        packed: bytes | Parts | None
        if isinstance(body, bytes) and len(body) <= COMPRESSED_AT_ONCE_BYTES:
            packed = coding.compressed(body)
        else:
            packed = compressed_parts(body, coding, self.share().memory)
        if packed is None:
            return Response(status, headers, body, self.request_id)
        encoded = Headers([*headers.pairs, (b"content-encoding", coding.name)])
        return Response(status, encoded, packed, self.request_id)

    def failed(self, error: Exception) -> Response | Elsewhere:
        """The answer for a request that raised an error. Every error passes here."""
        self.release()
        if isinstance(error, OwnedElsewhere):
            self.uncount()
            left, visits, instead = self.seconds_left(), error.visits, None
            if isinstance(error, GivenAway):
                left, instead = min(left, REPLICA_WAIT_SECONDS_MAX), self._stay
            return Elsewhere(error.process, left, self._owner_away, visits, instead)
        return self.refuse(self.known(error))

    def refuse(self, known: QserverError) -> Response:
        """The answer that tells of an error."""
        times = self.elapsed_us(), self.exec_us()
        body = error_body(known, self.request_id, *times, results=self.no_results())
        return self.answer(status_of(known), self.headers((JSON, *headers_of(known))), body)

    async def _stay(self) -> Response:
        """Serve the request anew, here."""
        self.stays, self._entered = True, None
        answer = await self._finish(Rest(self._anew(), None))
        assert isinstance(answer, Response), "it stays"
        return answer

    def _anew(self) -> Serving:
        return (yield from self.serve())

    def _owner_away(self) -> Response:
        away = DatabaseMoved("the process of this database does not answer", hint="Try again.")
        answer = self.failed(away)
        assert isinstance(answer, Response)
        return answer

    def known(self, error: Exception) -> QserverError:
        """The error that the client is told of."""
        return self.endpoint.service.known(error, self.request_id)

    def headers(self, own: Sequence[Pair] = ONLY_JSON) -> Headers:
        """The headers of this answer, with those of every answer."""
        endpoint = self.endpoint
        if own is ONLY_JSON and self._limits is UNLIMITED:
            return endpoint.json_headers
        return Headers([*own, *self._limits, *endpoint.every_answer])

    def count(self, status: int) -> None:
        self.endpoint.metrics.count(status, perf_counter() - self.started)

    def elapsed(self) -> float:
        """Seconds since the last byte of the request arrived."""
        return perf_counter() - self.started

    def elapsed_us(self) -> int:
        return int(self.elapsed() * 1_000_000)

    def seconds_left(self) -> float:
        """How much longer the request may take."""
        return max(0.0, self.timeout_ms() / 1000 - self.elapsed())

    # --- what some calls have besides -------------------------------------------------------------

    def timeout_ms(self) -> float:
        return self.share().limits.statement_timeout_ms

    def exec_us(self) -> int:
        return 0

    def no_results(self) -> Sequence[Any] | None:
        """The empty `results` of a transaction's error; None for other calls."""
        return None

    def share(self) -> Share:
        """The share that it counts toward."""
        return self.endpoint.service.shares.anonymous

    def release(self) -> None:
        """Release what the call holds; a second call does nothing."""
        return

    def uncount(self) -> None:
        """Called when another process takes the request over, and counts it."""
        return

    def counted_later(self) -> Serving:
        """Serve a request that other nodes have to count first."""
        raise AssertionError("only what has a key is counted")
        yield


class KeyedCall(Call):
    """A request that needs a key."""

    grant: Grant
    _has_left = False

    reads_body = True
    """Whether the body is read before the request runs."""

    notes_leaving = False
    """Whether the steps of `run` call `left` themselves if they are closed."""

    def serve(self) -> Serving:
        endpoint, body = self.endpoint, self.body
        token, grant = endpoint.token, None
        if token is not None:
            find_grant = endpoint.service.plane.grant_nowait
            grant = find_grant(token)
        if grant is None or not isinstance(body, bytes):
            return self.until_left(self._wait_and_run(grant))
        self.grant = grant
        self.admit()
        steps = self.run(body)
        return steps if self.notes_leaving else self.until_left(steps)

    def _wait_and_run(self, grant: Grant | None) -> Serving:
        """Wait for what the key allows, or for the body."""
        endpoint, body = self.endpoint, self.body
        if grant is None:
            self.grant = yield partial(endpoint.service.authenticate, endpoint.headers)
            yield from self.admitting()
            self.enter(self.grant.share)
        else:
            self.grant = grant
            yield from self.admitting()
        if not isinstance(body, bytes):
            body = (yield from self.read(body)) if self.reads_body else b""
        return (yield from self.run(body))

    def until_left(self, steps: Serving) -> Serving:
        """The same steps. If they are closed, the client has left, or the server ends."""
        try:
            return (yield from steps)
        except GeneratorExit:
            self.left()
            raise

    def left(self) -> None:
        """Release and count a request that gets no answer; a second call does nothing."""
        if not self._has_left:
            self._has_left = True
            self.release()
            self.count(CLIENT_LEFT)

    def admit(self) -> None:
        """Charge the organization's rate limit, and limit the request to what its key allows."""
        grant = self.grant
        share = grant.share
        if OWNER.get() is not share.turns:  # which is much quicker than to set it
            OWNER.set(share.turns)
        if share.connections >= share.limits.connections:
            share.check_connections()
        if grant.is_unlimited:
            self._limits = UNLIMITED
        else:
            endpoint = self.endpoint
            limits: Pairs = []
            self._limits = limits
            endpoint.service.count_request(grant, limits, endpoint.cost)
        if grant.statements is not None:
            self.limit(grant)

    def admitting(self) -> Generator[Step, Any, None]:
        """Admit the request, and wait if it cannot be counted at once."""
        plane, cost = self.endpoint.service.plane, self.endpoint.cost
        for _ in range(COUNTED_AGAIN):
            try:
                return self.admit()
            except Uncounted:
                yield partial(plane.wait_counted, self.grant, cost)
        raise DatabaseUnavailable("requests cannot be counted now", hint="Try again.")

    def counted_later(self) -> Serving:
        return self.until_left(self._wait_and_run(self.grant))

    def uncount(self) -> None:
        if self._limits:
            self.endpoint.service.plane.give_back(self.grant, self.endpoint.cost)

    def share(self) -> Share:
        return self.grant.share if hasattr(self, "grant") else super().share()

    def limit(self, grant: Grant) -> None:
        """Called for a grant that allows named statements only: by default it allows nothing."""
        raise Forbidden(
            "this key can only run its statements",
            hint='Send {"statement": …, "params": {…}} to POST /v1/query.',
        )

    def read(self, body: IncomingBody) -> Generator[Step, Any, bytes]:
        """Wait for the body, and look again at what the key allows: it may take hours to arrive."""
        whole = yield partial(self.whole, body)
        self.started = perf_counter()
        endpoint = self.endpoint
        if endpoint.service.plane.grant_nowait(endpoint.token or "") is not self.grant:
            self.grant = yield partial(endpoint.service.authenticate, endpoint.headers)
            self.enter(self.grant.share)
            if self.grant.statements is not None:
                self.limit(self.grant)
        return whole  # type: ignore[no-any-return]

    async def whole(self, body: IncomingBody, most: int | None = None) -> bytes:
        """The whole body, of at most `most` bytes."""
        with self.share().bodies.growing() as hold:
            return await body.read(most, hold)

    @abstractmethod
    def run(self, body: bytes) -> Serving:
        """Do the request's work."""


class Refusal(Endpoint):
    """Answers every request with an error; a new instance each time, because it is raised."""

    def __init__(self, facts: Facts, name: str, error: Callable[[], QserverError]) -> None:
        super().__init__(facts, name)
        self.error = error


class _RefusedCall(Call):
    endpoint: Refusal

    def serve(self) -> Serving:
        raise self.endpoint.error()


Refusal.kind = _RefusedCall


class Preflight(Endpoint):
    """OPTIONS: the route's methods, and the headers that pages of other origins may send."""

    def __init__(self, facts: Facts, allowed: Sequence[str], cors: Pairs) -> None:
        super().__init__(facts, "OPTIONS")
        allow = (b"allow", ", ".join(allowed).encode())
        self.answer_headers = Headers([allow, *facts.every_answer, *cors])


class _PreflightCall(Call):
    endpoint: Preflight

    def serve(self) -> Serving:
        yield from NOTHING_TO_WAIT_FOR
        return self.answer(204, self.endpoint.answer_headers, b"")


Preflight.kind = _PreflightCall


def _bearer(authorization: bytes | None) -> str | None:
    if authorization is None or authorization[:7].lower() != b"bearer ":
        return None
    return authorization[7:].decode("latin-1")
