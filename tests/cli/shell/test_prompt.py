"""A person at the keyboard: through the toolkit's own pipe, and through a real terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from qserver.cli.shell.prompt import converse, history_path
from tests.cli.shell.shells import TABLES, Talk, talk
from tests.client.fake_server import (
    KEY,
    Answer,
    FakeServer,
    changed,
    error,
    event,
    stream,
    streamed,
)

ROOT = Path(__file__).parent.parent.parent.parent
PATIENCE_SECONDS = 240.0
PRESSING_SECONDS = 5.0


def typed(person: Talk, keys: str, folder: Path) -> str:
    """Type these keys at the prompt; all that was printed until the shell was left."""
    with create_pipe_input() as keyboard:
        with create_app_session(input=keyboard, output=DummyOutput()):
            keyboard.send_text(keys)
            assert converse(person.shell, {"XDG_STATE_HOME": str(folder)}) == 0
    return "".join(person.said + person.written)


def test_a_statement_is_run_when_its_semicolon_is_there(server: FakeServer, tmp_path: Path) -> None:
    server.answer("SELECT\n';'\n", streamed(["n"], ["integer"], [[1]]))
    with talk(server) as person:
        printed = typed(person, "SELECT\r';'\r;\r\\q\r", tmp_path)
    assert server.statements() == ["SELECT\n';'"]
    assert "\\? for help" in printed


def test_a_statement_goes_on_below_a_command(server: FakeServer, tmp_path: Path) -> None:
    server.answer("SELECT n\nFROM t", streamed(["n"], ["integer"], [[1]]))
    with talk(server) as person:
        typed(person, "SELECT n\r\\echo x\rFROM t;\r\\q\r", tmp_path)
    assert server.statements() == ["SELECT n\nFROM t"]


def test_exit_and_end_of_input_leave(server: FakeServer, tmp_path: Path) -> None:
    for keys in ("exit\r", "QUIT\r", "\x04"):
        with talk(server) as person:
            typed(person, keys, tmp_path)
    assert server.statements() == []


def test_control_c_at_the_prompt_throws_the_line_away(server: FakeServer, tmp_path: Path) -> None:
    with talk(server) as person:
        typed(person, "DROP TABLE users\x03SELECT 1;\r\\q\r", tmp_path)
    assert server.statements() == ["SELECT 1"]


def test_names_are_read_again_after_a_definition_only(server: FakeServer, tmp_path: Path) -> None:
    with talk(server) as person:
        typed(person, "SELECT 1;\rSELECT 2;\rCREATE TABLE t (a int);\r\\q\r", tmp_path)
    assert [each.path for each in server.requests].count("/tables") == 2


def opened_by(server: FakeServer) -> None:
    opened = {"success": True, "transaction": {"id": "txn_1", "version": 3}}
    server.route("POST", "/v1/transaction/open", Answer(opened, 201))
    committed = {"success": True, "version": 4, "affected_rows": 1, "timings": {}}
    server.route("POST", "/v1/transaction/txn_1/commit", Answer(committed))
    server.route("DELETE", "/v1/transaction/txn_1", Answer(status=204))


def test_begin_opens_a_transaction_in_which_statements_run_as_they_are_typed(
    server: FakeServer, tmp_path: Path
) -> None:
    opened_by(server)
    server.answer("DELETE FROM t", changed(2))
    text = "BEGIN;\rDELETE FROM t;\rROLLBACK TO SAVEPOINT a;\rCOMMIT;\rSELECT 1;\r\\q\r"
    with talk(server) as person:
        printed = typed(person, text, tmp_path)
    assert printed.index("BEGIN\n") < printed.index("DELETE 2\n") < printed.index("COMMIT\n")
    sent = [(each.path, each.body) for each in server.requests if each.path != "/tables"]
    assert sent[0] == ("/v1/transaction/open", {"idle_ms": 600_000})
    assert [body.get("transaction") for _, body in sent[1:3]] == ["txn_1"] * 2
    assert sent[3] == ("/v1/transaction/txn_1/commit", None)
    assert "transaction" not in sent[4][1]


def test_an_open_transaction_is_rolled_back_with_a_word(server: FakeServer, tmp_path: Path) -> None:
    opened_by(server)
    with talk(server) as person:
        printed = typed(person, "BEGIN;\rDELETE FROM t;\r\x04", tmp_path)
    assert "rolled back" in printed
    assert server.requests[-1].method == "DELETE"


def test_a_transaction_that_is_gone_is_left(server: FakeServer, tmp_path: Path) -> None:
    opened_by(server)
    gone = error("QS030", "transaction_not_found", "there is no open transaction", status=404)
    server.answer("DELETE FROM t", gone)
    with talk(server) as person:
        printed = typed(person, "BEGIN;\rDELETE FROM t;\rSELECT 1;\r\\q\r", tmp_path)
    assert "nothing of it was applied" in printed and "QS030" in printed
    assert "transaction" not in server.requests[-1].body


def test_the_history_lasts_and_only_its_owner_may_read_it(
    server: FakeServer, tmp_path: Path
) -> None:
    path = history_path({"XDG_STATE_HOME": str(tmp_path)})
    path.parent.mkdir(parents=True)
    path.touch(0o644)
    with talk(server) as person:
        typed(person, "SELECT 'once';\r\\q\r", tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with talk(server) as person:
        typed(person, "\x10\x10\r\x04", tmp_path)  # two lines up: \q, then the statement
    assert server.statements() == ["SELECT 'once'"] * 2


@pytest.mark.parametrize("begun", ["", "SELECT\r"])
def test_control_r_finds_what_was_typed(begun: str, server: FakeServer, tmp_path: Path) -> None:
    with talk(server) as person:
        typed(person, "SELECT\r'once';\rSELECT 'twice';\r\\q\r", tmp_path)
    with talk(server) as person:
        # Ctrl-C gives up. Enter takes what was found, and the second one runs it.
        typed(person, f"{begun}\x12wic\x03\x12nce\r\r\x04", tmp_path)
    assert server.statements() == ["SELECT\n'once'", "SELECT 'twice'", "SELECT\n'once'"]


def test_a_history_that_cannot_be_kept_does_not_stop_the_shell(
    server: FakeServer, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    with talk(server) as person:
        printed = typed(person, "SELECT 1;\r\\q\r", blocked)
    assert "no history" in printed
    assert server.statements() == ["SELECT 1"]


# --- a real terminal -----------------------------------------------------------------------------


class Terminal:
    """The master side of a terminal in which `qserver sql` runs."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self._master = master
        self.process = process
        self._seen = ""

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def expect(self, text: str, pressing: str = "") -> None:
        """Read until this is on the screen; what is after it is read by the next one.

        `pressing`: keys that are pressed again and again until then, as people do.
        """
        patience = PATIENCE_SECONDS
        while text not in self._seen:
            wait = PRESSING_SECONDS if pressing else patience
            ready, _, _ = select.select([self._master], [], [], wait)
            if not ready:
                patience -= wait
                assert patience > 0, f"{text!r} did not come; there is {self._seen!r}"
                self.type(pressing)
                continue
            piece = os.read(self._master, 65536).decode("utf-8", "replace")
            # The toolkit asks where the cursor is; a terminal would say.
            if "\x1b[6n" in piece:
                self.type("\x1b[1;1R")
            self._seen += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", piece)
        self._seen = self._seen.partition(text)[2]


@contextmanager
def terminal(server: FakeServer, folder: Path) -> Iterator[Terminal]:
    server.route("GET", "/tables", Answer(TABLES))
    master, slave = pty.openpty()
    environ = {
        **os.environ,
        "QSERVER_URL": server.url,
        "QSERVER_API_KEY": KEY,
        "XDG_STATE_HOME": str(folder),
        "TERM": "xterm",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "qserver", "sql"],
        cwd=ROOT,
        env=environ,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=_take_terminal,
    )
    os.close(slave)
    try:
        yield Terminal(master, process)
    finally:
        process.kill()
        process.wait()
        os.close(master)


def _take_terminal() -> None:
    """Make standard input the terminal of the new session, so that Ctrl-C becomes a signal.

    Tests may have been started in the background, where shells have it ignored.
    """
    import fcntl
    import termios

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.mark.long
def test_a_session_in_a_real_terminal(server: FakeServer, tmp_path: Path) -> None:
    server.answer("SELECT 41 + 1", streamed(["answer"], ["integer"], [[42]]))
    with terminal(server, tmp_path) as screen:
        screen.expect("main>")
        screen.type("SELECT 41 + 1;\r")
        screen.expect("     42\n(1 row)")
        screen.expect("main>")
        screen.type("TABLE use\t")
        screen.expect("TABLE use")
        screen.expect("rs")  # which Tab has added
        screen.type(";\r")
        screen.expect("main>")
        screen.type("\\q\r")
        assert screen.process.wait(PATIENCE_SECONDS) == 0
    assert server.statements() == ["SELECT 41 + 1", "TABLE users"]


@pytest.mark.long
def test_control_c_cancels_the_statement_and_not_the_shell(
    server: FakeServer, tmp_path: Path
) -> None:
    head = event("columns", {"columns": ["n"], "types": ["integer"], "version": 1})
    cancelled = threading.Event()
    server.answer("SELECT slow()", stream(head, lambda: _wait(cancelled)))
    server.answer("SELECT 1", streamed(["n"], ["integer"], [[1]]))
    with terminal(server, tmp_path) as screen:
        screen.expect("main>")
        screen.type("SELECT slow();\r")
        while "SELECT slow()" not in server.statements():
            assert screen.process.poll() is None
        screen.type("\x03")
        screen.expect("Cancelled.", pressing="\x03")
        cancelled.set()
        screen.expect("main>")
        screen.type("SELECT 1;\r")
        screen.expect("(1 row)")
        screen.expect("main>")
        screen.type("\x04")
        assert screen.process.wait(PATIENCE_SECONDS) == 0


def _wait(cancelled: threading.Event) -> None:
    assert cancelled.wait(PATIENCE_SECONDS)
