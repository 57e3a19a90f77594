"""`qserver import` of a plain dump of PostgreSQL, as pg_dump of release 16 writes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.cli import main
from qserver.cli.transfer.sql_text import Copy, Cut, Step, sql_steps
from qserver.client import Client
from qserver.query.copying.text import CopiedRow
from tests.cli.databases import MakeClient

HEAD = r"""--
-- PostgreSQL database dump
--

\restrict 9huQNnzFxFwc7vyZArIUo5zZ6tXm1lE23M7kaq8Unxn2hbIUWH1efPWBDKaldnk

SET statement_timeout = 0;
SET client_encoding = 'UTF8';
SELECT pg_catalog.set_config('search_path', '', false);
SET default_table_access_method = heap;

CREATE TYPE public.mood AS ENUM (
    'sad',
    'it''s; ok'
);
ALTER TYPE public.mood OWNER TO postgres;
"""
TABLES = r"""
CREATE TABLE public.authors (
    id bigint NOT NULL,
    name text NOT NULL,
    mood public.mood DEFAULT 'sad'::public.mood,
    tags text[],
    CONSTRAINT named CHECK ((length(name) > 0))
);
ALTER TABLE public.authors OWNER TO "the Owner";
COMMENT ON TABLE public.authors IS 'who; wrote';
ALTER TABLE public.authors ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.numbers
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.books (
    id integer NOT NULL,
    author bigint,
    slug text GENERATED ALWAYS AS (lower('X'::text)) STORED
);
CREATE SEQUENCE public.books_id_seq
    AS integer
    START WITH 1
    CACHE 1;
ALTER SEQUENCE public.books_id_seq OWNED BY public.books.id;
ALTER TABLE ONLY public.books ALTER COLUMN id SET DEFAULT nextval('public.books_id_seq'::regclass);
"""
ROWS = r"""
COPY public.authors (id, name, mood, tags) FROM stdin;
1	Ada	it's; ok	{a,"b c",NULL}
2	tab\there;\nline\\	\N	\N
\.


COPY public.books (id, author) FROM stdin;
7	1
8	\N
\.
"""
INSERTS = r"""
INSERT INTO public.authors OVERRIDING SYSTEM VALUE VALUES (1, 'Ada', 'it''s; ok', '{a,"b c",NULL}');
INSERT INTO public.authors OVERRIDING SYSTEM VALUE VALUES (2, 'tab	here;
line\', NULL, NULL);
INSERT INTO public.books VALUES (7, 1, DEFAULT);
INSERT INTO public.books VALUES (8, NULL, DEFAULT);
"""
TAIL = r"""
SELECT pg_catalog.setval('public.numbers', 2, true);
SELECT pg_catalog.setval('public.books_id_seq', 8, true);
ALTER TABLE ONLY public.authors
    ADD CONSTRAINT authors_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.books
    ADD CONSTRAINT books_author_fkey FOREIGN KEY (author) REFERENCES public.authors(id);
CREATE INDEX books_author ON public.books USING btree (author);
GRANT SELECT ON TABLE public.books TO PUBLIC;
\unrestrict 9huQNnzFxFwc7vyZArIUo5zZ6tXm1lE23M7kaq8Unxn2hbIUWH1efPWBDKaldnk
"""


def run(client: Client, path: Path, text: str, *more: str) -> int:
    path.write_text(text, encoding="utf-8")
    return main(["import", str(path), "--database", str(client.database), *more])


@pytest.mark.parametrize("rows", [ROWS, INSERTS], ids=["copy", "inserts"])
def test_a_dump_is_loaded(
    empty_database: MakeClient, tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: str
) -> None:
    client = empty_database()
    assert run(client, tmp_path / "d.sql", HEAD + TABLES + rows + TAIL) == 0
    assert ", 9 without effect here.\n" in capsys.readouterr().err
    assert client.query("SELECT id, name, mood, tags::text FROM authors ORDER BY id").rows == [
        (1, "Ada", "it's; ok", '{a,"b c",NULL}'),
        (2, "tab\there;\nline\\", None, None),
    ]
    assert client.query("SELECT * FROM books ORDER BY id").rows == [(7, 1, "x"), (8, None, "x")]
    added = client.query("INSERT INTO books DEFAULT VALUES RETURNING id")
    assert added.rows[0][0] > 8
    assert client.query("INSERT INTO authors (name) VALUES ('x') RETURNING id").rows[0][0] > 2


def test_what_a_dump_has_and_cannot_be_taken_is_listed_with_its_line(
    empty_database: MakeClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    function = "CREATE FUNCTION public.f() RETURNS integer\n LANGUAGE sql\n AS $$SELECT 1;$$;\n"
    bad = ROWS.replace("2\ttab", "2x\ttab")
    text = HEAD + function + TABLES + bad + TAIL
    client, path = empty_database(), tmp_path / "d.sql"
    assert run(client, path, text) == 1
    said = capsys.readouterr().err
    lines = text.splitlines()
    at = next(at for at, line in enumerate(lines, 1) if line.startswith("CREATE FUNCTION"))
    assert f"  {path}:{at}: " in said
    at = lines.index("COPY public.authors (id, name, mood, tags) FROM stdin;") + 1
    assert f'  {path}:{at}: row 2: invalid input syntax for type bigint: "2x"' in said
    assert said.endswith(", 3 failed.\n"), said
    found = client.query("SELECT (SELECT count(*) FROM authors), (SELECT count(*) FROM books)")
    assert found.rows == [(0, 2)]


def test_a_dump_can_stop_at_the_first_error(
    empty_database: MakeClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = HEAD + "CREATE FUNCTION f() RETURNS integer LANGUAGE sql AS '';\n" + TABLES
    assert run(empty_database(), tmp_path / "d.sql", text, "--stop-on-error") == 1
    said = capsys.readouterr().err
    assert "d.sql:17: ERROR" in said and "Imported" not in said


def test_a_dump_changes_no_table_that_was_there(
    empty_database: MakeClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither its rows nor its keys, nor the number of a sequence: those of others stay."""
    client, path = empty_database(), tmp_path / "d.sql"
    client.query("CREATE TABLE authors (id bigint, name text)")
    client.query("CREATE SEQUENCE books_id_seq START 1000")
    assert run(client, path, HEAD + TABLES + ROWS + TAIL) == 1
    assert "its table or sequence was not made, see line " in capsys.readouterr().err
    assert client.query("SELECT count(*) FROM authors").rows == [(0,)]
    assert client.query("SELECT nextval('books_id_seq')").rows == [(1000,)]
    assert client.query("SELECT count(*) FROM books").rows == [(2,)]


def test_rows_without_an_end_are_noticed(
    empty_database: MakeClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = (HEAD + TABLES + ROWS).rpartition("8\t")[0]
    assert run(empty_database(), tmp_path / "d.sql", cut) == 1
    line = cut.splitlines().index("COPY public.books (id, author) FROM stdin;") + 1
    assert f"the rows of COPY on line {line} have no end" in capsys.readouterr().err


def pieces(text: bytes, sizes: list[int]) -> Iterator[bytes]:
    at = 0
    while at < len(text):
        size = sizes.pop() if sizes else 64
        yield text[at : at + size]
        at += size


def read_all(given_pieces: list[bytes]) -> tuple[list[Step], list[CopiedRow], str | None]:
    parts = iter(given_pieces)
    steps: list[Step] = []
    rows: list[CopiedRow] = []
    try:
        for step in sql_steps(lambda _: next(parts, b"")):
            steps.append(Step(step.statement, step.last_line))
            if isinstance(step, Copy):
                rows += step.rows(step.copy.columns or ("a",))
    except Cut as error:
        return steps, rows, error.message
    return steps, rows, None


@given(st.lists(st.integers(1, 40)), st.booleans())
def test_a_text_is_read_the_same_however_it_is_cut(sizes: list[int], has_end: bool) -> None:
    end = "" if has_end else "COPY t FROM stdin;\n1\n"
    text = HEAD + TABLES + ROWS + TAIL + end
    found = read_all([text.encode()])
    assert found == read_all([*pieces(text.encode(), sizes)])
    steps, rows, complaint = found
    assert ("1", "Ada", "it's; ok", '{a,"b c",NULL}') in rows and len(rows) == 4 + (not has_end)
    assert (complaint is None) is has_end
    lines = text.splitlines()
    for step in steps:
        assert step.text.splitlines()[-1] in lines[step.last_line - 1]
