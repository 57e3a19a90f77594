"""Declares the routes about what statements cost, a part of the table of routes."""

from __future__ import annotations

from typing import Final

from qserver.limits import LIST_LENGTH_MAX
from qserver.web.description import statement_shapes as shapes
from qserver.web.route import Plane, Query, Route

ORDERS: Final = ("total_ms", "mean_ms", "max_ms", "cpu_ms", "calls", "rows", "retries")
"""By what statements can be sorted."""

STATEMENTS_ROUTES: Final[tuple[Route, ...]] = (
    Route(
        "GET",
        "/v1/databases/{database}/statements",
        "list statements by what they have cost",
        Plane.CONTROL,
        shapes.StatementsAnswer,
        scope="data:read",
        errors=(400, 403, 404),
        queries=(
            Query(
                "order",
                str,
                "By what they are sorted, the most first.",
                choices=ORDERS,
            ),
            Query("limit", int, "List so many.", least=1, most=LIST_LENGTH_MAX),
        ),
    ),
    Route(
        "DELETE",
        "/v1/databases/{database}/statements",
        "begin to count statements anew",
        Plane.CONTROL,
        None,
        status=204,
        scope="data:write",
        errors=(400, 403, 404),
    ),
)
