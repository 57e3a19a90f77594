"""Declares every route once: its handler, who may call it, its request and its answer.

The application finds handlers in this table, checks hosts and methods against it, prints it for
`GET /`, and generates `/openapi.json` from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from qserver.limits import (
    ANSWER_ROWS_MAX,
    BENCH_COST_REQUESTS,
    FEED_LIMIT_MAX,
    FEED_WAIT_MS_MAX,
    HISTORY_CHANGES_MAX,
    HISTORY_VERSIONS_MAX,
    LIST_LENGTH_MAX,
    SELF_TEST_COST_REQUESTS,
    STATEMENT_SECONDS_MAX,
)
from qserver.web.description import organization_shapes, shapes
from qserver.web.description.neon_shapes import NeonBatch, NeonError, NeonRequest, NeonResult
from qserver.web.route import Plane, Query, Route

BODILESS: Final = ("GET", "HEAD", "OPTIONS")
"""Methods whose body, if there is one, is not read."""

_PAGES: Final = (
    Query("cursor", str, "Where the page begins: `next_cursor` of the page before."),
    Query("limit", int, "Records of a page.", least=1, most=LIST_LENGTH_MAX),
)
_IN_DATABASE: Final = Query("database", str, "Which database; else X-Database, else the key's own.")
_TIMEOUT_MS: Final = Query(
    "timeout_ms", int, "Give up after so long.", least=1, most=int(STATEMENT_SECONDS_MAX * 1000)
)

_FRESH: Final = (
    Query("min_version", int, "Read this version or a later one, and wait for it.", least=0),
    Query("consistency", str, "What a replica may show.", choices=("strong", "session", "any")),
    Query("max_age_ms", int, "When a replica heard of its database, at most so long ago.", least=0),
)

STREAMED: Final = ("text/event-stream", "application/x-ndjson", "text/csv")

ROUTES: Final[tuple[Route, ...]] = (
    # --- the data plane
    Route(
        "POST",
        "/v1/query",
        "run one statement",
        Plane.DATA,
        shapes.QueryAnswer,
        media_besides=STREAMED,
        request=shapes.QueryRequest,
        named_request=shapes.NamedQueryRequest,
        takes_idempotency_key=True,
        errors=(400, 403, 404, 413, 415),
    ),
    Route(
        "GET",
        "/v1/query",
        "run a query by its URL, with an ETag",
        Plane.DATA,
        shapes.QueryAnswer,
        media_besides=STREAMED,
        errors=(400, 403, 404, 405),
        has_tag=True,
        queries=(
            Query("sql", str, "The query."),
            Query("statement", str, "Its name, for a key that can only run its statements."),
            Query("params", str, "Its parameters, as a JSON array or object."),
            _IN_DATABASE,
            Query("format", str, "The form of each row.", choices=("objects", "arrays")),
            Query("max_rows", int, "Give the first so many.", least=0, most=ANSWER_ROWS_MAX),
            _TIMEOUT_MS,
            Query("as_of", str, "Read the database as it was: a version, or a time with its zone."),
            *_FRESH,
        ),
    ),
    Route(
        "POST",
        "/query",
        "run one statement, sent as plain text",
        Plane.DATA,
        shapes.QueryAnswer,
        media_besides=STREAMED,
        request=str,
        takes_idempotency_key=True,
        errors=(400, 403, 404, 413, 415),
    ),
    Route(
        "POST",
        "/sql",
        "run statements as Neon's serverless driver sends them",
        Plane.DATA,
        NeonResult,
        batch_answer=NeonBatch,
        request=NeonRequest,
        error=NeonError,
        takes_idempotency_key=True,
        errors=(400, 403, 404),
    ),
    Route(
        "POST",
        "/v1/transaction",
        "run several statements, all or nothing",
        Plane.DATA,
        shapes.TransactionAnswer,
        request=shapes.TransactionRequest,
        named_request=shapes.NamedTransactionRequest,
        takes_idempotency_key=True,
        errors=(400, 403, 404, 413, 415),
    ),
    Route(
        "POST",
        "/v1/tables/{name}/rows",
        "insert rows in bulk: JSON lines, CSV or a JSON array",
        Plane.DATA,
        shapes.BulkAnswer,
        request=shapes.BULK,
        request_media=("application/x-ndjson", "text/csv"),
        takes_idempotency_key=True,
        scope="data:write",
        errors=(400, 403, 404, 413, 415),
        queries=(
            Query(
                "on_conflict",
                str,
                "What a row whose key is taken does: end it all, nothing, or change that row.",
                choices=("error", "ignore", "update"),
            ),
            Query("columns", str, "Take only these, with commas between them."),
            Query(
                "overriding",
                str,
                "Take values for columns that are GENERATED ALWAYS AS IDENTITY.",
                choices=("system",),
            ),
            _IN_DATABASE,
        ),
    ),
    Route(
        "GET",
        "/v1/tables/{name}/rows",
        "stream the rows of a table: CSV, JSON lines or a JSON array",
        Plane.DATA,
        shapes.BULK,
        media_besides=STREAMED,
        scope="data:read",
        errors=(400, 403, 404, 405),
        queries=(
            Query("columns", str, "Only these, with commas between them."),
            Query("where", str, "Only rows for which this expression is true."),
            Query("params", str, "Parameters of that expression, as a JSON array or object."),
            Query("order", str, "Names of columns, each with ASC or DESC if you like."),
            Query("limit", int, "At most so many rows.", least=0),
            Query("as_of", str, "As it was at this version or time."),
            *_FRESH,
            _TIMEOUT_MS,
            _IN_DATABASE,
        ),
    ),
    Route(
        "POST",
        "/v1/transaction/open",
        "open a transaction that stays open between requests",
        Plane.DATA,
        shapes.OpenTransactionAnswer,
        status=201,
        request=shapes.OpenRequest,
        body_optional=True,
        errors=(400, 403, 404, 410, 413, 415),
    ),
    Route(
        "POST",
        "/v1/transaction/{id}/commit",
        "commit an open transaction, or repeat what its commit answered",
        Plane.DATA,
        shapes.CommitAnswer,
        errors=(400, 403, 404, 413, 415),
    ),
    Route(
        "GET",
        "/v1/transaction/{id}",
        "show an open transaction",
        Plane.DATA,
        shapes.OpenTransactionRecordAnswer,
        errors=(400, 403, 404),
    ),
    Route(
        "DELETE",
        "/v1/transaction/{id}",
        "roll an open transaction back",
        Plane.DATA,
        None,
        status=204,
        errors=(400, 403, 404),
    ),
    Route(
        "GET",
        "/v1/changes",
        "read or follow the changes since a version",
        Plane.DATA,
        shapes.ChangesAnswer,
        scope="data:read",
        errors=(400, 403, 404, 410, 503),
        streams=True,
        queries=(
            Query(
                "since", int, "The version that is known; required without Last-Event-ID.", least=0
            ),
            Query("tables", str, "Only these, with commas between them."),
            Query(
                "limit",
                int,
                "End with the version that brings so many changes.",
                least=1,
                most=FEED_LIMIT_MAX,
            ),
            Query(
                "wait_ms",
                int,
                "If there is no change yet, wait so long for the first.",
                least=0,
                most=FEED_WAIT_MS_MAX,
            ),
            _IN_DATABASE,
        ),
    ),
    Route(
        "GET",
        "/tables",
        "list the tables of a database",
        Plane.DATA,
        shapes.TablesAnswer,
        scope="data:read",
        errors=(403, 404),
        queries=(_IN_DATABASE,),
    ),
    # --- the control plane
    Route(
        "POST",
        "/v1/signup",
        "make an organization, if signup is open",
        Plane.CONTROL,
        organization_shapes.SignupAnswer,
        status=201,
        request=shapes.SignupRequest,
        anonymous=True,
        errors=(400, 403, 409, 413, 415, 429),
    ),
    Route(
        "POST",
        "/v1/session",
        "begin a session of 24 hours",
        Plane.CONTROL,
        shapes.SessionAnswer,
        status=201,
        request=shapes.SessionRequest,
        body_optional=True,
        for_statement_keys=True,
        errors=(400, 403, 404, 413, 415),
    ),
    Route(
        "POST",
        "/v1/session/refresh",
        "make the session 24 hours longer",
        Plane.CONTROL,
        shapes.SessionAnswer,
        errors=(400, 403),
        for_statement_keys=True,
    ),
    Route(
        "DELETE",
        "/v1/session",
        "end the session",
        Plane.CONTROL,
        None,
        status=204,
        errors=(400, 403),
        for_statement_keys=True,
    ),
    Route(
        "GET",
        "/v1/databases",
        "list databases",
        Plane.CONTROL,
        shapes.DatabasesAnswer,
        errors=(400, 403),
        queries=_PAGES,
    ),
    Route(
        "POST",
        "/v1/databases",
        "make a database, or a branch of one",
        Plane.CONTROL,
        shapes.DatabaseAnswer,
        status=201,
        request=shapes.DatabaseRequest,
        errors=(400, 403, 404, 409, 410, 413, 415),
    ),
    Route(
        "GET",
        "/v1/databases/{database}",
        "show a database, by id or name",
        Plane.CONTROL,
        shapes.DatabaseAnswer,
        errors=(403, 404),
    ),
    Route(
        "PATCH",
        "/v1/databases/{database}",
        "rename a database, change its history or its replicas, or keep a branch",
        Plane.CONTROL,
        shapes.DatabaseAnswer,
        request=shapes.DatabaseChange,
        errors=(400, 403, 404, 409, 413, 415),
    ),
    Route(
        "DELETE",
        "/v1/databases/{database}",
        "delete a database and all it holds",
        Plane.CONTROL,
        None,
        status=204,
        errors=(400, 403, 404, 409),
    ),
    Route(
        "GET",
        "/v1/databases/{database}/versions",
        "list versions, newest first",
        Plane.CONTROL,
        shapes.VersionsAnswer,
        scope="data:read",
        errors=(400, 403, 404, 410),
        queries=(
            Query("before", int, "List versions before this one; `next_cursor` of the last page."),
            Query("limit", int, "Versions of a page.", least=1, most=HISTORY_VERSIONS_MAX),
        ),
    ),
    Route(
        "GET",
        "/v1/databases/{database}/diff",
        "compare two versions",
        Plane.CONTROL,
        shapes.DiffAnswer,
        scope="data:read",
        errors=(400, 403, 404, 410),
        queries=(
            Query("from", str, "A version, or a time with its zone.", required=True),
            Query("to", str, "The other one; by default the newest."),
            Query("tables", str, "Only these, with commas between them."),
            Query("cursor", str, "Where the page begins: `next_cursor` of the page before."),
            Query("limit", int, "Changes of a page.", least=1, most=HISTORY_CHANGES_MAX),
        ),
    ),
    Route(
        "POST",
        "/v1/databases/{database}/restore",
        "make a database what it was, as a new version",
        Plane.CONTROL,
        shapes.RestoreAnswer,
        request=shapes.RestoreRequest,
        scope="data:write",
        errors=(400, 403, 404, 410, 413, 415),
    ),
    Route(
        "GET",
        "/v1/keys",
        "list API keys",
        Plane.CONTROL,
        shapes.KeysAnswer,
        errors=(400, 403),
        queries=_PAGES,
    ),
    Route(
        "POST",
        "/v1/keys",
        "make an API key",
        Plane.CONTROL,
        shapes.KeyAnswer,
        status=201,
        request=shapes.KeyRequest,
        errors=(400, 403, 404, 409, 413, 415),
    ),
    Route(
        "GET",
        "/v1/keys/{key_id}",
        "show an API key",
        Plane.CONTROL,
        shapes.KeyAnswer,
        errors=(403, 404),
    ),
    Route(
        "PATCH",
        "/v1/keys/{key_id}",
        "rename or narrow an API key",
        Plane.CONTROL,
        shapes.KeyAnswer,
        request=shapes.KeyChange,
        errors=(400, 403, 404, 409, 413, 415),
    ),
    Route(
        "DELETE",
        "/v1/keys/{key_id}",
        "revoke an API key",
        Plane.CONTROL,
        None,
        status=204,
        errors=(400, 403, 404, 409),
    ),
    Route(
        "POST",
        "/v1/keys/{key_id}/rotate",
        "give an API key a new secret",
        Plane.CONTROL,
        shapes.KeyAnswer,
        status=201,
        request=shapes.RotateRequest,
        body_optional=True,
        errors=(400, 403, 404, 409, 413, 415),
    ),
    Route(
        "GET",
        "/v1/organization",
        "show the organization, its limits and use",
        Plane.CONTROL,
        organization_shapes.OrganizationAnswer,
    ),
    Route(
        "GET",
        "/v1/organizations",
        "list all organizations, for a key of `default`",
        Plane.CONTROL,
        organization_shapes.OrganizationsAnswer,
        scope="admin",
        errors=(400, 403),
        queries=_PAGES,
    ),
    Route(
        "PATCH",
        "/v1/organizations/{organization}",
        "change an organization's tier or limits, likewise",
        Plane.CONTROL,
        organization_shapes.OrganizationAnswer,
        request=organization_shapes.OrganizationChange,
        scope="admin",
        errors=(400, 403, 404, 413, 415),
    ),
    # --- the service itself
    Route("GET", "/", "this list", Plane.BOTH, shapes.Banner, anonymous=True),
    Route(
        "GET",
        "/health",
        "is every part well",
        Plane.BOTH,
        shapes.HealthAnswer,
        anonymous=True,
        errors=(503,),
    ),
    Route(
        "GET",
        "/ready",
        "does the service take requests",
        Plane.BOTH,
        shapes.ReadyAnswer,
        anonymous=True,
        errors=(503,),
    ),
    Route(
        "GET",
        "/metrics",
        "measurements for Prometheus",
        Plane.BOTH,
        str,
        scope="admin",
        errors=(403,),
        media="text/plain",
    ),
    Route(
        "GET",
        "/bench",
        "run a benchmark in a scratch database",
        Plane.BOTH,
        shapes.BenchAnswer,
        errors=(400, 403, 409),
        cost=BENCH_COST_REQUESTS,
        queries=(
            Query("workload", str, "What is done."),
            Query("duration_ms", int, "How long, at most 5000."),
            Query("clients", int, "How many do it at once."),
            Query("seed", int, "Of the random choices."),
        ),
    ),
    Route(
        "GET",
        "/capabilities",
        "the feature matrix",
        Plane.BOTH,
        shapes.CapabilitiesAnswer,
        anonymous=True,
    ),
    Route(
        "GET",
        "/capabilities/{name}",
        "run the probe of a feature",
        Plane.BOTH,
        shapes.ProbeAnswer,
        errors=(404,),
        cost=SELF_TEST_COST_REQUESTS,
    ),
    Route(
        "GET",
        "/storage/test",
        "write, sync, read back and delete",
        Plane.BOTH,
        shapes.StorageAnswer,
        errors=(403, 503),
        cost=SELF_TEST_COST_REQUESTS,
    ),
    Route(
        "POST",
        "/admin/reset",
        "drop all tables of all databases",
        Plane.BOTH,
        shapes.ResetAnswer,
        scope="admin",
        errors=(400, 403),
    ),
    Route(
        "GET",
        "/openapi.json",
        "this interface, described for programs",
        Plane.BOTH,
        dict,
        anonymous=True,
    ),
    Route(
        "GET",
        "/docs",
        "this interface, described for people",
        Plane.BOTH,
        str,
        anonymous=True,
        media="text/html",
    ),
)


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path)))


_PATTERNS: Final = tuple((_pattern(route.path), route) for route in ROUTES)


def routes_of(path: str) -> Mapping[str, Route]:
    """The routes of a path, by method; a path that is declared as it is has no other routes."""
    exact = {route.method: route for route in ROUTES if route.path == path}
    return exact or {route.method: route for pattern, route in _PATTERNS if pattern.fullmatch(path)}


def find_route(method: str, path: str) -> Route | None:
    """The route of a request; HEAD takes the route of GET."""
    return routes_of(path).get("GET" if method == "HEAD" else method)
