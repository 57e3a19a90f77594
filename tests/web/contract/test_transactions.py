"""Section 4: statements that are applied together or not at all."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.web.contract.servers import Client, error_of


def send(client: Client, *statements: Any, **fields: Any) -> httpx.Response:
    return client.post("/v1/transaction", {"statements": list(statements), **fields})


def test_the_answer_has_one_result_for_each_statement_and_the_sum_of_their_rows(
    fresh: Client,
) -> None:
    found = fresh.transaction(
        "create table t (a int primary key)",
        {"sql": "insert into t values (?), (?)", "params": [1, 2]},
        {"sql": "update t set a = a + :more", "params": {"more": 10}},
        "select a from t order by a;",
    )
    assert found.keys() == {
        "success", "results", "affected_rows", "version", "retries", "timings"
    }  # fmt: skip
    assert found["timings"].keys() == {"total_us", "exec_us", "commit_us"}
    assert found["affected_rows"] == 4 and found["retries"] == 0
    assert [each["affected_rows"] for each in found["results"]] == [0, 2, 2, 0]
    for each in found["results"]:
        assert each.keys() == {"columns", "rows", "affected_rows", "timings", "types"}
    last = found["results"][-1]
    assert (last["columns"], last["types"]) == (["a"], ["integer"])
    assert last["rows"] == [{"a": 11}, {"a": 12}]
    assert fresh.query("select 1")["version"] == found["version"]


def test_a_failure_undoes_everything_and_names_the_statement(fresh: Client) -> None:
    fresh.query("create table t (a int primary key)")
    answer = send(
        fresh,
        "insert into t values (1)",
        "create table other (a int)",
        "insert into t values (1)",
        "insert into t values (2)",
    )
    error = error_of(answer, 200, "23505")
    assert answer.json()["results"] == []
    assert (error["statement"], error["table"], error["constraint"]) == (2, "t", "t_pkey")
    assert fresh.rows("select * from t") == []
    assert [each["name"] for each in fresh.get("/tables").json()["tables"]] == ["t"]


@pytest.mark.parametrize(
    ("statements", "status", "code", "index"),
    [
        (["select 1", "select * from nowhere"], 200, "42P01", 1),
        (["select 1", "select 1/0"], 200, "22012", 1),
        (["select 1", "selec 1"], 400, "42601", 1),
        (["select 1", "select 1; select 2"], 400, None, 1),
        (["", "select 1"], 400, None, 0),
        (["select 1", {"sql": "select ?", "params": []}], 400, None, 1),
        (["select 1", "/*+ STREAM */ select 1"], 400, "QS001", 1),
        (["select 1", " /*+stream*/select 1"], 400, "QS001", 1),
    ],
)
def test_every_error_names_its_statement_and_has_no_results(
    admin: Client, statements: list[Any], status: int, code: str | None, index: int
) -> None:
    answer = send(admin, *statements)
    assert error_of(answer, status, code)["statement"] == index
    assert answer.json()["results"] == []


@pytest.mark.parametrize(
    "sql", ["begin", "COMMIT", "rollback;", "start transaction", "end", "abort"]
)
def test_statements_that_control_transactions_are_refused(admin: Client, sql: str) -> None:
    answer = send(admin, "select 1", sql)
    error = error_of(answer, answer.status_code, "25001")
    assert error["statement"] == 1 and error["hint"]
    error = error_of(admin.query_response(sql), answer.status_code, "25001")
    assert "together" in error["hint"]


def test_savepoints_undo_a_part_of_the_statements(fresh: Client) -> None:
    fresh.query("create table t (a int primary key)")
    done = fresh.transaction(
        "insert into t values (1)",
        "savepoint a",
        "insert into t values (2)",
        "rollback to a",
        {"sql": "insert into t values ($1)", "params": [3]},
        "release a",
    )
    assert [each["affected_rows"] for each in done["results"]] == [1, 0, 1, 0, 1, 0]
    assert fresh.rows("select a from t order by a") == [[1], [3]]
    answer = send(fresh, "delete from t", "savepoint a", "release b")
    assert error_of(answer, 200, "3B001")["statement"] == 2
    for sql in ("savepoint a", "rollback to a", "release a"):
        error_of(fresh.query_response(sql), 200, "25P01")
    tried = fresh.transaction("savepoint a", "delete from t", "rollback to a", dry_run=True)
    assert tried["diff"] == []
    key = {"Idempotency-Key": "once"}
    body = {"statements": ["savepoint a", "insert into t values (9)", "release a"]}
    answers = [fresh.post("/v1/transaction", body, headers=key) for _ in range(2)]
    assert answers[0].content == answers[1].content
    assert fresh.rows("select a from t order by a") == [[1], [3], [9]]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"statements": []},
        {"statements": "select 1"},
        {"statements": [1]},
        {"statements": [{"sql": "select 1", "database": "main"}]},
        {"statements": [{"params": []}]},
        {"statements": ["select 1"], "sql": "select 1"},
        {"statements": ["select 1"], "params": [1]},
        {"statements": ["select 1"], "dry_run": "yes"},
        {"statements": ["select 1"] * 1001},
    ],
)
def test_a_body_that_is_not_a_transaction_is_400(admin: Client, body: Any) -> None:
    error_of(admin.post("/v1/transaction", body), 400, "QS001")


def test_a_thousand_statements_are_allowed(fresh: Client) -> None:
    fresh.query("create table t (a int)")
    inserts = [{"sql": "insert into t values (?)", "params": [each]} for each in range(1000)]
    assert fresh.transaction(*inserts)["affected_rows"] == 1000


def test_a_transaction_sees_its_own_writes_and_nobody_elses(fresh: Client) -> None:
    fresh.query("create table t (a int)")
    found = fresh.transaction("insert into t values (1)", "select count(*) as n from t")
    assert found["results"][1]["rows"] == [{"n": 1}]


def test_a_read_only_transaction_makes_no_version(fresh: Client) -> None:
    before = fresh.query("select 1")["version"]
    found = fresh.transaction("select 1", "select 2")
    assert (found["version"], found["affected_rows"]) == (before, 0)


def at_once(calls: int, call: Callable[[int], httpx.Response]) -> list[dict[str, Any]]:
    with ThreadPoolExecutor(calls) as pool:
        return [answer.json() for answer in pool.map(call, range(calls))]


def test_conflicts_are_retried_by_the_server_so_that_no_client_has_to(fresh: Client) -> None:
    fresh.query("create table counter (n int)")
    fresh.query("insert into counter values (0)")
    move = (
        "select sum(s) from generate_series(1, 3000) s",
        "update counter set n = n + 1",
        "select n from counter",
    )
    answers = [each for _ in range(3) for each in at_once(8, lambda _: send(fresh, *move))]
    assert [each["success"] for each in answers] == [True] * 24
    seen = sorted(each["results"][2]["rows"][0]["n"] for each in answers)
    assert seen == list(range(1, 25)), "each saw the effect of all before it"
    assert fresh.value("select n from counter") == 24
    assert sum(each["retries"] for each in answers) > 0, "they never met: the test shows nothing"


def test_with_max_retries_0_a_conflict_reaches_the_client_with_what_it_was_about(
    fresh: Client,
) -> None:
    fresh.query("create table counter (id int primary key, n int)")
    fresh.query("insert into counter values (7, 0)")
    move = ("update counter set n = n + 1 where id = 7",)
    slow = ("select count(*) from (select generate_series(1, 20000) g) s where g % 7 = 1",)
    answers: list[dict[str, Any]] = []
    for _ in range(20):
        answers += at_once(8, lambda _: send(fresh, *slow, *move, *slow, max_retries=0))
        if not all(each["success"] for each in answers):
            break
    failed = [each for each in answers if not each["success"]]
    assert failed, "they never met"
    assert fresh.value("select n from counter") == len(answers) - len(failed)
    for each in failed:
        error = each["error"]
        assert (error["code"], error["name"]) == ("40001", "serialization_failure")
        assert error["retryable"] is True and each["results"] == []
        conflict = error["conflict"]
        assert conflict["table"] == "counter"
        assert conflict["read_version"] < conflict["changed_version"]
        assert conflict.keys() >= {"table", "statement"} and {"key", "range"} & conflict.keys()


def test_write_skew_is_impossible(fresh: Client) -> None:
    fresh.query("create table doctors (name text primary key, on_call boolean)")
    fresh.query("insert into doctors values ('a', true), ('b', true)")

    def leave(number: int) -> httpx.Response:
        return send(
            fresh,
            "select count(*) from generate_series(1, 3000)",
            {
                "sql": "update doctors set on_call = false where name = ? and"
                " (select count(*) from doctors where on_call) > 1",
                "params": ["ab"[number]],
            },
        )

    answers = at_once(2, leave)
    assert [each["success"] for each in answers] == [True, True]
    assert fresh.value("select count(*) from doctors where on_call") == 1
