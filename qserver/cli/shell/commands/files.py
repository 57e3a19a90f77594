"""Commands about files, programs and databases: \\i, \\o, \\w, \\e, \\copy, \\!, \\cd, \\c, \\q."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

from qserver.cli.shell.commands.call import Call, Command
from qserver.cli.shell.copying import copy
from qserver.cli.shell.copying_in_bulk import plain_name
from qserver.cli.shell.scripts import run_file
from qserver.errors import InvalidRequest

_EDITORS: Final = ("QSERVER_EDITOR", "PSQL_EDITOR", "EDITOR", "VISUAL")
_EDITOR_DEFAULT: Final = "vi"


def _include(call: Call) -> None:
    path = Path(call.needed("the name of a file")).expanduser()
    if call.name in ("\\ir", "\\include_relative") and call.shell.file_folder is not None:
        path = Path(call.shell.file_folder) / path
    run_file(call.shell, path)


def _output(call: Call) -> None:
    place = call.line if call.line.startswith("|") else call.word()
    call.shell.output.redirect(place or None)
    call.shell.note(f"Results go to {place or 'the terminal'}.\n")


def _write(call: Call) -> None:
    name = call.needed("the name of a file")
    text = call.statement().text
    try:
        Path(name).expanduser().write_text(f"{text};\n", encoding="utf-8")
    except OSError as error:
        raise InvalidRequest(f"cannot write to {name}: {error.strerror}") from error


def _edit(call: Call) -> None:
    shell, name = call.shell, call.word()
    if name:
        shell.edited = _edited(Path(name).expanduser())
        return
    text = "" if call.before is None and shell.last_statement is None else call.statement().text
    with NamedTemporaryFile("w", suffix=".sql", prefix="qserver-", encoding="utf-8") as file:
        file.write(f"{text}\n" if call.before is not None or not text else f"{text};\n")
        file.flush()
        shell.edited = _edited(Path(file.name))


def _edited(path: Path) -> str:
    command = next((os.environ[each] for each in _EDITORS if os.environ.get(each)), _EDITOR_DEFAULT)
    done = subprocess.run([*command.split(), str(path)], check=False)
    if done.returncode:
        raise InvalidRequest(f"the editor {command} failed with exit code {done.returncode}")
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"cannot read {path}: {error}") from error


def _system(call: Call) -> None:
    command = call.line or os.environ.get("SHELL", "sh")
    done = subprocess.run(command, shell=True, check=False)
    call.shell.variables.tell(SHELL_EXIT_CODE=done.returncode)


def _folder(call: Call) -> None:
    folder = Path(call.word() or Path.home()).expanduser()
    try:
        os.chdir(folder)
    except OSError as error:
        raise InvalidRequest(f"cannot change to {folder}: {error.strerror}") from error


def _copy(call: Call) -> None:
    copy(call.shell, call.line.rstrip(";").rstrip())


def _connect(call: Call) -> None:
    shell, argument = call.shell, call.word()
    if not argument:
        shell.note(f"You are connected to the database {shell.database}.\n")
        return
    if shell.in_transaction:
        raise InvalidRequest("a transaction is open", hint="End it with COMMIT or ROLLBACK first.")
    shell.use_database(plain_name(argument))
    shell.note(f"Now using the database {shell.database}.\n")


def _quit(call: Call) -> None:
    call.shell.is_over = True


COMMANDS: Final = (
    Command("\\i file", "run the statements of a file", _include, ("\\include",)),
    Command(
        "\\ir file", "as \\i, from the folder of the script", _include, ("\\include_relative",)
    ),
    Command("\\o [file]", "results to a file or |program; alone: to the terminal", _output),
    Command("\\w file", "write the statement before it, or the last one, to a file", _write),
    Command("\\e [file]", "edit the statement, or a file, and run it", _edit, ("\\edit",)),
    Command("\\copy table from|to 'file'", "rows of a file or a program in, or out", _copy),
    Command("\\c [database]", "use another database", _connect, ("\\connect",)),
    Command("\\! [command]", "run a command of the system", _system),
    Command("\\cd [folder]", "change the working folder", _folder),
    Command("\\q", "leave", _quit, ("\\quit",)),
)
