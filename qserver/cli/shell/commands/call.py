"""One command of the shell, and one call of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from qserver.cli.shell.arguments import arguments_of
from qserver.cli.shell.shell import Shell
from qserver.cli.splitting import Statement
from qserver.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Call:
    shell: Shell
    name: str
    """With its backslash."""
    line: str
    """What is behind the name, stripped, as it was typed."""
    before: Statement | None
    """The beginning of a statement that the command is in."""
    at: int
    """Its line."""

    def words(self, most: int | None = None) -> list[str]:
        """The arguments; those past `most` are told, and ignored."""
        found = arguments_of(self.line, self.shell.variables)
        if most is not None:
            for each in found[most:]:
                self.shell.say(f'{self.name}: extra argument "{each}" ignored\n')
            return found[:most]
        return found

    def word(self) -> str:
        """The only argument, without a semicolon that was typed out of habit; or nothing."""
        return next(iter(self.words(1)), "").rstrip(";")

    def needed(self, what: str) -> str:
        found = self.word()
        if not found:
            raise InvalidRequest(f"{self.name} needs {what}")
        return found

    def statement(self) -> Statement:
        """The statement before the command, else the last one."""
        found = self.before or self.shell.last_statement
        if found is None:
            raise InvalidRequest(
                f"{self.name} needs a statement", hint=f"Write one before it: SELECT 1 {self.name}"
            )
        return found


Run = Callable[[Call], None]


@dataclass(frozen=True, slots=True)
class Command:
    usage: str
    meaning: str
    run: Run
    also: tuple[str, ...] = ()
    """Other names of it."""

    @property
    def name(self) -> str:
        return self.usage.partition(" ")[0].partition("[")[0]
