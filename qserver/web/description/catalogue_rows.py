"""Declares the routes of rows in bulk, and the parameters that reads have in common."""

from __future__ import annotations

from typing import Final

from qserver.limits import STATEMENT_SECONDS_MAX
from qserver.web.description import shapes
from qserver.web.route import STREAMED, Plane, Query, Route

IN_DATABASE: Final = Query("database", str, "Which database; else X-Database, else the key's own.")
TIMEOUT_MS: Final = Query(
    "timeout_ms", int, "Give up after so long.", least=1, most=int(STATEMENT_SECONDS_MAX * 1000)
)

FRESH: Final = (
    Query("min_version", int, "Read this version or a later one, and wait for it.", least=0),
    Query("consistency", str, "What a replica may show.", choices=("strong", "session", "any")),
    Query("max_age_ms", int, "When a replica heard of its database, at most so long ago.", least=0),
)

ROUTES_OF_ROWS: Final[tuple[Route, ...]] = (
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
            IN_DATABASE,
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
            *FRESH,
            TIMEOUT_MS,
            IN_DATABASE,
        ),
    ),
    Route(
        "POST",
        "/v1/copy",
        "insert the rows of the body by COPY … FROM STDIN",
        Plane.DATA,
        shapes.BulkAnswer,
        request=str,
        request_media=("text/csv", "application/octet-stream"),
        takes_idempotency_key=True,
        scope="data:write",
        errors=(400, 403, 404, 413),
        queries=(Query("sql", str, "The statement: COPY … FROM STDIN."), IN_DATABASE),
    ),
    Route(
        "GET",
        "/v1/copy",
        "stream rows by COPY … TO STDOUT",
        Plane.DATA,
        str,
        media="text/plain",
        media_besides=("text/csv", "application/octet-stream"),
        scope="data:read",
        errors=(400, 403, 404, 405),
        queries=(
            Query("sql", str, "The statement: COPY … TO STDOUT."),
            Query("as_of", str, "As it was at this version or time."),
            *FRESH,
            TIMEOUT_MS,
            IN_DATABASE,
        ),
    ),
)
