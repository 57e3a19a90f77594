"""The text of a script is cut into statements and rows the same, however it arrives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from qserver.cli.shell.script_text import ScriptText
from qserver.cli.splitting import Splitter
from qserver.errors import InvalidRequest

SCRIPT = (
    "\ufeffSELECT 'ä';\nSELECT 2\n+ \\copy t from stdin\n1\tö\n\\.x\n\\.\n3;"
    " COPY t FROM stdin; SELECT 4;\r\n\\.\r\nSELECT 5;\nCOPY t FROM stdin;\n"
).encode()
ROWS = b"\xff\xfe\n\n\\.\\.\nlast"
FOUND = [
    (1, "SELECT 'ä'", None),
    (3, "\\copy t from stdin", b"1\t\xc3\xb6\n\\.x\n"),
    (2, "SELECT 2\n+ \n3", None),
    (7, "COPY t FROM stdin", b""),
    (8, "SELECT 4", None),
    (9, "SELECT 5", None),
    (10, "COPY t FROM stdin", ROWS),
]


def found(data: bytes, size: int, is_binary: bool = False) -> list[tuple[int, str, bytes | None]]:
    pieces: Iterator[bytes] = iter([data[at : at + size] for at in range(0, len(data), size)])
    text = ScriptText(lambda: next(pieces, b""))
    splitter = text.splitter = Splitter()

    def steps() -> Iterator[tuple[int, str, bytes | None]]:
        for piece in text.texts():
            for statement in splitter.feed(piece):
                has_rows = "stdin" in statement.text
                rows = b"".join(text.rows(is_binary)) if has_rows else None
                yield statement.line, statement.text, rows

    return list(steps())


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("end", [b"", b"\n\\.", b"\n\\.\r", b"\n\\.\n"])
def test_rows_are_those_up_to_their_end(size: int, end: bytes) -> None:
    kept = b"\n" if end else b""
    # What the lines of rows are counted as follows the rest of the line of their statement.
    wanted = [*FOUND[:-1], (10, "COPY t FROM stdin", ROWS + kept)]
    assert [each[1:] for each in found(SCRIPT + ROWS + end, size)] == [each[1:] for each in wanted]


def test_lines_of_rows_are_counted() -> None:
    lines = [line for line, text, _ in found(SCRIPT + ROWS, 1000) if not text.startswith("\\")]
    assert lines == [1, 5, 7, 8, 9, 10], lines


def test_binary_rows_go_to_the_end_of_everything() -> None:
    data = b"COPY t FROM stdin;\nPG\n\\.\n\0\xff\n\\.\n"
    assert found(data, 4, is_binary=True) == [(1, "COPY t FROM stdin", data[19:])]


def test_what_is_before_other_bytes_is_run_and_they_are_refused() -> None:
    text = ScriptText(iter([b"SELECT 1;\xff SELECT 2;", b""]).__next__)
    texts = text.texts()
    assert next(texts) == "SELECT 1;"
    with pytest.raises(InvalidRequest, match="not UTF-8"):
        next(texts)


def test_a_folder_is_no_script() -> None:
    def read() -> bytes:
        raise IsADirectoryError(21, "Is a directory")

    with pytest.raises(InvalidRequest, match="cannot be read: Is a directory"):
        next(ScriptText(read).texts())
