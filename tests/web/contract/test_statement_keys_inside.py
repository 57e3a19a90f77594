"""Section 14: what a browser's session tries in open transactions and by all other ways."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

import httpx
import pytest

from tests.web.contract.servers import Client, error_of

SECRET = "of somebody else"
STATEMENTS = {
    "mine": "SELECT id, title FROM todos WHERE owner = :user ORDER BY id",
    "add": "INSERT INTO todos VALUES (:id, :user, :title)",
    "move": "UPDATE todos SET id = :to WHERE owner = :user AND id = :id",
}


class Browser:
    """The token of a session that is bound to one user."""

    def __init__(self, maker: Client) -> None:
        name = maker.headers["X-Database"]
        key = maker.new_key(statements=STATEMENTS, databases=[name])
        self.maker = maker
        self.key_id = key["id"]
        self.key = Client(maker.server, key["key"], database=name)
        token = self.key.new_session(bind={"user": 42})["token"]
        self.client = Client(maker.server, token, database=name)

    def open(self) -> str:
        answer = self.client.post("/v1/transaction/open")
        assert answer.status_code == 201, answer.text
        return str(answer.json()["transaction"]["id"])

    def run(self, name: str, params: Any = None, **fields: Any) -> httpx.Response:
        body = {"statement": name, "params": params or {}, **fields}
        return self.client.post("/v1/query", body)


@pytest.fixture
def browser(fresh: Client) -> Browser:
    fresh.transaction(
        "create table todos (id int primary key, owner int not null, title text not null)",
        f"insert into todos values (1, 42, 'mine'), (2, 7, '{SECRET}')",
    )
    return Browser(fresh)


def test_in_an_open_transaction_only_its_statements_run(browser: Browser) -> None:
    name = browser.open()
    texts = (
        "SELECT * FROM todos",
        "EXPLAIN SELECT * FROM todos",
        "SAVEPOINT a",
        "ROLLBACK",
        "ROLLBACK TO a",
        "/* mine */ SELECT * FROM todos",
        "/*+ STREAM */ SELECT * FROM todos",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM pg_catalog.pg_class",
        "SELECT 1; SELECT 2",
        STATEMENTS["mine"],
        STATEMENTS["mine"].replace(" ", "\u00a0"),
        STATEMENTS["mine"] + " -- ",
    )
    for text in texts:
        for sent in (
            browser.client.post("/v1/query", {"sql": text, "transaction": name}),
            browser.client.post("/v1/query", {"sql": text}, headers={"X-Transaction": name}),
            browser.client.call(
                "POST",
                "/query",
                content=text.encode(),
                headers={"X-Transaction": name, "Content-Type": "text/plain"},
            ),
            browser.client.post("/v1/transaction", {"statements": [text], "transaction": name}),
            browser.client.post(
                "/v1/transaction",
                {"statements": [{"statement": "mine"}, {"sql": text}], "transaction": name},
            ),
            browser.run(text, transaction=name),
        ):
            error_of(sent, 403, "QS005")
            assert SECRET not in sent.text
    assert browser.run("mine", transaction=name).json()["rows"] == [{"id": 1, "title": "mine"}]
    record = browser.client.get(f"/v1/transaction/{name}").json()["transaction"]
    assert (record["state"], record["statements"]) == ("active", 1), "a refusal is no step"


def test_what_a_statement_wrote_is_not_committed_when_the_key_has_lost_it(
    browser: Browser,
) -> None:
    kept = {name: text for name, text in STATEMENTS.items() if name != "add"}
    for statements, status in (({**STATEMENTS, "one": "SELECT 1"}, 200), (kept, 404)):
        name = browser.open()
        added = browser.run("add", {"id": 100 + status, "title": "x"}, transaction=name)
        assert added.json()["affected_rows"] == 1, added.text
        assert (
            browser.maker.patch(
                f"/v1/keys/{browser.key_id}", {"statements": statements}
            ).status_code
            == 200
        )
        assert browser.client.post(f"/v1/transaction/{name}/commit").status_code == status
    assert browser.maker.rows("select id from todos where id > 100") == [[300]]


def test_a_bound_session_ends_when_a_statement_loses_its_parameter(browser: Browser) -> None:
    path = f"/v1/keys/{browser.key_id}"
    renamed = {**STATEMENTS, "mine": STATEMENTS["mine"].replace(":user", ":owner")}
    other = browser.key.new_session(bind={"id": 1})["token"]
    assert browser.maker.patch(path, {"statements": renamed}).status_code == 200
    for params in ({"owner": 7}, {"owner": 7, "user": 42}, {"user": 7}, {}):
        error_of(browser.run("mine", params), 401)
    renamed["mine"] += " LIMIT 1"
    assert browser.maker.patch(path, {"statements": renamed}).status_code == 200
    error_of(browser.run("mine", {"owner": 7}), 401)
    browser.client = Client(browser.maker.server, other)
    assert browser.run("mine", {"owner": 7}).json()["rows"] == [{"id": 2, "title": SECRET}]


def test_what_shows_or_does_more_is_refused_inside_too(browser: Browser) -> None:
    name = browser.open()
    for fields, status in (
        ({"dry_run": True}, 403),
        ({"as_of": 0}, 403),
        ({"params": {"user": 7}}, 403),
        ({"params": [7]}, 400),
        ({"live": True}, 400),
        ({"if_version": 0}, 400),
        ({"database": "main"}, 400),
    ):
        body = {"statement": "mine", "transaction": name, **fields}
        error_of(browser.client.post("/v1/query", body), status)
    error_of(browser.client.post("/v1/transaction/open", {"as_of": 0}), 403)
    listed = {"statements": [{"statement": "mine", "params": {"user": 7}}], "transaction": name}
    error_of(browser.client.post("/v1/transaction", listed), 403)
    error_of(browser.client.post("/v1/transaction", {**listed, "branch": True}), 403)
    streamed = browser.client.post(
        "/v1/query",
        {"statement": "mine", "transaction": name},
        headers={"Accept": "application/x-ndjson"},
    )
    assert streamed.text == '{"id":1,"title":"mine"}\n'


def test_the_transactions_of_others_are_none_of_its_business(browser: Browser) -> None:
    admins = browser.maker.post("/v1/transaction/open").json()["transaction"]["id"]
    keys = browser.key.post("/v1/transaction/open").json()["transaction"]["id"]
    own = browser.open()
    for name in (admins, keys):
        error_of(browser.run("mine", transaction=name), 404, "QS030")
        error_of(browser.client.get(f"/v1/transaction/{name}"), 404, "QS030")
        error_of(browser.client.delete(f"/v1/transaction/{name}"), 404, "QS030")
        error_of(browser.client.post(f"/v1/transaction/{name}/commit"), 404, "QS030")
    for other in (browser.maker, browser.key):
        error_of(other.get(f"/v1/transaction/{own}"), 404, "QS030")
    assert browser.maker.get(f"/v1/transaction/{admins}").status_code == 200


def test_errors_and_conflicts_inside_show_no_row_of_others(browser: Browser) -> None:
    name = browser.open()
    taken = browser.run("add", {"id": 2, "title": "x"}, transaction=name)
    error = error_of(taken, 200, "23505")
    assert error["detail"] is None and "2" not in error["message"]
    error_of(browser.run("mine", transaction=name), 200, "25P02")
    second = browser.open()
    assert browser.run("add", {"id": 3, "title": "x"}, transaction=second).json()["success"]
    change = {"sql": f"insert into todos values (3, 7, '{SECRET} too')"}
    browser.maker.post("/v1/query", change, headers={"X-Request-Id": "somebody"})
    answer = browser.client.post(f"/v1/transaction/{second}/commit")
    error = error_of(answer, 200, "40001")
    assert error.get("conflict") is None and error["detail"] is None
    assert SECRET not in answer.text and "somebody" not in answer.text
    again = browser.client.post(f"/v1/transaction/{second}/commit")
    assert again.content == answer.content


def test_no_other_way_leads_to_the_rows(browser: Browser) -> None:
    sql = quote("SELECT * FROM todos")
    for method, path in (
        ("GET", "/tables"),
        ("GET", "/v1/changes?since=0"),
        ("GET", "/v1/notifications?channel=a"),
        ("GET", f"/v1/query?sql={sql}"),
        ("GET", "/v1/query?statement=mine&as_of=0"),
        ("GET", "/v1/query?" + urlencode({"statement": "mine", "params": '{"user": 7}'})),
        ("GET", f"/v1/query?statement=mine&sql={sql}"),
        ("POST", "/v1/tables/todos/rows"),
        ("GET", "/v1/tables/todos/rows"),
        ("GET", "/v1/databases/main/diff?from=0"),
        ("GET", "/v1/databases/main/versions"),
        ("POST", "/v1/databases/main/restore"),
        ("GET", "/v1/keys"),
        ("GET", "/metrics"),
    ):
        for accept in ("application/json", "text/event-stream", "text/csv"):
            answer = browser.client.call(method, path, headers={"Accept": accept})
            assert answer.status_code in (403, 405), (method, path, answer.text)
            assert SECRET not in answer.text
    assert browser.maker.rows("select count(*) from todos") == [[2]]


def test_tags_of_another_session_are_no_use(browser: Browser) -> None:
    path = "/v1/query?statement=mine"
    own = browser.client.get(path)
    name = browser.maker.headers["X-Database"]
    token = browser.key.new_session(bind={"user": 7})["token"]
    other = Client(browser.maker.server, token, database=name).get(path)
    assert own.headers["etag"] != other.headers["etag"]
    crossed = browser.client.get(path, headers={"If-None-Match": other.headers["etag"]})
    assert crossed.status_code == 200 and SECRET not in crossed.text
