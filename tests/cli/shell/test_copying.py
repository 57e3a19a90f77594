"""\\copy as psql has it, in batches, and in open transactions, against the real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from qserver.cli import main
from qserver.cli.shell.commands import run_command
from qserver.cli.shell.prompt import run_text
from qserver.cli.shell.shell import Shell
from qserver.client import Client
from qserver.limits import TRANSACTION_STATEMENTS_MAX
from tests.cli.real_server import KEY

Talk = Callable[[str], str]


@pytest.fixture
def client(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.chdir(tmp_path)
    with Client(url, KEY, "copies") as client:
        client.create_database("copies")
        client.query("create table t (id int primary key, name text, raw bytea)")
        yield client
        client.delete_database("copies")


@pytest.fixture
def talk(client: Client) -> Talk:
    def talk(text: str) -> str:
        out: list[str] = []
        run_text(Shell(client, run_command, out.append, out.append), text)
        return "".join(out)

    return talk


def ids(client: Client) -> list[int]:
    return [row[0] for row in client.query("select id from t order by id").rows]


@pytest.mark.parametrize(
    "options",
    [
        "",
        "with (format csv, header)",
        "csv header delimiter ';'",
        "with (format text, null 'none')",
        "with (format binary)",
        "binary",
    ],
)
def test_what_goes_out_comes_in(client: Client, talk: Talk, options: str) -> None:
    client.query(
        "insert into t values (1, '', '\\x00ff'), (2, null, null), (3, E'a\\\\N\"\\n', '')"
    )
    before = client.query("select * from t order by id").rows
    assert talk(f"\\copy t to 'it''s.rows' {options};").startswith("COPY: ")
    client.query("delete from t")
    assert talk(f"\\copy t from 'it''s.rows' {options}") == "COPY 3\n"
    assert client.query("select * from t order by id").rows == before


def test_a_query_is_copied_to_standard_output_and_to_a_program(
    client: Client, talk: Talk, tmp_path: Path
) -> None:
    client.query("insert into t select n, 'ü' from generate_series(1, 3) n")
    query = "(select id, name from t where (id < 3) and 'a)' <> $$b)($$ order by 1)"
    wanted = "id,name\n1,ü\n2,ü\n"
    assert talk(f"\\copy {query} to stdout (format csv, header)") == wanted
    assert talk(f"copy {query} to stdout with csv header;") == wanted
    assert talk(f"\\copy {query} to program 'cat > \"a b.csv\"' csv header").startswith("COPY: ")
    assert (tmp_path / "a b.csv").read_text("utf-8") == wanted
    talk(f"\\o out.csv\n\\copy {query} to pstdout csv header\n\\o")
    assert (tmp_path / "out.csv").read_text("utf-8") == wanted


def test_rows_come_from_a_program_and_from_standard_input(
    client: Client, talk: Talk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a b.csv").write_text("id\n1\n2\n")
    assert talk("\\copy t (id) from program 'cat ''a b.csv''' csv header") == "COPY 2\n"
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"7\n8\n")))
    assert talk("\\copy t (id) from pstdin") == "COPY 2\n"
    assert "exit code 3" in talk("\\copy t (id) from program 'echo 9; exit 3'")
    assert ids(client) == [1, 2, 7, 8]


def test_rows_that_were_typed_are_read_before_standard_input(
    client: Client, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"3\n\\.\n4\n")))
    typed = ("COPY t (id) FROM stdin;", "1", "\\.", "\\copy t (id) from pstdin")
    assert talk("\n".join((*typed, "\\copy t (id) from stdin", "2"))) == "COPY 1\nCOPY 1\nCOPY 2\n"
    assert ids(client) == [1, 2, 3, 4]


def test_rows_behind_a_refused_copy_do_not_run(client: Client, talk: Talk) -> None:
    rows = "insert into t values (1);\n\\.\n"
    assert "older version" in talk(f"\\asof 1\ncopy t (id) from stdin;\n{rows}")
    assert "42P01" in talk(f"copy nowhere (id) from stdin;\n{rows}")
    assert ids(client) == []


def test_a_block_with_a_copy_is_an_open_transaction(
    client: Client, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "block.sql"
    options = ["sql", "--url", url, "--key", KEY, "-d", "copies", "-f", str(script)]

    def run(text: str, *more: str) -> tuple[int, str]:
        script.write_text(text)
        return main([*options, *more]), capsys.readouterr().err

    rows = "COPY t (id) FROM stdin;\n{}\n\\.\n"
    behind = "INSERT INTO t VALUES (3);\nCOMMIT;\nINSERT INTO t VALUES (4);\n"
    version = client.query("SELECT 1").version
    assert version is not None
    begun = "BEGIN;\nINSERT INTO t VALUES (1);\n"
    assert run(begun + rows.format(2) + behind) == (0, "COPY 1\n")
    assert ids(client) == [1, 2, 3, 4]
    assert client.query("SELECT 1").version == version + 2
    client.query("DELETE FROM t")

    code, said = run(begun + rows.format("5\nDELETE FROM t;") + behind, "--keep-going")
    assert code == 1 and f"{script}:3: ERROR 22P02" in said and "25P02" in said, said
    assert "It was rolled back" in said and ids(client) == [4]

    code, said = run(begun + begun[7:] + rows.format(2) + behind)
    assert code == 3 and f"{script}:3: ERROR 23505" in said and ids(client) == [4], said

    code, said = run(begun + rows.format(2))
    assert code == 3 and f"{script}:1: BEGIN without COMMIT" in said and ids(client) == [4], said


def test_a_block_that_failed_or_is_too_long_is_not_opened(client: Client, talk: Talk) -> None:
    rows = "COPY t (id) FROM stdin;\nINSERT INTO t VALUES (9);\n\\.\n"
    many = "INSERT INTO t VALUES (1);" * (TRANSACTION_STATEMENTS_MAX + 5)
    said = talk(f"BEGIN;{many}\n{rows}COMMIT;")
    assert f"at most {TRANSACTION_STATEMENTS_MAX}" in said, said
    out: list[str] = []
    shell = Shell(client, run_command, out.append, out.append)
    for text in ("BEGIN;", "SELECT 1 \\gset\n", rows, "COMMIT;"):
        run_text(shell, text)
    assert "a statement of the block failed" in "".join(out), out
    assert out[-1].startswith("ROLLBACK") and ids(client) == []


def test_rows_of_csv_go_in_batches(client: Client, talk: Talk, tmp_path: Path) -> None:
    rows = [f'{number},"one\n""two"" {number}\n"\n' for number in range(10)]
    (tmp_path / "rows.csv").write_text("id,name\n" + "".join(rows).rstrip("\n"))
    version = client.query("select 1").version
    assert version is not None
    assert talk("\\copy t from 'rows.csv' batch 4") == "COPY 10\n"
    found = client.query("select count(*), max(name) from t")
    assert found.rows == [(10, 'one\n"two" 9\n')]
    assert found.version == version + 3
    assert talk("\\copy t from 'rows.csv' csv on conflict update batch 3") == "COPY 10\n"
    (tmp_path / "rows.csv").write_text("id,name")
    assert talk("\\copy t from 'rows.csv' batch 4") == "COPY 0\n"


def test_a_batch_that_fails_says_what_is_in_the_table(
    client: Client, talk: Talk, tmp_path: Path
) -> None:
    lines = [f'{{"id": {number}}}' for number in range(6)] + ["", '{"id": "x"}']
    (tmp_path / "rows.ndjson").write_text("\n".join(lines))
    told = talk("\\copy t from 'rows.ndjson' batch 3")
    assert "row 7" in told.lower() and "first 6 rows of the file are in the table" in told, told
    assert ids(client) == list(range(6))
    (tmp_path / "rows.csv").write_text('id,name\n11,a\n12,"open\n')
    told = talk("\\copy t from 'rows.csv' batch 1")
    assert "first row of the file is in the table" in told, told
    assert ids(client) == [*range(6), 11]


def test_a_copy_is_part_of_an_open_transaction(client: Client, talk: Talk, tmp_path: Path) -> None:
    (tmp_path / "some.rows").write_text("1\n2\n")
    told = talk(
        """\\set BLOCKS off
        BEGIN;
        \\copy t (id) from 'some.rows' with (format text)
        \\copy t (id) to stdout
        ROLLBACK;
        \\copy t (id) to stdout with (null 'none')
        """
    )
    assert told.count("1\n2\n") == 1, told
    assert ids(client) == []
    told = talk(
        """\\set BLOCKS off
        BEGIN;
        \\copy t (id) from 'some.rows' with (format text)
        \\copy t (id) from 'some.rows' with (format text)
        """
    )
    assert "23505" in told, told
    assert ids(client) == []
    told = talk("BEGIN;\nINSERT INTO t VALUES (7);\n\\copy t (id) to stdout\nROLLBACK;\n")
    assert told.endswith("INSERT 0 1\n7\nROLLBACK\n"), told


def test_a_copy_reads_an_older_version(client: Client, talk: Talk) -> None:
    version = client.query("insert into t (id) values (1)").version
    client.query("insert into t (id) values (2)")
    assert talk(f"\\asof {version}\n\\copy t (id) to stdout").endswith("\n1\n")
    assert "only be read" in talk(f"\\asof {version}\n\\copy t (id) from 'x' with (format text)")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("\\copy t to 'x.csv' batch 3", "come in"),
        ("\\copy t from 'bad.csv' batch 0", "at least one"),
        ("\\copy t from 'bad.csv' json batch 2", "batches"),
        ("\\copy t from 'bad.csv' cvs", "42601"),
        ("\\copy t from 'nowhere.csv' csv header", "cannot read"),
        ("\\copy t to 'no/where.csv' csv header", "cannot write"),
        ("\\copy nothing to 'kept.csv' csv header", "42P01"),
        ("\\copy (select 1 to 'x.csv'", "not understood"),
        ("\\copy (select 1) from 'bad.csv'", "42601"),
        ("\\copy t from stdout", "other direction"),
        ("\\copy t to pstdin", "other direction"),
        ("\\copy t to stdout with (format binary)", "no text"),
        ("\\copy t to program 'exit 3'", "exit code 3"),
        ("\\copy t from program 'nothing-of-this-name'", "exit code 127"),
        ("copy t to stdout with (format nothing);", "22023"),
    ],
)
def test_a_mistake_is_told_and_changes_nothing(
    client: Client, talk: Talk, tmp_path: Path, wrong: str, reason: str
) -> None:
    for name in ("bad.csv", "kept.csv"):
        (tmp_path / name).write_text("id\n1\nx\n")
    assert reason in talk(wrong)
    assert ids(client) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv", "kept.csv"]
    assert (tmp_path / "kept.csv").read_text() == "id\n1\nx\n"
