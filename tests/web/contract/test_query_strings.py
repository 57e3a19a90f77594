"""Every route with parameters reads its query string alike."""

from __future__ import annotations

import pytest

from qserver.web.description.catalogue import ROUTES
from qserver.web.route import Query
from tests.web.contract.servers import Client, error_of

NO_PARAMETERS = (
    ("POST", "/v1/transaction/open"),
    ("POST", "/v1/transaction/{id}/commit"),
    ("DELETE", "/v1/transaction/{id}"),
    ("GET", "/v1/transaction/{id}"),
    ("POST", "/v1/databases/{database}/restore"),
    ("POST", "/admin/reset"),
)
"""Routes that know no parameter, and say so. Older ones take no notice of a query string, unless
it has an option of theirs (see below)."""

STRICT = [
    (route.method, route.path, route.queries[0] if route.queries else None)
    for route in ROUTES
    if route.queries or (route.method, route.path) in NO_PARAMETERS
]


@pytest.mark.parametrize(("method", "path", "parameter"), STRICT)
def test_a_query_string_that_cannot_be_meant_is_400(
    fresh: Client, method: str, path: str, parameter: Query | None
) -> None:
    database = fresh.headers["X-Database"]
    path = path.replace("{database}", database).replace("{name}", "t").replace("{id}", "txn_x")
    wrong = [("nonsense=1", "unknown parameter 'nonsense'")]
    if parameter is not None:
        name = parameter.name
        wrong += [(f"{name}=%zz", "'%zz' is no escape"), (f"{name}=%ff", "not UTF-8")]
        if not parameter.several:
            wrong.append((f"{name}=1&{name}=1", f"the parameter {name} is there more than once"))
    for query, message in wrong:
        answer = fresh.call(method, f"{path}?{query}")
        assert message in error_of(answer, 400, "QS001")["message"]


@pytest.mark.parametrize("name", ["database", "dry_run", "max_affected", "transaction", "as_of"])
def test_an_option_in_the_url_of_a_posted_statement_is_400(fresh: Client, name: str) -> None:
    """It would have no effect: the statement would be applied, and to another database."""
    fresh.query("create table t (id integer)")
    for path, kind, sent in (
        ("/v1/query", "application/json", '{"sql": "insert into t values (1)"}'),
        ("/v1/transaction", "application/json", '{"statements": ["insert into t values (1)"]}'),
        ("/query", "text/plain", "insert into t values (1)"),
    ):
        for more in ({}, {"Idempotency-Key": "k"}):
            headers = {"Content-Type": kind, **more}
            answer = fresh.call(
                "POST", f"{path}?trace=1&{name}=1", content=sent.encode(), headers=headers
            )
            error = error_of(answer, 400, "QS001")
            assert error["message"].startswith(f"{name} ") and "body" in error["hint"]
    assert fresh.value("select count(*) from t") == 0
    assert fresh.call("POST", "/v1/query?trace=1", json={"sql": "select 1"}).status_code == 200


def test_a_reset_of_one_database_is_not_a_reset_of_all(organization: Client) -> None:
    organization.query("create table t (id integer)")
    error_of(organization.post("/admin/reset?database=other"), 400, "QS001")
    error_of(organization.post("/admin/reset", {"database": "other"}), 400, "QS001")
    assert organization.value("select count(*) from t") == 0
    assert organization.post("/admin/reset", {}).json()["tables_dropped"] == 1


def test_the_error_of_bad_params_names_them(fresh: Client) -> None:
    for path in ("/v1/query?sql=select+1&params=[1", "/v1/tables/t/rows?params=[1"):
        message = error_of(fresh.get(path), 400, "QS001")["message"]
        assert message.startswith("params is not JSON"), message
