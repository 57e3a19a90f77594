"""What lasts between statements of one shell: settings, variables, versions, branches."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from qserver.cli.shell.commands import run_command
from qserver.cli.shell.prompt import run_text
from qserver.cli.shell.shell import Shell
from qserver.errors import QserverError
from tests.cli.databases import MakeClient, empty_database
from tests.cli.shell.shells import Talk

__all__ = ["empty_database"]


@pytest.fixture
def person(empty_database: MakeClient) -> Iterator[Talk]:
    written: list[str] = []
    said: list[str] = []
    pauses: list[float] = []
    shell = Shell(empty_database(), run_command, written.append, said.append, pauses.append)
    shell.learn_database()
    shell.opens_transactions = True
    yield Talk(shell, written, said, pauses)
    shell.output.redirect(None)


def rows(person: Talk, sql: str) -> str:
    person.run("\\pset format unaligned \\t on")
    shown = person.run(f"{sql};")
    person.run("\\pset format aligned \\t off")
    return shown.strip()


def test_a_setting_holds_until_it_is_reset(person: Talk) -> None:
    assert person.run("SET timezone TO 'Asia/Tokyo';") == "SET\n"
    assert rows(person, "SELECT TIMESTAMPTZ '2030-01-01 12:00Z'::text") == "2030-01-01 21:00:00+09"
    person.run("SET search_path TO a, public;")
    assert rows(person, "SHOW search_path") == "a, public"
    person.run("RESET timezone;")
    assert rows(person, "SHOW timezone") == "UTC"
    assert rows(person, "SHOW search_path") == "a, public"
    person.run("RESET ALL;")
    assert rows(person, "SHOW search_path") == '"$user", public'


def test_a_setting_of_a_transaction_lasts_only_if_it_is_committed(person: Talk) -> None:
    person.run("BEGIN; SET search_path TO a; ROLLBACK;")
    assert rows(person, "SHOW search_path") == '"$user", public'
    person.run("BEGIN; SET search_path TO b; COMMIT;")
    assert rows(person, "SHOW search_path") == "b"
    person.run("BEGIN; SET LOCAL search_path TO c; COMMIT;")
    assert rows(person, "SHOW search_path") == "b"


def test_a_statement_that_failed_sets_nothing_and_is_told(person: Talk) -> None:
    assert "42704" in person.run("SET nothing_such TO 1;")
    person.run("SELECT 1/0;")
    assert person.run("\\echo :ERROR :SQLSTATE :LAST_ERROR_MESSAGE") == (
        "true 22012 division by zero\n"
    )
    person.run("SELECT 1 UNION SELECT 2;")
    assert person.run("\\echo :ERROR :SQLSTATE :ROW_COUNT") == "false 00000 2\n"
    assert "CONDITION: division_by_zero" in person.run("\\errverbose")


def test_variables_are_texts_literals_and_names(person: Talk) -> None:
    person.run("\\set v 'it''s'\n\\set n 'a \"b\"'")
    assert rows(person, "SELECT :'v' AS :\"n\", (ARRAY[1,2,3])[1:2], ':v', :{?v}, :{?w}") == (
        "it's|{1,2}|:v|t|f"
    )
    assert "42703" in person.run('SELECT :"v";')
    assert person.run("\\unset v\n\\echo :v :'v'") == ":v :'v'\n"


def test_variables_of_the_system_are_set_and_read(
    person: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL_TEST", "")
    person.run("\\setenv SHELL_TEST 'it''s'\n\\getenv v SHELL_TEST")
    assert rows(person, "SELECT :'v'") == "it's"
    person.run("\\setenv SHELL_TEST\n\\getenv v SHELL_TEST")
    assert "SHELL_TEST" not in os.environ
    assert rows(person, "SELECT :'v'") == "it's"


def test_the_time_is_told_below_a_grid(person: Talk) -> None:
    printed: list[str] = []
    shell = person.shell
    told = Shell(shell.client, run_command, printed.append, printed.append)
    run_text(told, "\\timing\nSELECT 1 AS a, 2 AS b, 3 AS c \\crosstabview\n")
    assert re.search(r"\(1 row\)\n\nTime: [\d.]+ ms\n$", "".join(printed))


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("\\setenv A=B 1", "without ="),
        ("\\getenv v", "needs the names"),
        ("\\set a-b 1", "invalid variable name"),
        ("\\set ON_ERROR_STOP maybe", "A Boolean is expected"),
        ("\\set AUTOCOMMIT off", "BEGIN opens a transaction"),
        ("\\echo 'a", "unterminated quoted string"),
        ("\\endif", "no matching \\if"),
        ("\\pset border 7", "Choose 0, 1 or 2"),
        ("\\pset nothing", "unknown option"),
        ("\\dt a.b.c.d", "too many dotted names"),
        ("\\dt x.b.c", "cross-database references"),
        ("\\d nothing", 'Did not find any relation named "nothing"'),
        ("\\dt nothing", 'Did not find any relation named "nothing"'),
        ("\\sf nothing", "nothing"),
        ("\\gx", "needs a statement"),
        ("\\watch x", "\\live follows"),
        ("SELECT 1 WHERE false \\gset", "no rows returned"),
        ("SELECT 1, 2 \\crosstabview", "at least three columns"),
        ("SELECT 1 AS a, 2 AS b, 3 AS c \\crosstabview a x", "column name not found"),
        ("\\dtt+z", "invalid command"),
        ("\\prnt", "Did you mean \\print?"),
        ("\\h frobnicate", "no help available"),
    ],
)
def test_what_is_wrong_is_told(person: Talk, typed: str, told: str) -> None:
    assert told in person.run(typed)
    assert rows(person, "SELECT 1") == "1"


def test_watch_runs_the_statement_again(person: Talk) -> None:
    def pause(seconds: float) -> None:
        person.pauses.append(seconds)
        if len(person.pauses) == 2:
            raise KeyboardInterrupt

    person.shell.pause = pause
    shown = person.run("SELECT 41 + 1 AS n \\watch 3")
    assert shown.count(" 42\n") == 2 and "(every 3s)" in shown
    assert person.pauses == [3.0, 3.0]


def test_a_result_goes_to_a_file_and_to_a_program(person: Talk, tmp_path: Path) -> None:
    path = tmp_path / "a b.txt"
    assert person.run(f"SELECT 7 AS n \\g (format=csv) '{path}'") == ""
    assert path.read_text(encoding="utf-8") == "n\n7\n"
    person.run(f"SELECT 8 AS n \\g (format=csv) | tr 8 9 > '{path}'")
    assert path.read_text(encoding="utf-8") == "n\n9\n"
    assert "cannot write to" in person.run(f"SELECT 1 \\g {tmp_path}")
    person.run(f"SELECT 1;\n\\w '{path}'")
    assert path.read_text(encoding="utf-8") == "SELECT 1;\n"


def test_a_branch_is_made_of_the_version_that_is_read(person: Talk) -> None:
    shell = person.shell
    person.run("CREATE TABLE t (n integer PRIMARY KEY);")
    person.run("INSERT INTO t VALUES (1);")
    (version,) = (each["version"] for each in shell.client.versions(shell.database, 1))
    person.run("INSERT INTO t VALUES (2);")
    assert f"| {version + 1} |" in person.run("\\a\\f ' | '\\diff").replace("\n", " | ")
    person.run("\\a")
    assert '{"n": 2}' in person.run(f"\\diff {version}")
    branch, parent = f"{shell.database}_branch", shell.database
    person.run(f"\\asof {version}")
    try:
        assert f"a branch of {parent} at version {version}" in person.run(f"\\branch {branch}")
        assert f" {branch} " in person.run("\\branch")
        person.run(f"\\c {branch}")
        assert rows(person, "SELECT n FROM t") == "1"
        assert '{"n": 2}' in person.run(f"\\diff of {parent}")
        assert " | 0 | 0 | 0 | 1\n" in person.run(f"\\a\\diff count of {parent}")
        assert " | 0 | " not in person.run(f"\\diff count of {parent} {version}")
        person.run("\\a")
        assert "needs a database" in person.run("\\diff of")
        person.run(f"\\c {parent}")
        assert rows(person, "SELECT count(*) FROM t") == "2"
    finally:
        shell.client.delete_database(branch)
    with pytest.raises(QserverError):
        shell.use_database(branch)
    assert shell.client.database == parent
