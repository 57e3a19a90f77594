"""COPY over HTTP of bad data, or from the wrong caller: a clear error, and nothing is applied.

The data is good data in each format, cut off or changed at any byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any, Final
from urllib.parse import quote

import pytest

from tests.http1.serving import Answer, Client
from tests.sampling import NIGHTLY, SEED
from tests.web.served import ADMIN, Served, message, query, serving

COLUMNS: Final = {
    "id": "int primary key",
    "n": "text",
    "d": "date",
    "x": "numeric(8, 2)",
    "j": "jsonb",
    "b": "bytea",
    "l": "int[]",
    "u": "uuid",
    "t": "timestamptz",
    "f": "float8",
    "s": "interval",
    "o": "boolean",
}
FILL: Final = """insert into t select i, repeat(E'a\\t"\\n', i), date '2024-01-31' + i, i / 8.0,
    jsonb '{"a": [1, null]}', bytea '\\x00ff', array[i, null],
    ('00000000-0000-0000-0000-00000000000' || i)::uuid, timestamptz '2024-01-31 12:00Z',
    (i / 3.0)::float8, interval '1 month 2 days', i = 1 from generate_series(1, 3) i"""
FORMATS: Final = ("", "(format csv, header)", "(format binary)")
ODD_BYTES: Final = (b"\0", b"\xff", b"\x80", b"\\", b'"', b"\n", b"\r", b"\t", b".", b"1", b"")


async def ask(client: Client, data: bytes) -> Any:
    return json.loads((await client.ask(data)).body)


async def send(client: Client, options: str, data: bytes, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    address = f"/v1/copy?sql={quote(f'copy t from stdin {options}')}"
    return await ask(client, message("POST", address, data, ADMIN, named))


def _changed(data: bytes) -> Iterator[bytes]:
    """Cut off anywhere, and with another byte, or a few, anywhere."""
    for at in range(len(data)):
        yield data[:at]
        for odd in ODD_BYTES:
            yield data[:at] + odd + data[at + 1 :]
        yield data[:at] + b"\x7f\xff\xff\xff" + data[at + 4 :]


@pytest.mark.parametrize("options", FORMATS)
async def test_data_that_is_cut_or_changed_is_refused_as_a_whole_or_right(options: str) -> None:
    columns = ", ".join(f"{name} {sql_type}" for name, sql_type in COLUMNS.items())
    async with serving() as served, await served.client() as client:
        for sql in (f"create table t ({columns})", FILL):
            made = await ask(client, query(sql))
            assert made["success"], made
        address = f"/v1/copy?sql={quote(f'copy t to stdout {options}')}"
        data = (await client.ask(message("GET", address), "GET")).body
        await ask(client, query("delete from t"))
        cases = list(_changed(data))
        for case in cases if NIGHTLY else Random(SEED).sample(cases, 50):
            found = await send(client, options, case)
            rows = (await ask(client, query("select count(*)::int as n from t")))["rows"][0]["n"]
            if found["success"]:
                assert found["affected_rows"] == rows, case
                await ask(client, query("delete from t"))
            else:
                assert found["error"]["code"] != "XX000", (case, found)
                assert rows == 0 and found["error"]["message"], case


# --- the same answers as rows in bulk ------------------------------------------------------------

HEADS: Final[tuple[dict[str, str], ...]] = (
    {},
    {"X-Database": "gone"},
    {"X-Database": "aside"},
    {"X-Min-Version": "x"},
    {"Content-Encoding": "gzip"},
    {"Idempotency-Key": ""},
    {"Idempotency-Key": "x" * 300},
    {"Idempotency-Key": "k"},
    {"If-None-Match": "*"},
    {"Accept": "text/event-stream"},
)
PARAMETERS: Final = (
    "",
    "database=main",
    "database=aside",
    "database=gone",
    *(f"{name}=1" for name in ("max_affected", "if_version", "timeout_ms", "as_of", "branch")),
)
KEYS: Final[dict[str, dict[str, Any]]] = {
    "reads": {"scopes": ["data:read"]},
    "defines": {"scopes": ["data:read", "schema"]},
    "writes": {"scopes": ["data:write"]},
    "aside": {"scopes": ["data:write"], "databases": ["aside"]},
    "main": {"scopes": ["data:write"], "databases": ["main"]},
    "named": {"statements": {"add": "insert into t values (:id)"}},
}


async def _tokens(served: Served, client: Client) -> dict[str, str]:
    await served.admin("POST", "/v1/databases", {"name": "aside"})
    tokens = {"admin": ADMIN, "unknown": "svc_k_" + "0" * 16}
    for name, fields in KEYS.items():
        tokens[name] = (await served.admin("POST", "/v1/keys", {"name": name, **fields}))["key"]
    for name, parent, body in (
        ("narrowed", "admin", {"scopes": ["data:read"]}),
        ("browser", "named", {"bind": {"id": 1}}),
    ):
        made = await ask(client, message("POST", "/v1/session", body, tokens[parent]))
        tokens[name] = made["session"]["token"]
    made = await served.admin("POST", "/v1/signup", {"organization": "acme"})
    return tokens | {"acme": made["key"]}


@pytest.mark.half
async def test_copy_answers_what_rows_in_bulk_answer() -> None:
    async with serving() as served, await served.client() as client:
        await ask(client, query("create table t (id int primary key, n text)"))
        tokens = await _tokens(served, client)
        cases = [(token, head, "") for token in tokens for head in HEADS]
        cases += [(token, {}, given) for token in tokens for given in PARAMETERS]
        codes = set()
        for token, head, given in cases:
            named = {"Content-Type": "application/x-ndjson", **head}
            path, row = f"/v1/tables/t/rows?{given}".rstrip("?"), b'{"id": 1, "n": "x"}\n'
            bulk = await client.ask(message("POST", path, row, tokens[token], named))
            await ask(client, query("delete from t"))
            path = f"/v1/copy?sql=copy%20t%20from%20stdin&{given}".rstrip("&")
            if head.get("Idempotency-Key") == "k":
                head = {"Idempotency-Key": "l"}  # it names another request
            copied = await client.ask(message("POST", path, b"1\tx\n", tokens[token], head))
            assert _told(copied) == _told(bulk), (token, head, given)
            codes.add(_told(bulk)[:2])
            await ask(client, query("delete from t"))
        assert len(codes) > 6, codes


def _told(answer: Answer) -> tuple[int, str | None, list[str]]:
    found = json.loads(answer.body)
    code = None if found["success"] else found["error"]["code"]
    return answer.status, code, sorted(found)
