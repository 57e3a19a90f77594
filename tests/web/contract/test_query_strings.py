"""Every route with parameters reads its query string alike."""

from __future__ import annotations

import pytest

from qserver.web.catalogue import ROUTES
from tests.web.contract.servers import Client, error_of

NO_PARAMETERS = (
    ("POST", "/v1/transaction/open"),
    ("POST", "/v1/transaction/{id}/commit"),
    ("DELETE", "/v1/transaction/{id}"),
    ("GET", "/v1/transaction/{id}"),
    ("POST", "/v1/databases/{database}/restore"),
)
"""Routes that know no parameter, and say so. Older ones take no notice of a query string."""

STRICT = [
    (route.method, route.path, route.parameters[0] if route.queries else None)
    for route in ROUTES
    if route.queries or (route.method, route.path) in NO_PARAMETERS
]


@pytest.mark.parametrize(("method", "path", "name"), STRICT)
def test_a_query_string_that_cannot_be_meant_is_400(
    fresh: Client, method: str, path: str, name: str | None
) -> None:
    database = fresh.headers["X-Database"]
    path = path.replace("{database}", database).replace("{name}", "t").replace("{id}", "txn_x")
    wrong = [("nonsense=1", "unknown parameter 'nonsense'")]
    if name is not None:
        wrong += [
            (f"{name}=1&{name}=1", f"the parameter {name} is there more than once"),
            (f"{name}=%zz", "'%zz' is no escape"),
            (f"{name}=%ff", "not UTF-8"),
        ]
    for query, message in wrong:
        answer = fresh.call(method, f"{path}?{query}")
        assert message in error_of(answer, 400, "QS001")["message"]
