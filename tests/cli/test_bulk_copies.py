"""Rows in bulk by both clients and by the shell's \\copy, against the real server."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from qserver.cli.shell.commands import run_command
from qserver.cli.shell.prompt import run_text
from qserver.cli.shell.shell import Shell
from qserver.client import Client, TrioClient
from qserver.client.bulk import ROWS_AT_ONCE, Format
from qserver.errors import (
    IdempotencyMismatch,
    InvalidRequest,
    InvalidTextRepresentation,
    UndefinedColumn,
    UndefinedTable,
    UniqueViolation,
)
from tests.cli.real_server import KEY

TABLE = "create table {} (id int primary key, name text, price numeric, raw bytea, extra jsonb)"
ROWS: list[dict[str, Any]] = [
    {"id": 1, "name": "", "price": Decimal("1.50"), "raw": b"\0\xff", "extra": {"a": [1, None]}},
    {"id": 2, "name": None, "price": None, "raw": None, "extra": None},
    {"id": 3, "name": 'say "ü",\r\n', "price": Decimal("NaN"), "raw": b"", "extra": "text"},
]
SHOWN = [
    (1, "", "1.50", "AP8=", {"a": [1, None]}),
    (2, None, None, None, None),
    (3, 'say "ü",\r\n', "NaN", "", "text"),
]
FORMATS: tuple[Format, ...] = ("csv", "ndjson", "json")


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url, KEY, "bulk") as client:
        client.create_database("bulk")
        client.query(TABLE.format("t"))
        yield client
        client.delete_database("bulk")


def many(count: int) -> Iterator[tuple[int, str]]:
    for at in range(count):
        yield at, f"row {at}"


def test_rows_go_in_and_out_with_the_client(client: Client, tmp_path: Path) -> None:
    assert client.insert_rows("t", ROWS).affected_rows == 3
    with client.rows("t", order="id") as rows:
        assert rows.columns == ("id", "name", "price", "raw", "extra")
        assert list(rows) == SHOWN
    found = client.rows("t", columns=["id"], where="id > ?", params=[1], order="id desc", limit=1)
    assert list(found) == [(3,)]
    for format in FORMATS:
        path = tmp_path / f"rows.{format}"
        with path.open("wb") as file:
            assert client.save_rows("t", file, order="id") == file.tell()
        client.query("delete from t")
        with path.open("rb") as file:
            assert client.insert_file("t", file).affected_rows == 3
        assert client.query("select * from t order by id").rows == SHOWN, format
    text = (tmp_path / "rows.csv").read_text(encoding="utf-8")
    assert len(list(csv.reader(io.StringIO(text, newline="")))) == 4
    assert len(json.loads((tmp_path / "rows.json").read_text())) == 3


def test_many_rows_are_made_while_they_are_sent(client: Client) -> None:
    count = 3 * ROWS_AT_ONCE + 1
    done = client.insert_rows("t", many(count), ["id", "name"], idempotency_key="many")
    assert done.affected_rows == count and not done.replayed
    again = client.insert_rows("t", many(count), ["id", "name"], idempotency_key="many")
    assert again.replayed and again.version == done.version
    with pytest.raises(IdempotencyMismatch):
        client.insert_rows("t", many(5), ["id", "name"], idempotency_key="many")
    ignored = client.insert_rows("t", many(count + 2), ["id", "name"], on_conflict="ignore")
    assert ignored.affected_rows == 2


@pytest.mark.long
def test_what_is_wrong_is_raised_and_nothing_is_inserted(client: Client) -> None:
    with pytest.raises(UniqueViolation) as caught:
        client.insert_rows("t", [{"id": 1}, {"id": 2}, {"id": 1}])
    assert caught.value.row == 3
    with pytest.raises(InvalidTextRepresentation) as bad:
        client.insert_rows("t", ((each,) for each in ["x", *range(300_000)]), ["id"])
    assert bad.value.row == 1, "the answer comes before all rows are sent"
    for rows, columns in (
        ([(1, 2)], None),
        ([(1, 2)], ["id"]),
        (["ab"], ["id", "name"]),
        ([{"id": 1, "extra": object()}], None),
    ):
        with pytest.raises(InvalidRequest):
            client.insert_rows("t", rows, columns)

    def fails() -> Iterator[dict[str, int]]:
        yield from ({"id": at} for at in range(2 * ROWS_AT_ONCE))
        raise KeyError("the caller's own")

    with pytest.raises(KeyError):
        client.insert_rows("t", fails())
    for format in FORMATS:
        with pytest.raises(UndefinedTable):
            client.save_rows("nothing", io.BytesIO(), format)
        with pytest.raises(UndefinedColumn):
            client.save_rows("t", io.BytesIO(), format, columns=["what"])
    with pytest.raises(UndefinedTable):
        list(client.rows("nothing"))
    with pytest.raises(InvalidRequest, match="format"):
        client.insert_file("t", io.BytesIO(b"id\n1\n"))
    assert client.query("select count(*) from t").rows == [(0,)]
    assert client.insert_file("t", io.BytesIO(b"id,x\n1,2\n"), "csv", ["id"]).affected_rows == 1


@pytest.mark.long
async def test_the_trio_client_does_the_same(url: str, client: Client) -> None:
    async with TrioClient(url, KEY, "bulk") as other:
        assert (await other.insert_rows("t", ROWS)).affected_rows == 3
        async with other.rows("t", order="id") as rows:
            assert [row async for row in rows] == SHOWN
        for format in FORMATS:
            file = io.BytesIO()
            assert await other.save_rows("t", file, format) == len(file.getvalue())
            await other.query("delete from t")
            file.seek(0)
            assert (await other.insert_file("t", file, format)).affected_rows == 3
            with pytest.raises(UndefinedTable):
                await other.save_rows("nothing", io.BytesIO(), format)
        assert client.query("select * from t order by id").rows == SHOWN
        file = io.BytesIO()
        assert await other.copy_out("copy t to stdout", file) == len(file.getvalue())
        await other.query("delete from t")
        assert (await other.copy_in("copy t from stdin", file.getvalue())).affected_rows == 3
        assert client.query("select * from t order by id").rows == SHOWN
        done = await other.insert_rows("t", many(2000), ["id", "name"], on_conflict="update")
        assert done.affected_rows == 2000
        with pytest.raises(InvalidTextRepresentation):
            await other.insert_rows("t", (("x",) for _ in range(100_000)), ["id"])


def test_copy_goes_in_and_out_with_the_client(client: Client, tmp_path: Path) -> None:
    client.insert_rows("t", ROWS)
    for options in ("", "(format csv, header)", "(format binary)"):
        path = tmp_path / "rows"
        with path.open("wb") as file:
            assert client.copy_out(f"copy t to stdout {options}", file) == file.tell() > 0
        client.query("delete from t")
        with path.open("rb") as file:
            assert client.copy_in(f"copy t from stdin {options}", file).affected_rows == 3
        assert client.query("select * from t order by id").rows == SHOWN, options
    pieces = (b"%d\tx\n" % at for at in range(10, 5010))
    assert client.copy_in("copy t (id, name) from stdin", pieces).affected_rows == 5000
    once = {"idempotency_key": "once"}
    assert not client.copy_in("copy t (id) from stdin", b"7\n8\n", **once).replayed
    assert client.copy_in("copy t (id) from stdin", b"7\n8\n", **once).replayed
    with pytest.raises(UniqueViolation):
        client.copy_in("copy t (id) from stdin", b"9\n7\n")
    with pytest.raises(InvalidTextRepresentation):
        client.copy_in("copy t (id) from stdin", b"9\nnine\n")
    with pytest.raises(UndefinedTable):
        client.copy_out("copy nothing to stdout", io.BytesIO())
    assert client.query("select id from t where id = 9").rows == []


def test_copy_takes_part_in_an_open_transaction(client: Client) -> None:
    opened = client.open_transaction()["id"]
    client.copy_in("copy t (id) from stdin", b"1\n2\n", transaction=opened)
    inside, outside = io.BytesIO(), io.BytesIO()
    client.copy_out("copy t (id) to stdout", inside, transaction=opened)
    client.copy_out("copy t (id) to stdout", outside)
    assert (inside.getvalue(), outside.getvalue()) == (b"1\n2\n", b"")
    client.roll_back_transaction(opened)
    assert client.query("select count(*) from t").rows == [(0,)]


def talk(client: Client, text: str) -> str:
    """Type this into a shell; what it answers."""
    out: list[str] = []
    run_text(Shell(client, run_command, out.append, out.append), text)
    return "".join(out)


def test_the_shell_copies_files_in_and_out(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    client.insert_rows("t", ROWS)
    client.query('create table "Odd" (a int, "b c" text)')
    before = client.query("select * from t order by id").rows
    for name in ("a.csv", "a file's.ndjson", "a.json"):
        written = name.replace("'", "''")
        assert talk(client, f"\\copy t to '{written}';").startswith("COPY: ")
        client.query("delete from t")
        assert talk(client, f"\\copy T from '{written}'") == "COPY 3\n"
        assert client.query("select * from t order by id").rows == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a file's.ndjson",
        "a.csv",
        "a.json",
    ]
    assert talk(client, "\\copy t (id, name) to ids.data csv").startswith("COPY: ")
    assert (tmp_path / "ids.data").read_text().startswith("id,name\n")
    assert "23505" in talk(client, "\\copy t (id) from 'ids.data' csv")
    assert talk(client, "\\copy t (id) from 'ids.data' csv on conflict ignore") == "COPY 0\n"
    (tmp_path / "odd.csv").write_text("b c,a\nx,1\n")
    assert talk(client, '\\copy "Odd" ("b c", a) from \'odd.csv\'') == "COPY 1\n"
    assert client.query('select a, "b c" from "Odd"').rows == [(1, "x")]


def test_the_shell_tells_what_is_wrong_with_a_copy(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.csv").write_text("id\n1\nx\n")
    told = talk(client, "\\copy t from 'bad.csv'")
    assert "22P02" in told and "row 2" in told.lower(), told
    assert client.query("select count(*) from t").rows == [(0,)]
    (tmp_path / "kept.csv").write_text("mine")
    assert "42P01" in talk(client, "\\copy nothing to 'kept.csv'")
    assert (tmp_path / "kept.csv").read_text() == "mine"
    assert [path.name for path in tmp_path.glob("*.part")] == []
    for wrong, reason in (
        ("\\copy", "not understood"),
        ("\\copy t", "not understood"),
        ("\\copy t from", "not understood"),
        ("\\copy t, u from 'x.csv'", "not understood"),
        ("\\copy t from 'nowhere.csv'", "cannot read"),
        ("\\copy t to 'no/where.csv'", "cannot write"),
        ("\\copy t from 'x'", "cannot read"),
        ("\\copy t from 'x' batch 2", "format"),
        ("\\copy t to 'x.csv' on conflict ignore", "come in"),
    ):
        assert reason in talk(client, wrong), wrong
