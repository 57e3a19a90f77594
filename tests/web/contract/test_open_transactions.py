"""Section 11: transactions that stay open between requests."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.patience import eventually
from tests.web.contract.servers import Client, error_of

DEBIT = "update accounts set balance = balance - 1 where id = 1"
RECORD = {"id", "database", "version", "read_only", "created_at", "expires_at"}


class Transaction:
    def __init__(self, client: Client, **fields: Any) -> None:
        self.client = client
        answer = client.post("/v1/transaction/open", fields)
        assert answer.status_code == 201, answer.text
        self.record = answer.json()["transaction"]
        self.id = self.record["id"]

    def send(self, sql: str, *params: Any, **fields: Any) -> httpx.Response:
        fields = {"params": list(params)} | fields if params else fields
        return self.client.query_response(sql, transaction=self.id, **fields)

    def rows(self, sql: str, *params: Any) -> list[Any]:
        answer = self.send(sql, *params, format="arrays").json()
        assert answer["success"], answer
        return answer["rows"]  # type: ignore[no-any-return]

    def do(self, sql: str, *params: Any) -> dict[str, Any]:
        answer = self.send(sql, *params).json()
        assert answer["success"], answer
        return answer  # type: ignore[no-any-return]

    def step(self, *statements: Any, **fields: Any) -> httpx.Response:
        body = {"statements": list(statements), "transaction": self.id, **fields}
        return self.client.post("/v1/transaction", body)

    def commit(self) -> httpx.Response:
        return self.client.post(f"/v1/transaction/{self.id}/commit")

    def show(self) -> httpx.Response:
        return self.client.get(f"/v1/transaction/{self.id}")

    def end(self) -> httpx.Response:
        return self.client.delete(f"/v1/transaction/{self.id}")


@pytest.fixture
def bank(fresh: Client) -> Client:
    fresh.transaction(
        "create table accounts (id int primary key, owner text, balance int check (balance >= 0))",
        "create table notes (id serial primary key, account int references accounts, text text)",
        "insert into accounts values (1, 'Ada', 100), (2, 'Grace', 50)",
    )
    return fresh


def gone(answer: httpx.Response) -> None:
    error_of(answer, 404, "QS030")


# --- reading, writing, committing ---


def test_it_reads_its_snapshot_and_its_own_writes_and_commits_them_together(bank: Client) -> None:
    txn = Transaction(bank)
    assert txn.record.keys() == RECORD and txn.record["read_only"] is False
    assert txn.id.startswith("txn_") and txn.record["database"] == bank.headers["X-Database"]
    bank.query("insert into accounts values (3, 'Edsger', 1)")
    moved = txn.do("update accounts set balance = balance - 10 where id = 1 returning balance")
    assert moved["rows"] == [{"balance": 90}]
    assert moved["version"] == txn.record["version"]
    assert txn.rows("select balance from accounts where id = 1") == [[90]]
    assert bank.rows("select balance from accounts where id = 1") == [[100]]
    answer = txn.commit()
    assert answer.status_code == 200
    found = answer.json()
    assert found.keys() == {"success", "version", "affected_rows", "timings"}
    assert found["affected_rows"] == 1 and found["version"] > txn.record["version"]
    assert bank.rows("select balance from accounts where id = 1") == [[90]]
    assert bank.query("select 1")["version"] == found["version"]


def test_after_the_end_everything_but_commit_is_not_found(bank: Client) -> None:
    committed, deleted = Transaction(bank), Transaction(bank)
    for txn in (committed, deleted):
        txn.do("insert into notes (account, text) values (1, 'x')")
    answer = committed.commit()
    assert deleted.end().status_code == 204
    for txn in (committed, deleted):
        gone(txn.send("select 1"))
        gone(txn.step("select 1"))
        gone(txn.show())
        gone(txn.end())
    gone(deleted.commit())
    assert committed.commit().content == answer.content
    assert bank.rows("select count(*) from notes") == [[1]]


def test_a_conflict_applies_nothing_says_where_it_was_and_stays_the_answer(bank: Client) -> None:
    txn = Transaction(bank)
    txn.rows("select 1")
    txn.rows("select balance from accounts where id = 1")
    txn.do("update accounts set balance = 0 where id = 2")
    changed = bank.post(
        "/v1/query",
        {"sql": "update accounts set balance = 70 where id = 1"},
        headers={"X-Request-Id": "it-was-me"},
    )
    bank.query("update accounts set balance = 80 where id = 2")
    answer = txn.commit()
    error = error_of(answer, 200, "40001")
    assert error["retryable"] is True
    conflict = error["conflict"]
    assert (conflict["table"], conflict["key"], conflict["statement"]) == ("accounts", {"id": 1}, 1)
    assert conflict["read_version"] == txn.record["version"]
    assert conflict["changed_version"] == changed.json()["version"]
    assert conflict["changed_by"] == {"request_id": "it-was-me"}
    assert txn.commit().content == answer.content
    gone(txn.send("select 1"))
    assert bank.rows("select balance from accounts order by id") == [[70], [80]]


def test_a_conflict_in_a_range_names_the_range(bank: Client) -> None:
    txn = Transaction(bank)
    txn.do("insert into accounts select max(id) + 10, 'new', 0 from accounts where id < 9")
    bank.query("insert into accounts values (5, 'phantom', 1)")
    conflict = error_of(txn.commit(), 200, "40001")["conflict"]
    assert conflict["table"] == "accounts" and conflict["statement"] == 0
    assert conflict["range"].keys() == {"from", "to"}


def test_what_nobody_else_touched_commits_beside_others(bank: Client) -> None:
    one, other = Transaction(bank), Transaction(bank)
    one.do("update accounts set balance = balance + 1 where id = 1")
    other.do("update accounts set balance = balance + 1 where id = 2")
    assert one.commit().json()["success"] and other.commit().json()["success"]
    assert bank.rows("select balance from accounts order by id") == [[101], [51]]


def test_write_skew_is_a_conflict(bank: Client) -> None:
    one, other = Transaction(bank), Transaction(bank)
    for txn, account in ((one, 1), (other, 2)):
        assert txn.rows("select sum(balance) from accounts") == [[150]]
        txn.do("update accounts set balance = balance - 50 where id = ?", account)
    assert one.commit().json()["success"]
    error_of(other.commit(), 200, "40001")


def test_definitions_sequences_and_keys_work_inside(bank: Client) -> None:
    txn = Transaction(bank)
    txn.do("create table extra (id serial primary key, a int unique)")
    assert txn.do("insert into extra (a) values (7), (8) returning id")["rows"] == [
        {"id": 1}, {"id": 2}
    ]  # fmt: skip
    assert txn.do("insert into notes (account, text) values (2, 'x') returning id")["rows"]
    error_of(txn.send("insert into extra (a) values (7)"), 200, "23505")
    gone_or_failed = txn.send("select 1")
    error_of(gone_or_failed, 200, "25P02")
    txn.end()
    assert "extra" not in [each["name"] for each in bank.get("/tables").json()["tables"]]

    txn = Transaction(bank)
    txn.do("create table extra (a int)")
    txn.do("alter table extra add column b int default 2")
    txn.do("insert into extra (a) values (1)")
    assert txn.commit().json()["success"]
    assert bank.rows("select a, b from extra") == [[1, 2]]


def test_a_foreign_key_is_a_read_that_must_hold(bank: Client) -> None:
    txn = Transaction(bank)
    txn.do("insert into notes (account, text) values (2, 'x')")
    bank.query("delete from accounts where id = 2")
    error_of(txn.commit(), 200, "40001")


def test_one_that_changed_nothing_commits(bank: Client) -> None:
    txn = Transaction(bank)
    txn.rows("select * from accounts")
    bank.query("update accounts set balance = 1")
    answer = txn.commit()
    assert answer.json()["success"] and answer.json()["affected_rows"] == 0
    assert txn.commit().content == answer.content


# --- steps, savepoints, failures ---


def test_a_step_is_applied_as_a_whole_or_not_at_all(bank: Client) -> None:
    txn = Transaction(bank)
    found = txn.step(
        "update accounts set balance = 1 where id = 1",
        {"sql": "select balance from accounts where id = ?", "params": [1]},
    ).json()
    assert found["success"] and found["affected_rows"] == 1
    assert found["results"][1]["rows"] == [{"balance": 1}]
    assert found["version"] == txn.record["version"]
    txn.do("savepoint a")
    failed = txn.step("delete from notes", "update accounts set balance = 2", "select 1/0")
    assert error_of(failed, 200, "22012")["statement"] == 2
    txn.do("rollback to a")
    assert txn.rows("select balance from accounts order by id") == [[1], [50]]
    txn.commit()
    assert bank.rows("select balance from accounts order by id") == [[1], [50]]


def test_savepoints_nest_shadow_and_are_released(bank: Client) -> None:
    txn = Transaction(bank)
    insert = "insert into notes (id, text) values (?, 'x')"
    ids = "select coalesce(array_agg(id order by id), '{}') from notes"
    txn.do(insert, 1)
    txn.do("savepoint a")
    txn.do(insert, 2)
    txn.do("savepoint b")
    txn.do(insert, 3)
    txn.do("savepoint a")
    txn.do(insert, 4)
    txn.do("rollback to savepoint a")
    assert txn.rows(ids) == [[[1, 2, 3]]]
    txn.do("release savepoint a")
    txn.do("rollback work to b")
    assert txn.rows(ids) == [[[1, 2]]]
    txn.do("release b")
    txn.do("rollback to a")
    assert txn.rows(ids) == [[[1]]]
    error_of(txn.send("rollback to b"), 200, "3B001")
    txn.do("rollback to a")
    txn.do(insert, 9)
    assert txn.commit().json()["affected_rows"] == 2
    assert bank.rows(ids) == [[[1, 9]]]


def test_savepoints_undo_definitions(bank: Client) -> None:
    txn = Transaction(bank)
    txn.do("savepoint a")
    txn.do("create table extra (a int)")
    txn.do("insert into extra values (1)")
    txn.do("drop table notes")
    txn.do("rollback to a")
    error_of(txn.send("select * from extra"), 200, "42P01")
    txn.do("rollback to a")
    txn.do("insert into notes (text) values ('still here')")
    assert txn.commit().json()["success"]
    assert bank.rows("select text from notes") == [["still here"]]


@pytest.mark.parametrize(
    ("sql", "status", "code"),
    [
        ("select 1/0", 200, "22012"),
        ("select * from nowhere", 200, "42P01"),
        ("selec 1", 400, "42601"),
        ("begin", 200, "25001"),
        ("commit", 200, "25001"),
        ("savepoint a b", 400, "42601"),
        ("release nothing", 200, "3B001"),
    ],
)
def test_after_an_error_only_a_rollback_is_accepted(
    bank: Client, sql: str, status: int, code: str
) -> None:
    txn = Transaction(bank)
    txn.do("savepoint before")
    txn.do("update accounts set balance = 0")
    txn.do("savepoint start")
    error_of(txn.send(sql), status, code)
    assert txn.show().json()["transaction"]["state"] == "failed"
    for refused in ("select 1", "savepoint b", "release start", sql):
        error_of(txn.send(refused), 200, "25P02")
    error_of(txn.commit(), 200, "25P02")
    txn.do("rollback to start")
    assert txn.rows("select sum(balance) from accounts") == [[0]]
    assert txn.commit().json()["affected_rows"] == 2


def test_a_bad_request_leaves_it_as_it_was(bank: Client) -> None:
    txn = Transaction(bank)
    txn.do("update accounts set balance = 0")
    error_of(txn.send("select 1", unknown=1), 400, "QS001")
    error_of(txn.send("select 1", database="another"), 400, "QS001")
    error_of(txn.send("select ?", 1, 2), 400)
    error_of(bank.with_token("svc_k_nobody_0123456789").get(f"/v1/transaction/{txn.id}"), 401)
    key = {"Idempotency-Key": "one"}
    body = {"sql": "delete from notes", "transaction": txn.id}
    error_of(bank.post("/v1/query", body, headers=key), 400, "QS001")
    assert txn.rows("select sum(balance) from accounts") == [[0]]
    assert txn.commit().json()["success"]


def test_rollback_as_a_statement_ends_it(bank: Client) -> None:
    for sql in ("rollback", "ABORT", "rollback and no chain", "/* done */ rollback transaction;"):
        txn = Transaction(bank)
        txn.do("update accounts set balance = 0")
        txn.do(sql)
        gone(txn.send("select 1"))
        gone(txn.commit())
    failed = Transaction(bank)
    error_of(failed.send("select 1/0"), 200, "22012")
    failed.do("rollback")
    gone(failed.commit())
    assert bank.rows("select sum(balance) from accounts") == [[150]]


def test_one_that_may_only_read_refuses_to_write(bank: Client) -> None:
    for sql in (
        "delete from notes",
        "create table x (a int)",
        "truncate notes",
        "select nextval('notes_id_seq')",
    ):
        txn = Transaction(bank, read_only=True)
        assert txn.record["read_only"] is True
        bank.query("update accounts set balance = balance + 1")
        first = txn.rows("select balance from accounts order by id")
        bank.query("update accounts set balance = balance + 1")
        assert txn.rows("select balance from accounts order by id") == first
        error_of(txn.send(sql), 200, "25006")
        error_of(txn.send("select 1"), 200, "25P02")
    txn = Transaction(bank, read_only=True)
    txn.do("savepoint a")
    assert txn.commit().json()["affected_rows"] == 0


def test_guards_work_inside(bank: Client) -> None:
    txn = Transaction(bank)
    txn.do("update accounts set balance = 5 where id = 1")
    found = txn.send("update accounts set balance = 6 where id = 1", dry_run=True).json()
    assert found["diff"] == [
        {"table": "accounts", "op": "update", "key": {"id": 1},
         "before": {"id": 1, "owner": "Ada", "balance": 5},
         "after": {"id": 1, "owner": "Ada", "balance": 6}}
    ]  # fmt: skip
    assert txn.rows("select balance from accounts where id = 1") == [[5]]
    txn.do("savepoint a")
    error_of(txn.send("update accounts set balance = 7", max_affected=1), 200, "QS003")
    txn.do("rollback to a")
    assert txn.commit().json()["affected_rows"] == 1
    assert bank.rows("select balance from accounts order by id") == [[5], [50]]


# --- streams, text, two at once ---


def test_a_stream_inside_sees_its_writes(bank: Client) -> None:
    txn = Transaction(bank)
    txn.do("insert into accounts select n, 'x', n from generate_series(10, 3009) n")
    answer = txn.send("/*+ STREAM */ select id from accounts order by id")
    rows = [line for line in answer.text.splitlines() if line.startswith("event: row")]
    assert len(rows) == 3002 and "event: done" in answer.text
    written = txn.send("/*+ STREAM */ delete from accounts where id > 5 returning id")
    assert written.text.count("event: row") == 3000
    failing = txn.send("/*+ STREAM */ select 1 / (id - 2) from accounts order by id")
    assert '"code":"22012"' in failing.text
    error_of(txn.send("select 1"), 200, "25P02")
    txn.end()


def test_a_stream_is_part_of_what_was_read(bank: Client) -> None:
    txn = Transaction(bank)
    txn.send("/*+ STREAM */ select balance from accounts where id = 1")
    txn.do("update accounts set balance = 0 where id = 2")
    bank.query("update accounts set balance = 1 where id = 1")
    assert error_of(txn.commit(), 200, "40001")["conflict"]["statement"] == 0


def test_a_statement_as_text_names_its_transaction_in_a_header(bank: Client) -> None:
    txn = Transaction(bank)
    headers = {"Content-Type": "text/plain", "X-Transaction": txn.id}
    sql = b"update accounts set balance = 3 where id = 1 returning balance"
    answer = bank.call("POST", "/query", content=sql, headers=headers)
    assert answer.json()["rows"] == [{"balance": 3}]
    assert bank.rows("select balance from accounts where id = 1") == [[100]]
    assert txn.commit().json()["success"]
    headers["X-Transaction"] = "txn_unheard_of"
    gone(bank.call("POST", "/query", content=b"select 1", headers=headers))


def test_of_two_uses_at_once_the_second_waits_for_the_first(bank: Client) -> None:
    txn = Transaction(bank)
    txn.do("create table counter (n int)")
    txn.do("insert into counter values (0)")
    slow = "update counter set n = n + (select count(*) from generate_series(1, 20000)) / 20000"
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: txn.send(slow).json(), range(6)))
    assert all(each["success"] for each in answers)
    assert txn.rows("select n from counter") == [[6]]
    with ThreadPoolExecutor(4) as pool:
        commits = {answer.content for answer in pool.map(lambda _: txn.commit(), range(4))}
    assert len(commits) == 1 and b'"success":true' in commits.pop()


# --- whose it is, and for how long ---


def test_it_belongs_to_the_key_or_session_that_opened_it(bank: Client) -> None:
    session, database = bank.new_session(), bank.headers["X-Database"]
    other = Client(bank.server, bank.new_key()["key"], database=database)
    with_session = Client(bank.server, session["token"], database=database)
    txn, of_session = Transaction(bank), Transaction(with_session)
    txn.do("update accounts set balance = 0")
    for client in (other, with_session):
        path = f"/v1/transaction/{txn.id}"
        gone(client.get(path))
        gone(client.delete(path))
        gone(client.post(f"{path}/commit"))
        gone(client.query_response("select 1", transaction=txn.id))
    gone(bank.get(f"/v1/transaction/{of_session.id}"))
    assert of_session.rows("select sum(balance) from accounts") == [[150]]
    txn.commit()
    gone(other.post(f"/v1/transaction/{txn.id}/commit"))


def test_it_ends_with_its_key_and_its_database(bank: Client, admin: Client) -> None:
    made = bank.new_key()
    short = Client(bank.server, made["key"], database=bank.headers["X-Database"])
    txn = Transaction(short)
    before = open_now(admin)
    assert bank.delete(f"/v1/keys/{made['id']}").status_code == 204
    error_of(txn.send("select 1"), 401)
    eventually(lambda: open_now(admin) == before - 1, "it goes on without its key")
    assert admin.post("/v1/databases", {"name": "to-drop"}).status_code == 201
    kept = Transaction(Client(admin.server, admin.token, database="to-drop"))
    assert admin.delete("/v1/databases/to-drop").status_code == 204
    gone(kept.show())
    gone(kept.commit())


def open_now(admin: Client) -> int:
    return int(admin.metric("qserver_open_transactions"))


def test_its_record_tells_what_it_did(bank: Client) -> None:
    txn = Transaction(bank)
    fresh = txn.show().json()
    assert fresh["success"] and fresh["transaction"].keys() == RECORD | {
        "state", "statements", "rows_changed", "bytes"
    }  # fmt: skip
    txn.do("update accounts set balance = 0")
    txn.step("select 1", "insert into notes (text) values ('x')")
    found = txn.show().json()["transaction"]
    assert (found["state"], found["statements"], found["rows_changed"]) == ("active", 3, 3)
    assert found["bytes"] > fresh["transaction"]["bytes"]
    assert found["expires_at"] > fresh["transaction"]["expires_at"]
    created, expires = map(datetime.fromisoformat, (found["created_at"], found["expires_at"]))
    assert timedelta(seconds=59) < expires - created < timedelta(seconds=120)


def test_an_idle_one_is_gone(bank: Client) -> None:
    txn = Transaction(bank, idle_ms=1)
    eventually(lambda: txn.show().status_code == 404, "it stays open")
    gone(txn.send("select 1"))
    gone(txn.commit())
    for bad in (0, 600_001, "x", 1.5):
        error_of(bank.post("/v1/transaction/open", {"idle_ms": bad}), 400, "QS001")
    assert Transaction(bank, idle_ms=600_000).end().status_code == 204


def test_an_organization_has_a_hundred(organization: Client) -> None:
    many = [Transaction(organization) for _ in range(100)]
    answer = organization.post("/v1/transaction/open")
    error = error_of(answer, 429, "QS034")
    assert error["retryable"] is True and 1 <= int(answer.headers["Retry-After"]) <= 60
    assert many[0].end().status_code == 204
    Transaction(organization)


@pytest.mark.parametrize(
    "body", [{"unknown": 1}, {"read_only": 1}, {"database": 1}, [], {"as_of": True}]
)
def test_a_body_that_opens_nothing_is_400(admin: Client, body: Any) -> None:
    content = json.dumps(body).encode()
    error_of(admin.call("POST", "/v1/transaction/open", content=content), 400, "QS001")


def test_it_opens_on_the_database_that_is_named(bank: Client, admin: Client) -> None:
    assert Transaction(admin).record["database"] == "main"
    name = bank.headers["X-Database"]
    txn = Transaction(admin, database=name)
    assert txn.record["database"] == name
    assert txn.rows("select count(*) from accounts") == [[2]]
    error_of(admin.post("/v1/transaction/open", {"database": "nowhere"}), 404, "QS006")
    txn.end()


@pytest.mark.parametrize("name", ["x", "txn_", "txn_a_b", "txn_01_02_03", "txn_%C3%A4_1"])
def test_an_id_that_is_none_is_not_found(admin: Client, name: str) -> None:
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/commit")):
        gone(admin.call(method, f"/v1/transaction/{name}{path}"))


def test_a_request_names_one_transaction(bank: Client) -> None:
    one, two = Transaction(bank), Transaction(bank)
    for path, body in (("/v1/query", {"sql": DEBIT}), ("/v1/transaction", {"statements": [DEBIT]})):
        body = {**body, "transaction": one.id}
        answer = bank.post(path, body, headers={"X-Transaction": two.id})
        assert "two transactions" in error_of(answer, 400, "QS001")["message"]
        assert bank.post(path, body, headers={"X-Transaction": one.id}).json()["success"]
    assert [each.show().json()["transaction"]["statements"] for each in (one, two)] == [2, 0]


def test_prepared_statements_and_cursors_last_for_the_transaction(bank: Client) -> None:
    one = Transaction(bank)
    one.do("prepare debit (int, int) as update accounts set balance = balance - $1 where id = $2")
    assert one.do("execute debit(1, 2)")["affected_rows"] == 1
    one.do("declare c cursor for select id from accounts where id > $1 order by id", 1)
    assert one.rows("fetch c") == [[2]]
    assert one.rows("select name from pg_prepared_statements") == [["debit"]]
    assert one.rows("select name from pg_cursors") == [["c"]]
    one.do("close c")
    assert error_of(one.send("fetch c"), 200)["code"] == "34000"
    assert one.end().status_code == 204


def test_the_row_of_a_cursor_is_changed_step_by_step(bank: Client) -> None:
    one = Transaction(bank)
    one.do("declare c cursor for select balance from accounts where id > $1 order by id", 1)
    error = error_of(one.send("delete from accounts where current of c"), 200)
    assert error["code"] == "24000" and "FETCH" in error["hint"]
    one = Transaction(bank)
    one.do("declare c cursor for select balance from accounts where id > $1 order by id", 1)
    assert len(one.rows("fetch c")[0]) == 1
    change = "update accounts set balance = balance + $1 where current of c returning id"
    assert [one.rows(change, each) for each in (1, 2)] == [[[2]], [[2]]]
    one.do("delete from accounts where id = 2")
    assert one.rows(change, 3) == []
    assert one.end().status_code == 204
    error = error_of(bank.query_response("delete from accounts where current of c"), 200)
    assert error["code"] == "34000"


def test_a_request_alone_cannot_prepare(bank: Client) -> None:
    error = error_of(bank.query_response("prepare p as select 1"), 200)
    assert error["code"] == "0A000" and "needs a session" in error["message"]
    error = error_of(bank.query_response("declare c cursor for select 1"), 200)
    assert error["code"] == "25P01"
