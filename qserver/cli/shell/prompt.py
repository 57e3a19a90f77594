"""The interactive prompt: edits and colours lines, and runs complete statements.

Enter runs a text that ends with a semicolon and otherwise begins a new line. Ctrl-C at the prompt
drops the line; while a statement runs it closes the connection, so that the server cancels the
statement. Only Ctrl-D and \\q leave.

Only its owner may read the history file: statements hold data.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import PostgresLexer

from qserver import __version__
from qserver.cli.shell.completion import SqlCompleter
from qserver.cli.shell.failures import StatementFailed
from qserver.cli.shell.script_text import ScriptText
from qserver.cli.shell.shell import Shell
from qserver.cli.splitting import is_whole
from qserver.errors import ProgramLimitExceeded, QserverError

_SPOKEN: Final = {"exit": "\\q", "quit": "\\q", "help": "\\?"}
"""Words that people type in a shell that they do not know yet."""


def converse(shell: Shell, environ: Mapping[str, str]) -> int:
    names = SqlCompleter()
    session: PromptSession[str] = PromptSession(
        history=_history(shell, environ),
        lexer=PygmentsLexer(PostgresLexer),
        completer=names,
        complete_while_typing=False,
        auto_suggest=AutoSuggestFromHistory(),
        multiline=Condition(lambda: _goes_on(shell, session.default_buffer.text)),
        prompt_continuation="...> ",
        enable_history_search=False,
    )
    shell.opens_transactions = True
    shell.say(f"qserver {__version__} at {shell.client.url}. \\? for help, \\q to leave.\n")
    rest = ""
    while not shell.is_over:
        try:
            _learn_names(shell, names)
            text = session.prompt(_mark(shell), default=rest and f"{rest}\n")
        except KeyboardInterrupt:
            rest = ""
            continue
        except EOFError:
            break
        rest = run_text(shell, _SPOKEN.get(text.strip().rstrip(";").lower(), text))
        while shell.edited is not None:
            rest = _edited(shell)
    shell.leave()
    return 0


def _mark(shell: Shell) -> str:
    past = "" if shell.as_of is None else f"@{shell.as_of}"
    skipped = "" if shell.conditions.is_active else " (skipping until \\endif)"
    return f"{shell.database}{past}{shell.mark}{skipped}> "


def run_text(shell: Shell, text: str) -> str:
    """Run the typed text; return what is left of it, the beginning of a statement.

    An error or Ctrl-C ends the text, not the shell.
    """
    shell.script = ScriptText(shell.standard_input.piece, typed=text + "\n")
    splitter = shell.script.splitter = shell.splitter()
    try:
        for piece in shell.script.texts():
            for statement in splitter.feed(piece):
                shell.take(statement)
                if shell.is_over:
                    return ""
    except StatementFailed as failure:
        shell.say(shell.failed(failure))
        return ""
    except ProgramLimitExceeded as error:
        shell.say(f"ERROR {error.code}: {error.message}\n")
        return ""
    except KeyboardInterrupt:
        shell.say("\nCancelled. If it was a write, it may have been applied or not.\n")
        return ""
    return "" if splitter.is_between_statements else splitter.withdraw().strip()


def _edited(shell: Shell) -> str:
    """Run what \\e brought back, as far as it is whole; return the rest."""
    text, shell.edited = shell.edited or "", None
    if text.strip():
        shell.say(text if text.endswith("\n") else f"{text}\n")
    return run_text(shell, text)


def _goes_on(shell: Shell, text: str) -> bool:
    """Whether Enter begins a new line of this statement."""
    if text.strip().lower() in _SPOKEN:
        return False
    try:
        return not is_whole(text, shell.variables.expanded)
    except ProgramLimitExceeded:
        return False


def _learn_names(shell: Shell, names: SqlCompleter) -> None:
    if shell.names_are_stale:
        try:
            answer = shell.client.tables()
        except QserverError:
            return  # keep the old names; the next statement reports the error
        names.know(answer["tables"])
        shell.database = answer["database"]
        shell.names_are_stale = False


def _history(shell: Shell, environ: Mapping[str, str]) -> History:
    path = history_path(environ)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Create it first: a file that FileHistory creates is readable by others.
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
    except OSError as error:
        shell.say(f"There will be no history: {path}: {error.strerror}\n")
        return InMemoryHistory()
    return FileHistory(path)


def history_path(environ: Mapping[str, str]) -> Path:
    state = environ.get("XDG_STATE_HOME")
    folder = Path(state) if state else Path.home() / ".local" / "state"
    return folder / "qserver" / "history"
