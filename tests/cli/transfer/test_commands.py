"""Files, errors and limits of export and import."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from threading import Thread

import pytest

from qserver.cli import main
from qserver.cli.shell.progress import bar
from qserver.cli.transfer.snapshot import snapshot
from qserver.client import Client
from tests.cli.databases import MakeClient


@pytest.fixture
def numbers(empty_database: MakeClient) -> Client:
    client = empty_database()
    client.query("CREATE TABLE numbers (n integer PRIMARY KEY, t text)")
    client.query("INSERT INTO numbers SELECT n, 'x' FROM generate_series(1, 1300) AS n")
    return client


def exported(client: Client, file: Path) -> Path:
    assert main(["export", str(file), "--database", str(client.database)]) == 0
    return file


def test_an_export_is_one_version_while_others_write(numbers: Client) -> None:
    """Rows that are added after the stream has begun are not in it, nor is a table half there."""
    with snapshot(numbers) as taken:
        first = next(taken.rows)
        with Client(numbers.url, "svc_k_0123456789abcdef0123", numbers.database) as other:
            other.query("INSERT INTO numbers VALUES (0, 'late')")
            other.query("CREATE TABLE late (n integer)")
        rows = [first, *taken.rows]
    assert len(rows) == taken.row_count == 1300
    assert [table.name for table in taken.tables] == ["numbers"]


@pytest.mark.long
def test_an_export_that_meets_changes_of_tables_begins_again(numbers: Client) -> None:
    """Tables come and go all the time; what is exported is always one of the states."""
    stop: list[bool] = []

    def change() -> None:
        with Client(numbers.url, "svc_k_0123456789abcdef0123", numbers.database) as other:
            while not stop:
                other.query("CREATE TABLE b (n integer)")
                other.query("ALTER TABLE b ADD COLUMN m integer")
                other.query("DROP TABLE b")

    thread = Thread(target=change)
    thread.start()
    try:
        for _ in range(10):
            with snapshot(numbers) as taken:
                defined = " ".join(taken.before)
                assert ("CREATE TABLE b" in defined) == ("b" in [t.name for t in taken.tables])
                assert sum(table.name == "numbers" for table, _ in taken.rows) == 1300
    finally:
        stop.append(True)
        thread.join()


def test_lines_of_json_can_be_read_by_anyone(numbers: Client, tmp_path: Path) -> None:
    lines = exported(numbers, tmp_path / "n.ndjson").read_text(encoding="utf-8").splitlines()
    head, first, *_, last = map(json.loads, lines)
    assert head["qserver_export"] == 1 and head["tables"][0]["table"] == "numbers"
    assert set(first) == {"table", "row"} and type(first["row"]["n"]) is int
    assert last == {"end": True, "rows": 1300}


def test_an_export_of_a_branch_is_its_newest_version_and_no_history(
    numbers: Client, empty_database: MakeClient, tmp_path: Path
) -> None:
    name = f"{numbers.database}-branch"
    numbers.create_database(name, numbers.database)
    numbers.query("DELETE FROM numbers WHERE n > 5", database=name)
    file, into = tmp_path / "branch.sql", empty_database()
    assert main(["export", str(file), "--database", name]) == 0
    assert main(["import", str(file), "--database", str(into.database)]) == 0
    numbers.delete_database(name)
    assert into.query("SELECT count(*) FROM numbers").rows == [(5,)]
    assert numbers.query("SELECT count(*) FROM numbers").rows == [(1300,)]
    assert "1300" not in file.read_text(encoding="utf-8"), "what was deleted is not in it"


def test_only_the_owner_may_read_an_export(numbers: Client, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        file = exported(numbers, tmp_path / "n.sql")
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_an_export_replaces_no_file_and_leaves_none_when_it_fails(
    numbers: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "n.sql").write_text("precious", encoding="utf-8")
    assert main(["export", str(tmp_path / "n.sql"), "--database", str(numbers.database)]) == 1
    assert "exists already" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "m.sql"), "--database", "nowhere"]) == 1
    assert main(["export", str(tmp_path / "no" / "m.sql")]) == 1
    assert "cannot write" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["n.sql"]


def test_a_key_that_may_only_read_can_export_and_not_import(
    numbers: Client,
    empty_database: MakeClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    key = numbers.create_key("reader", ["data:read"])["key"]
    file, name = str(tmp_path / "n.sql"), str(numbers.database)
    assert main(["export", file, "--database", name, "--key", key]) == 0
    target = str(empty_database().database)
    assert main(["import", file, "--database", target, "--key", key]) == 1
    assert "n.sql:3: ERROR" in capsys.readouterr().err


def test_an_export_goes_to_standard_output(
    numbers: Client, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["export", "-", "--database", str(numbers.database)]) == 0
    printed = capsysbinary.readouterr().out
    assert printed.startswith(b"-- qserver export")
    assert printed.endswith(b"-- end of the qserver export, 1300 rows\n")


@pytest.mark.parametrize("ending", ["sql", "ndjson"])
def test_an_import_stops_at_an_error_and_names_the_line(
    numbers: Client,
    empty_database: MakeClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    ending: str,
) -> None:
    file = exported(numbers, tmp_path / f"n.{ending}")
    target = empty_database()
    target.query("CREATE TABLE numbers (n integer)")
    assert main(["import", str(file), "--database", str(target.database)]) == 1
    said = capsys.readouterr().err
    line = 3 if ending == "sql" else 1
    assert f'n.{ending}:{line}: ERROR 42P07: relation "numbers" already exists' in said
    assert "0 statements before it were applied" in said
    assert target.query("SELECT count(*) AS n FROM numbers").rows == [(0,)]


def test_an_import_that_keeps_going_leaves_out_only_what_fails(
    numbers: Client,
    empty_database: MakeClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = exported(numbers, tmp_path / "n.ndjson")
    lines = file.read_text(encoding="utf-8").splitlines()
    lines.insert(1, '{"table":"numbers","row":{"n":"no number","t":"y"}}')
    file.write_text("\n".join(lines), encoding="utf-8")
    target = empty_database()
    options = ["import", str(file), "--database", str(target.database), "--keep-going"]
    assert main(options) == 1
    said = capsys.readouterr().err
    assert f"{file}:2: ERROR 22P02" in said
    assert said.endswith("1,301 statements, 1 failed.\n")
    assert target.query("SELECT count(*) AS n FROM numbers").rows == [(1300,)]


@pytest.mark.parametrize("ending", ["sql", "ndjson"])
def test_a_file_that_was_cut_off_is_noticed(
    numbers: Client,
    empty_database: MakeClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    ending: str,
) -> None:
    file = exported(numbers, tmp_path / f"n.{ending}")
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    file.write_text("".join(lines[:-1]), encoding="utf-8")
    target = empty_database()
    assert main(["import", str(file), "--database", str(target.database)]) == 1
    assert "the file is not whole" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "line 1 is not a line of an export"),
        ("SELECT 1;", "line 1 is not a line of an export"),
        ('{"qserver_export": 9, HEAD}', "written by a newer release"),
        ('{"qserver_export": 1, HEAD}\n{"table": "x", "row": {}}', "line 2: the first line knows"),
        ('{"qserver_export": 1, HEAD}\n{"table": "t", "row": {"x": 1}}', "t has no column 'x'"),
        ('{"qserver_export": 1, HEAD}\n{"table": "t", "row": {"a": []}}', "line 2: a value is"),
    ],
)
def test_lines_that_are_none_of_an_export_are_refused(
    empty_database: MakeClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    complaint: str,
) -> None:
    head = (
        '"release": "", "database": "", "version": 1, "before": [], "after": [], "tables":'
        ' [{"table": "t", "columns": ["a"], "types": ["integer"], "is_numbered": false}]'
    )
    file = tmp_path / "x.ndjson"
    file.write_text(text.replace("HEAD", head), encoding="utf-8")
    assert main(["import", str(file), "--database", str(empty_database().database)]) == 1
    assert complaint in capsys.readouterr().err


def test_what_is_not_there_cannot_be_imported(
    empty_database: MakeClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty_database()
    assert main(["import", str(tmp_path / "nothing.sql")]) == 1
    assert "cannot read" in capsys.readouterr().err


def test_the_bar_of_an_export_counts_rows() -> None:
    drawn = bar(2_500_000, None, 650, "rows", share=0.5)
    assert drawn == "[############------------]  50%  2.5 MB  650 rows"
