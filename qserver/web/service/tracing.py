"""Traces by OpenTelemetry: what a request did, and when, as spans that a tracing tool shows.

    POST /v1/query                  from the request to its answer; its parent is in `traceparent`
      ├─ statement                  each run of a statement, with its normal form
      ├─ commit                     from the last statement that writes to the answer
      └─ log append                 from the decision of a round to its sync; other requests of the
                                    round are links

Whether there are traces is decided once, at the start: without QSERVER_TRACES nothing of this is
imported, and no request comes by here. Endpoints are wrapped (`traced`), statements and rounds are
told by the hooks that statistics and feeds have anyway. They know a request by its id, so spans
find their parent wherever a request goes on.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

import msgspec
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from qserver import __version__
from qserver.engine.messages import Append
from qserver.http1 import (
    PENDING,
    Answer,
    Client,
    Elsewhere,
    Headers,
    IncomingBody,
    Respond,
    Response,
    Values,
)
from qserver.query.statement_statistics import SlowRun
from qserver.storage.snapshot import Snapshot
from qserver.web.calls import TRACE_HEADERS, Call, Endpoint

REQUESTS_KNOWN_MAX: Final = 10_000
"""Requests whose spans can still get children: a round is told after its answers have left."""
SERVER_ERRORS_FROM: Final = 500
_PROPAGATOR: Final = TraceContextTextMapPropagator()


class Known(msgspec.Struct):
    """A request that has a span."""

    span: Span
    wrote_at: int | None = None
    """When its last statement that writes had ended, in nanoseconds."""


class Traces:
    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("qserver", __version__)
        self._known: OrderedDict[str, Known] = OrderedDict()

    @classmethod
    def to(cls, url: str, process: int) -> Traces:
        """Send spans to a collector, from a thread of their own."""
        about: dict[str, str | int] = {
            "service.name": "qserver",
            "service.version": __version__,
            "process": process,
        }
        provider = TracerProvider(resource=Resource.create(about), shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=url)))
        return cls(provider)

    def close(self) -> None:
        """Send what is left; it may take seconds."""
        self._provider.shutdown()

    # --- requests ---

    def traced(self, endpoint: Endpoint) -> Endpoint:
        """Return an endpoint that does the same, and traces it."""
        if type(endpoint).handle is Endpoint.handle:
            endpoint.handle = partial(self._handle, endpoint)  # type: ignore[method-assign]
        return endpoint

    def _handle(
        self,
        endpoint: Endpoint,
        body: bytes | IncomingBody,
        client: Client,
        respond: Respond,
        values: Values,
    ) -> Answer:
        call = endpoint.kind(endpoint, body, client, values)
        span = self._begin(endpoint, call, values)

        def respond_traced(answer: Answer) -> bool:
            return respond(self._answered(call, span, answer))

        answer = call.start(respond_traced)
        return answer if answer is PENDING else self._answered(call, span, answer)

    def _begin(self, endpoint: Endpoint, call: Call, values: Values) -> Span:
        given = {
            name.decode(): value.decode("latin-1")
            for name in TRACE_HEADERS
            if (value := values.get(name) or endpoint.headers.get(name))
        }
        request = endpoint.request
        # The name begins with the method where a path is told apart by that.
        route = endpoint.route_name.removeprefix(f"{request.method} ")
        span = self._tracer.start_span(
            f"{request.method} {route}",
            _PROPAGATOR.extract(given),
            SpanKind.SERVER,
            {
                "http.request.method": request.method,
                "http.route": route,
                "url.scheme": request.scheme,
                "qserver.request_id": call.request_id,
            },
        )
        self._known[call.request_id] = Known(span)
        if len(self._known) > REQUESTS_KNOWN_MAX:
            self._known.popitem(last=False)
        return span

    def _answered(self, call: Call, span: Span, answer: Answer) -> Any:
        """End the span with the answer, which may have to be waited for."""
        if isinstance(answer, Coroutine):
            return self._wait(call, span, answer)
        return self._ended(call, span, answer)

    async def _wait(self, call: Call, span: Span, answer: Coroutine[Any, Any, Any]) -> Any:
        try:
            found = await answer
        except BaseException:
            span.set_status(Status(StatusCode.ERROR, "there was no answer"))
            span.end()
            raise
        return self._ended(call, span, found)

    def _ended(self, call: Call, span: Span, answer: Response | Elsewhere | Any) -> Any:
        known = self._known.get(call.request_id)
        if known is not None and known.wrote_at is not None:
            parent = trace.set_span_in_context(span)
            self._tracer.start_span("commit", parent, start_time=known.wrote_at).end()
        if isinstance(answer, Response):
            span.set_attribute("http.response.status_code", answer.status)
            if answer.status >= SERVER_ERRORS_FROM:
                span.set_status(Status(StatusCode.ERROR))
            told: dict[str, str] = {}
            _PROPAGATOR.inject(told, trace.set_span_in_context(span))
            pairs = [(name.encode(), value.encode()) for name, value in told.items()]
            headers = Headers([*answer.headers.pairs, *pairs])
            answer = msgspec.structs.replace(answer, headers=headers)
        span.end()
        return answer

    # --- statements and rounds ---

    def statement(self, run: SlowRun) -> None:
        """Note a run of a statement, which has ended now."""
        now = time.time_ns()
        request_id = run.cursor.context.asked_by()[1]
        known = None if request_id is None else self._known.get(request_id)
        parent = None if known is None else trace.set_span_in_context(known.span)
        began = now - int(run.seconds * 1e9)
        self._tracer.start_span(
            "statement",
            parent,
            attributes={
                "db.system.name": "qserver",
                "db.namespace": run.database,
                "db.query.text": run.text,
                "db.response.returned_rows": run.rows,
                "qserver.queryid": str(run.number),
                "qserver.organization": run.organization,
            },
            start_time=began,
        ).end(now)
        plan = run.cursor.plan
        if known is not None and (plan is None or plan.writes):
            known.wrote_at = now

    def appends(self, database: str) -> Appends:
        """Return what is told of the rounds of a database."""
        return Appends(database, self._append)

    def _append(self, database: str, append: Append) -> None:
        known = [self._known[each].span for each in append.requests if each in self._known]
        if not known:
            return
        now = time.time_ns()
        began = min(int(append.snapshot.time * 1e9), now)
        self._tracer.start_span(
            "log append",
            trace.set_span_in_context(known[0]),
            attributes={"db.namespace": database, "qserver.version": append.snapshot.version},
            links=[Link(each.get_span_context()) for each in known[1:]],
            start_time=began,
        ).end(now)

    def __repr__(self) -> str:
        return f"traces of {len(self._known)} requests"


class Appends:
    """An observer of a database (`engine.observers`), of which it wants the rounds alone."""

    def __init__(self, database: str, note: Callable[[str, Append], None]) -> None:
        self._database = database
        self._note = note

    def committed(self, before: Snapshot, append: Append) -> None:
        self._note(self._database, append)

    def restarting(self, durable: Snapshot) -> None:
        return

    def changed(self) -> None:
        return
