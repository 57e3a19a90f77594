"""`make recording`: a session in a terminal with a real server, as a picture that moves.

    COMMANDS ─► bash, beside a server ─► what was typed and answered, with its times ─► SVG

It shows what came, in the order in which it came. Typing is slower than it was, answers are not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from time import monotonic
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

PICTURE: Final = Path(__file__).parent.parent / "recording.svg"
KEY: Final = "svc_k_a_key_that_is_printed_once"
AUTHORIZED: Final = '-H "Authorization: Bearer $KEY"'


def query(body: str, options: str = "-s") -> str:
    return f"curl {options} $URL/v1/query {AUTHORIZED} -d '{body}'"


COMMANDS: Final = (
    query('{"sql": "CREATE TABLE users (id SERIAL PRIMARY KEY, name TEXT, score INT DEFAULT 0)"}'),
    query('{"sql": "INSERT INTO users (name) VALUES ($1), ($2)", "params": ["Ada", "Grace"]}'),
    "# A live query: a result, and then whatever changes of it",
    query('{"sql": "SELECT name, score FROM users WHERE score > 0", "live": true}', "-sN") + " &",
    query('{"sql": "UPDATE users SET score = 5 WHERE name = $1", "params": ["Grace"]}'),
    "# As it was before, and what a change would do",
    query('{"sql": "SELECT name, score FROM users ORDER BY id", "as_of": 3}'),
    query('{"sql": "DELETE FROM users WHERE score = 0", "dry_run": true}'),
    "# A copy to try things out, whatever its size",
    f'curl -s $URL/v1/databases {AUTHORIZED} -d \'{{"name": "try", "branch_of": "main"}}\'',
)

COLUMNS: Final = 96
LINES: Final = 30
TYPED_SECONDS: Final = 0.012
"""For one character."""
READ_SECONDS: Final = 1.2
"""After an answer."""
QUIET_SECONDS: Final = 0.4
"""An answer that has come is followed by nothing for so long."""
PATIENCE_SECONDS: Final = 60.0
"""For the first of an answer."""
SHOWN_SECONDS: Final = 4.0
"""At the end, before it begins again."""

TITLE: Final = (
    "A terminal: a table, a live query, an older version, a dry run and a branch with curl"
)
LINE_PIXELS: Final = 18
CHARACTER_PIXELS: Final = 7.8
MARGIN_PIXELS: Final = 16
COLORS: Final = {"typed": "#e6edf3", "remark": "#7ee787", "answer": "#9fb4c8"}


class Shown(NamedTuple):
    """A piece of text that appears at a moment; the first of a line begins it."""

    seconds: float
    line: int
    column: int
    text: str
    kind: str


# --- the session ---------------------------------------------------------------------------------


@contextmanager
def server() -> Iterator[str]:
    """A new server; its address, which its first line tells when it serves."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "qserver", "serve", "--data", folder, "--port", "0"],
            env={**os.environ, "QSERVER_API_KEY": KEY},
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stderr is not None
            yield process.stderr.readline().split()[3].rstrip(",")
        finally:
            process.terminate()
            process.communicate()


def record(commands: Sequence[str]) -> Iterator[tuple[str, str, float]]:
    """Run commands one after the other; yield what was typed or answered, and how long it took."""
    with server() as url, tempfile.TemporaryDirectory() as home:
        (Path(home) / ".curlrc").write_text('write-out = "\\n"\n')  # each answer ends its line
        shell = subprocess.Popen(
            ["bash", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": home, "KEY": KEY, "URL": url},
        )
        came: Queue[bytes] = Queue()
        reading = Thread(target=_read, args=[shell, came])
        with shell:
            reading.start()
            for command in commands:
                yield ("remark" if command.startswith("#") else "typed"), command, 0.0
                began = monotonic()
                _type(shell, command)
                if not command.startswith("#"):
                    answer = came.get(timeout=PATIENCE_SECONDS)
                    took = monotonic() - began
                    with suppress(Empty):
                        while True:
                            answer += came.get(timeout=QUIET_SECONDS)
                    yield "answer", answer.decode(), took
            _type(shell, "kill $(jobs -p)\nexit")
            reading.join()


def _type(shell: subprocess.Popen[bytes], command: str) -> None:
    assert shell.stdin is not None
    shell.stdin.write(f"{command}\n".encode())
    shell.stdin.flush()


def _read(shell: subprocess.Popen[bytes], came: Queue[bytes]) -> None:
    assert shell.stdout is not None
    while part := os.read(shell.stdout.fileno(), 65_536):
        came.put(part)


# --- the picture ---------------------------------------------------------------------------------


def wrapped(text: str) -> Iterator[str]:
    for line in text.rstrip().split("\n"):
        for begin in range(0, max(len(line), 1), COLUMNS):
            yield line[begin : begin + COLUMNS]


def laid_out(record: Iterator[tuple[str, str, float]]) -> tuple[list[Shown], float]:
    """What appears where and when, and how long all of it takes."""
    shown: list[Shown] = []
    seconds, line = 0.5, 0
    for kind, text, took in record:
        if kind == "answer":
            seconds += took
            for part in wrapped(text):
                shown.append(Shown(seconds, line, 0, part, kind))
                line += 1
            line += 1
            seconds += READ_SECONDS
            continue
        for part in wrapped(f"$ {text}"):
            column = 0
            for word in words_of(part):
                shown.append(Shown(seconds, line, column, word, kind))
                column += len(word)
                seconds += len(word) * TYPED_SECONDS
            line += 1
    return shown, seconds + SHOWN_SECONDS


def words_of(line: str) -> Iterator[str]:
    """The words of a line, each with the space behind it: what appears together."""
    words = line.split(" ")
    yield from (f"{word} " for word in words[:-1])
    yield words[-1]


def picture(shown: Sequence[Shown], seconds: float) -> str:
    """An SVG that plays and begins again; where nothing may move, it shows the end."""
    width = int(COLUMNS * CHARACTER_PIXELS) + 2 * MARGIN_PIXELS
    height = LINES * LINE_PIXELS
    numbers = {
        moment: number for number, moment in enumerate(sorted({each.seconds for each in shown}))
    }
    texts = [
        f'<text class="m{numbers[each.seconds]} {each.kind}"'
        f' x="{MARGIN_PIXELS + each.column * CHARACTER_PIXELS:.1f}"'
        f' y="{(each.line + 1) * LINE_PIXELS - 5}"'
        f' textLength="{len(each.text) * CHARACTER_PIXELS:.1f}">{escape(each.text)}</text>'
        for each in shown
        if each.text.strip()
    ]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img"'
        f' viewBox="0 0 {width} {height + 2 * MARGIN_PIXELS}">',
        f"<title>{TITLE}</title>",
        *("<style>", *rules(shown, seconds, numbers), "</style>"),
        f'<rect width="{width}" height="{height + 2 * MARGIN_PIXELS}" rx="8" fill="#0d1117"/>',
        f'<svg y="{MARGIN_PIXELS}" width="{width}" height="{height}"><g class="all">',
        *texts,
        "</g></svg></svg>",
    ]
    return "\n".join(lines) + "\n"


def rules(shown: Sequence[Shown], seconds: float, numbers: dict[float, int]) -> Iterator[str]:
    """The styles: when each piece appears, and how far all of it has moved up by then."""
    yield "text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre}"
    yield from (f".{kind}{{fill:{color}}}" for kind, color in COLORS.items())
    steps, moved = ["0%{transform:translateY(0)}"], 0
    for each in shown:
        beyond = (each.line + 1 - LINES) * LINE_PIXELS
        if beyond > moved:
            moved = beyond
            steps.append(f"{100 * each.seconds / seconds:.2f}%{{transform:translateY({-moved}px)}}")
    yield f".all{{transform:translateY({-moved}px)}}"
    playing = f"{seconds:.1f}s step-end infinite"
    yield "@media (prefers-reduced-motion:no-preference){"
    yield f".all{{animation:up {playing}}}"
    yield from (f".m{number}{{animation:m{number} {playing}}}" for number in numbers.values())
    yield "}"
    yield f"@keyframes up{{{''.join(steps)}}}"
    for moment, number in numbers.items():
        percent = 100 * moment / seconds
        yield f"@keyframes m{number}{{0%{{fill-opacity:0}}{percent:.2f}%{{fill-opacity:1}}}}"


def made(commands: Sequence[str] = COMMANDS) -> str:
    return picture(*laid_out(record(commands)))


if __name__ == "__main__":
    PICTURE.write_text(made(), encoding="utf-8")
