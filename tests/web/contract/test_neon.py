"""POST /sql, as Neon's serverless driver sends it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.web.contract import described
from tests.web.contract.servers import Client

DRIVER = {"Neon-Raw-Text-Output": "true", "Neon-Array-Mode": "true"}


def url(password: str, database: str) -> str:
    return f"postgresql://any:{quote(password)}@db.example.com/{quote(database)}?sslmode=require"


def sent(client: Client, body: Any, at: str | None = None, **headers: str) -> httpx.Response:
    """Send what the driver sends: key and database are in the connection string only."""
    where = at or url(str(client.token), client.headers["X-Database"])
    own = {"Neon-Connection-String": where, "Content-Type": "text/plain;charset=UTF-8"}
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    merged = {**DRIVER, **own, **more}
    answer = client.server.http.post("/sql", content=json.dumps(body), headers=merged)
    described.check("POST", "/sql", answer)
    return answer


def asked(client: Client, sql: str, *params: Any, **headers: str) -> dict[str, Any]:
    answer = sent(client, {"query": sql, "params": list(params)}, **headers)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def refused(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 400, answer.text
    error: dict[str, Any] = answer.json()
    assert error["severity"] == "ERROR"
    return error


def test_every_value_is_the_text_that_postgresql_shows(fresh: Client) -> None:
    values = {
        "1": ("1", 23),
        "2::bigint": ("2", 20),
        "1.50::numeric(5,2)": ("1.50", 1700),
        "true": ("t", 16),
        "null": (None, 25),
        "'\\x00ff'::bytea": ("\\x00ff", 17),
        "timestamptz '2024-01-02 03:04:05.678+00'": ("2024-01-02 03:04:05.678+00", 1184),
        "interval '1 year 2 days 3 hours'": ("1 year 2 days 03:00:00", 1186),
        "array[1, null]": ("{1,NULL}", 1007),
        "1e300::float8": ("1e+300", 701),
    }
    found = asked(fresh, f"select {', '.join(f'{each} as a' for each in values)}")
    assert found["rows"] == [[text for text, _ in values.values()]]
    fields = found["fields"]
    assert [each["dataTypeID"] for each in fields] == [oid for _, oid in values.values()]
    assert {each["name"] for each in fields} == {"a"}, "names stay as they are"
    assert fields[2]["dataTypeModifier"] == (5 << 16 | 2) + 4
    assert (found["command"], found["rowCount"], found["rowAsArray"]) == ("SELECT", 1, True)


def test_each_parameter_is_a_text_whose_place_decides(fresh: Client) -> None:
    fresh.query("create table t (a int, b bytea, j jsonb, l text[], d date)")
    params = ["7", "\\x00ff", '{"k": 1}', '{"1","x",NULL}', "2024-01-02"]
    sql = "insert into t values ($1, $2, $3, $4, $5) returning *"
    for _ in range(2):  # the second time by a known plan
        found = asked(fresh, sql, *params)
        assert found["rows"] == [["7", "\\x00ff", '{"k": 1}', "{1,x,NULL}", "2024-01-02"]]
        assert (found["command"], found["rowCount"]) == ("INSERT", 1)
    as_json = asked(fresh, sql, 7, None, {"k": 1}, ["1", 'a"b', None], None)
    assert as_json["rows"] == [["7", None, '{"k": 1}', '{1,"a\\"b",NULL}', None]]
    assert asked(fresh, "select $1 as v", "x")["fields"][0]["dataTypeID"] == 25
    for _ in range(2):
        assert asked(fresh, "select a from t where a = any($1)", ["7", "8"])["rowCount"] == 3


def test_rows_are_objects_and_values_json_for_who_asks_so(fresh: Client) -> None:
    sql = "select 1 as i, 2::bigint as n, true as b, '{\"a\": [1]}'::jsonb as j, array[1, null] l"
    plain = {"Neon_Raw_Text_Output": "false", "Neon_Array_Mode": "false"}
    (row,) = asked(fresh, sql, **plain)["rows"]
    assert row == {"i": 1, "n": "2", "b": True, "j": {"a": [1]}, "l": [1, None]}


def test_a_batch_is_one_transaction(fresh: Client) -> None:
    made = {"query": "create table t (a int primary key)"}
    row = {"query": "insert into t values ($1)", "params": ["1"]}
    read = {"query": "select a from t", "arrayMode": False}
    first, second, third = sent(fresh, {"queries": [made, row, read]}).json()["results"]
    assert (first["command"], first["rowCount"], first["fields"]) == ("CREATE", None, [])
    assert second["rowCount"] == 1 and third["rows"] == [{"a": "1"}]
    two = {"queries": [{"query": "insert into t values (2)"}, row]}
    error = refused(sent(fresh, two))
    assert (error["code"], error["constraint"]) == ("23505", "t_pkey")
    assert error["detail"] == "Key (a)=(1) already exists."
    assert fresh.query("select count(*) as n from t")["rows"] == [{"n": 1}]
    assert sent(fresh, {"queries": []}).json() == {"results": []}
    assert refused(sent(fresh, two, Neon_Batch_Read_Only="true"))["code"] == "25006"
    reads = {"queries": [read]}
    assert sent(fresh, reads, Neon_Batch_Isolation_Level="Serializable").status_code == 200
    chaos = sent(fresh, reads, Neon_Batch_Isolation_Level="Chaos")
    assert "isolation level" in refused(chaos)["message"]


@pytest.mark.parametrize(
    ("sql", "params", "code"),
    [
        ("select * from nope", [], "42P01"),
        ("select 1; select 2", [], "42601"),
        ("select 1", ["1"], "08P01"),
        ("select $1::int", [], "08P01"),
        ("select $1::int", ["x"], "22P02"),
        ("begin", [], "0A000"),
        ("", [], "42601"),
    ],
)
def test_every_error_of_a_statement_is_a_400_with_its_fields(
    fresh: Client, sql: str, params: list[str], code: str
) -> None:
    for _ in range(2):
        error = refused(sent(fresh, {"query": sql, "params": params}))
        assert error["code"] == code
        assert all(value is None or isinstance(value, str) for value in error.values())


def test_a_wrong_key_and_an_unknown_database_have_postgresqls_codes(fresh: Client) -> None:
    query = {"query": "select 1"}
    assert refused(sent(fresh, query, url("svc_k_wrong", "main")))["code"] == "28P01"
    gone = refused(sent(fresh, query, url(str(fresh.token), "nodb")))
    assert (gone["code"], gone["message"]) == ("3D000", 'database "nodb" does not exist')
    for text in ("nonsense", "postgresql://", "http://a:b@c/d"):
        answer = sent(fresh, query, text)
        assert answer.status_code == 401 and text not in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "body", [{}, [], {"query": 1}, {"query": "select 1", "queries": []}, {"queries": [1]}]
)
def test_a_body_that_is_none_is_refused(fresh: Client, body: Any) -> None:
    assert refused(sent(fresh, body))["code"] == "22023"


def test_many_rows_come_in_parts(fresh: Client) -> None:
    found = asked(fresh, "select n, repeat('x', 100) from generate_series(1, 20000) as n")
    assert found["rowCount"] == 20_000 == len(found["rows"])
    assert [found["rows"][0][0], found["rows"][-1][0]] == ["1", "20000"]


def test_a_repeated_key_is_applied_once(fresh: Client) -> None:
    fresh.query("create table t (a int)")
    body = {"query": "insert into t values ($1) returning a", "params": ["1"]}
    first, second = (sent(fresh, body, Idempotency_Key="k1") for _ in range(2))
    assert first.json() == second.json() and first.json()["rows"] == [["1"]]
    assert second.headers["Idempotency-Replayed"] == "true"
    assert fresh.query("select count(*) as n from t")["rows"] == [{"n": 1}]


def test_an_empty_batch_has_no_results_with_and_without_a_key(fresh: Client) -> None:
    for headers in ({}, {"Idempotency_Key": "none"}, {"Idempotency_Key": "none"}):
        answer = sent(fresh, {"queries": []}, **headers)
        assert (answer.status_code, answer.json()) == (200, {"results": []})


def test_a_step_of_an_open_transaction(fresh: Client) -> None:
    fresh.query("create table t (a int)")
    opened = fresh.post("/v1/transaction/open", {}).json()["transaction"]["id"]
    asked(fresh, "insert into t values ($1)", "1", X_Transaction=opened)
    assert asked(fresh, "select * from t", X_Transaction=opened)["rows"] == [["1"]]
    assert fresh.query("select * from t")["rows"] == []
    fresh.post(f"/v1/transaction/{opened}/commit", {})
    assert fresh.query("select * from t")["rows"] == [{"a": 1}]


_SCRIPT = """
import { neon, neonConfig } from '@neondatabase/serverless';
const [, , endpoint, url] = process.argv;
neonConfig.fetchEndpoint = endpoint;
const sql = neon(url);
const found = [];
await sql`CREATE TABLE posts (id serial PRIMARY KEY, body bytea, at timestamptz, tags text[])`;
found.push(await sql`INSERT INTO posts (body, at, tags)
    VALUES (${Buffer.from([0, 255])}, ${new Date(0)}, ${['a', null]}) RETURNING *`);
const update = sql`UPDATE posts SET tags = ${['b']}`;
found.push(await sql.transaction([update, sql`SELECT tags FROM posts`]));
try { await sql`SELECT * FROM nope`; } catch (error) { found.push(error.code); }
console.log(JSON.stringify(found));
"""


@pytest.mark.long
def test_the_driver_itself(fresh: Client, tmp_path: Path) -> None:
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    install = ["npm", "install", "--silent", "@neondatabase/serverless"]
    if subprocess.run(install, cwd=tmp_path, capture_output=True, timeout=300).returncode:
        pytest.skip("npm cannot install @neondatabase/serverless")
    (tmp_path / "try.mjs").write_text(_SCRIPT)
    where = url(str(fresh.token), fresh.headers["X-Database"])
    run = ["node", "try.mjs", f"{fresh.server.url}/sql", where]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    inserted, (_, read), code = json.loads(done.stdout)
    assert inserted[0]["body"]["data"] == [0, 255] and inserted[0]["tags"] == ["a", None]
    assert inserted[0]["at"] == "1970-01-01T00:00:00.000Z"
    assert read == [{"tags": ["b"]}] and code == "42P01"
